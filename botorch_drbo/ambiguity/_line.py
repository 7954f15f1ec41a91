r"""Transport along a line: the cheapest targets of all atoms by two running minima.

With ``C_ij = |a_i - c_j|`` the cheapest target of an atom is the best one to its left
or the best one to its right,

.. math:: \min_j (f_j + \lambda |a_i - c_j|) = \min\Big(
    \lambda a_i + \min_{c_j \le a_i} (f_j - \lambda c_j),\
    -\lambda a_i + \min_{c_j \ge a_i} (f_j + \lambda c_j) \Big),

so that a row of scores takes ``O(n + m)`` operations in place of ``n m``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_ROUNDING = 8.0  # of the unit roundoff and the largest cost: distances on a line
_STEEPEST = 1e3  # cost of the whole line over the range of the scores: see `is_safe`


@dataclass(frozen=True)
class Line:
    """Positions of atoms and candidates on a line.

    Attributes:
        order: The candidates from left to right, ``m``.
        positions: Their positions in this order, ``m``.
        left: The last candidate in this order that is not right of the atom, ``n``.
        right: The first one that is not left of it, ``n``.
        atoms: The positions of the atoms, ``n``.
    """

    order: Tensor
    positions: Tensor
    left: Tensor
    right: Tensor
    atoms: Tensor

    @classmethod
    def of(cls, cost: Tensor) -> Line | None:
        """The line whose distances these are, ``n x m``; None if there is none.

        None too where an atom lies beyond all candidates.
        """
        # The candidate farthest from an atom is an end of the line. Distances to two
        # atoms, the first and the last from there, give the positions of the others.
        atoms = cost[:, cost[0].argmax()]
        first, last = atoms.argmin(), atoms.argmax()
        ahead, behind = atoms[first] + cost[first], atoms[first] - cost[first]
        misses_ahead = ((atoms[last] - ahead).abs() - cost[last]).abs()
        misses_behind = ((atoms[last] - behind).abs() - cost[last]).abs()
        candidates = torch.where(misses_ahead <= misses_behind, ahead, behind)
        rounding = _ROUNDING * torch.finfo(cost.dtype).eps * cost.max()
        # One row, which tells a plane from a line, and then all.
        for rows in (slice(len(cost) // 2, len(cost) // 2 + 1), slice(None)):
            found = (atoms[rows, None] - candidates).abs()
            if not bool(((found - cost[rows]).abs() <= rounding).all()):
                return None
        positions, order = candidates.sort()
        left = torch.searchsorted(positions, atoms + rounding, right=True) - 1
        right = torch.searchsorted(positions, atoms - rounding)
        if bool((left < 0).any() | (right == len(positions)).any()):
            return None
        return cls(order, positions, left, right, atoms)

    def is_safe(self, span: Tensor, lam: Tensor) -> Tensor:
        """Rows whose sums lose no digits that matter, ``b``.

        ``lambda c_j`` is rounded in units of the whole line, the distance of two near
        contexts in its own: with so large a multiplier the scores would drown.

        Args:
            span: The range of the scores, ``b``.
            lam: The multipliers, ``b``.
        """
        return lam * (self.positions[-1] - self.positions[0]) <= _STEEPEST * span

    def targets(self, f: Tensor, lam: Tensor) -> Tensor:
        """The argmin over ``j`` of ``f_j + lambda C_ij`` for all atoms, ``b x n``.

        Args:
            f: Scores, ``b x m``.
            lam: Multipliers, ``b``.
        """
        # min_j f_j + lambda |a - c_j| is the lesser of two minima over the candidates
        # on either side of a: running minima of f_j - lambda c_j from the left, and of
        # f_j + lambda c_j from the right.
        scores, reach = f.gather(-1, self.order.expand_as(f)), lam[:, None]
        moved = reach * self.positions
        least, before = (scores - moved).cummin(-1)
        others, after = scores.add_(moved).flip(-1).cummin(-1)
        left = self.left.expand(len(f), -1)
        from_end = (len(self.order) - 1 - self.right).expand(len(f), -1)
        # From left the cost is lambda (a_i - c_j), from right lambda (c_j - a_i).
        excess = least.gather(-1, left) - others.gather(-1, from_end)
        is_left = excess + (2.0 * reach) * self.atoms <= 0
        before, after = before.gather(-1, left), after.gather(-1, from_end)
        best = torch.where(is_left, before, len(self.order) - 1 - after)
        return self.order.take(best)
