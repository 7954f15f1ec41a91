r"""Transport plans that send each atom to one context, on a line and in general.

With ``C_ij = |a_i - c_j|`` the cheapest target of an atom is the best one to its left
or the best one to its right,

.. math:: \min_j (f_j + \lambda |a_i - c_j|) = \min\Big(
    \lambda a_i + \min_{c_j \le a_i} (f_j - \lambda c_j),\
    -\lambda a_i + \min_{c_j \ge a_i} (f_j + \lambda c_j) \Big),

so that a row of scores takes ``O(n + m)`` operations in place of ``n m``.

The dual of the worst case over a Wasserstein ball is concave and piecewise linear in
its multiplier,

.. math:: D(\lambda) = \sum_i p_i \min_j (f_j + \lambda C_{ij}) - \lambda \epsilon,

and every choice of a target for each atom is a line above it: its intercept is the mean
score, its slope the mean cost less the radius [Kelley1960cuttingplane]_.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from botorch_drbo.ambiguity.numerics import places_of_least

_ROUNDING = 8.0  # of the unit roundoff and the largest cost: distances on a line
_STEEPEST = 1e3  # cost of the whole line over the range of the scores: see `is_safe`


@dataclass(frozen=True)
class Line:
    """Positions of atoms and candidates on a line."""

    # The candidates from left to right, ``m``.
    order: Tensor
    # Their positions in this order, ``m``.
    positions: Tensor
    # The last candidate in this order that is not right of the atom, ``n``.
    left: Tensor
    # The first one that is not left of it, ``n``.
    right: Tensor
    # The positions of the atoms, ``n``.
    atoms: Tensor
    # The place of each candidate in this order, the same for equal positions, ``m``.
    place: Tensor
    # How far each place is from the one before, ``places - 1``.
    gaps: Tensor
    # Whether there is a candidate in the place of each atom.
    holds_atoms: bool

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
        # One row, which tells a plane from a line, and then all, in strips.
        size = _CHUNK_ELEMENTS.get(cost.device.type, 2**24)
        strips = [part.split(max(1, size // len(candidates))) for part in (atoms, cost)]
        middle = slice(len(cost) // 2, len(cost) // 2 + 1)
        for at, costs in ((atoms[middle], cost[middle]), *zip(*strips, strict=True)):
            found = (at[:, None] - candidates).abs_().sub_(costs)
            if not bool((found.abs_() <= rounding).all()):
                return None
        positions, order = candidates.sort()
        left = torch.searchsorted(positions, atoms + rounding, right=True) - 1
        right = torch.searchsorted(positions, atoms - rounding)
        if bool((left < 0).any() | (right == len(positions)).any()):
            return None
        steps = positions.diff()
        is_next = steps > rounding
        place = pad(is_next, (1, 0)).cumsum(0)
        holds_atoms = bool((right <= left).all())
        gaps = steps[is_next]
        return cls(order, positions, left, right, atoms, place, gaps, holds_atoms)

    def of_atoms(self, which: Tensor) -> Line:
        """The same line, with some of the atoms."""
        left, right, atoms = self.left[which], self.right[which], self.atoms[which]
        return replace(self, left=left, right=right, atoms=atoms)

    def descent(self, f: Tensor) -> tuple[Tensor, Tensor]:
        """The scores of staying, ``b x n``, and a slope that none exceeds, ``b``.

        If each atom has a candidate in its place: the steepest slope of neighbours.

        Shapes: ``f``: ``b x m``.
        """
        # Of candidates in one place the lowest score counts, for atoms that stay too.
        lowest = f.new_full((len(f), len(self.gaps) + 1), torch.inf).scatter_reduce(
            -1, self.place.expand_as(f), f.gather(-1, self.order.expand_as(f)), "amin"
        )
        # A chord is the mean of the slopes of the steps that it spans, weighted by
        # their lengths: (f_i - f_j) / (c_j - c_i) = sum_k (gap_k / gap) slope_k. So no
        # slope between two places exceeds the steepest of neighbours, and where all
        # places have mass that is one of them: the bound is the largest slope itself.
        steepest = lowest.diff().abs_().div_(self.gaps)
        slope = pad(steepest, (0, 1)).amax(-1)  # of one place none
        return lowest[:, self.place[self.right]], slope

    def is_safe(self, span: Tensor, lam: Tensor) -> Tensor:
        """Rows whose sums lose no digits that matter, ``b``.

        ``lambda c_j`` is rounded in units of the whole line, the distance of two near
        contexts in its own: with so large a multiplier the scores would drown.
        """
        return lam * (self.positions[-1] - self.positions[0]) <= _STEEPEST * span

    def targets(self, f: Tensor, lam: Tensor) -> Tensor:
        """The argmin over ``j`` of ``f_j + lambda C_ij`` for all atoms, ``b x n``.

        Shapes: ``f``: ``b x m``.
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


@dataclass(frozen=True)
class Ground:
    """A cost, ``n x m``, and what it says of every row of scores."""

    cost: Tensor
    # The line on which the contexts lie; None if there is none.
    line: Line | None
    # The largest cost of each atom, ``n``.
    farthest: Tensor
    # The first of the nearest candidates of each atom, ``n``.
    nearest: Tensor
    # Whether others are as near, ``n``.
    tied: Tensor

    @classmethod
    def of(cls, cost: Tensor) -> Ground:
        """What a cost says."""
        nearest = cost <= cost.amin(-1, keepdim=True)  # n x m
        first = nearest.byte().argmax(-1, keepdim=True)
        # To look for a second one is much faster than to count them.
        tied = nearest.scatter_(-1, first, False).any(-1)
        return cls(cost, Line.of(cost), cost.amax(-1), first.squeeze(-1), tied)

    def of_atoms(self, which: Tensor) -> Ground:
        """The same for some of the atoms."""
        return Ground(
            self.cost[which],
            self.line and self.line.of_atoms(which),
            self.farthest[which],
            self.nearest[which],
            self.tied[which],
        )


_FEW_PAIRS = 2**17  # of which a minimum takes as long as some twenty calls
_CHUNK_ELEMENTS = {"cpu": 2**16, "cuda": 2**24}  # on the CPU a chunk stays in cache


@dataclass(frozen=True)
class Assignment:
    """Where each atom goes, all ``b x n``: one cutting plane of the dual per row."""

    target: Tensor
    score: Tensor
    cost: Tensor

    def cut(self, p: Tensor) -> tuple[Tensor, Tensor]:
        """Intercept and slope of the cut, the mean score and cost: ``b`` and ``b``."""
        return (p * self.score).sum(-1), (p * self.cost).sum(-1)


def moved(
    target: Tensor,
    f: Tensor,
    cost: Tensor,
    lam: Tensor,
    moving: Tensor,
    line: Line | None,
) -> Assignment:
    """The cheapest targets at multipliers ``b`` of the atoms that move, ``b x n``.

    The others stay, unless all pairs are so few that it costs more to leave some out.
    On a line all atoms together cost less than a few by one.
    """
    if are_few(f, cost):
        reached = torch.addcmul(f.unsqueeze(1), lam[:, None, None], cost)
        return _assignment(f, cost, places_of_least(reached))
    # Atoms on a line are settled by two running minima, m in place of n m scores;
    # the others, and rows of steep costs, by a list of all candidates.
    target, listed = target.clone(), moving
    if line is not None:
        by_line = moving & line.is_safe(f.amax(-1), lam)[:, None]
        target = torch.where(by_line, line.targets(f, lam), target)
        listed = moving & ~by_line
    row, atom = listed.nonzero(as_tuple=True)
    if len(row):
        target[row, atom] = cheapest_target(f, cost, lam[row], row, atom)
    return _assignment(f, cost, target)


def are_few(f: Tensor, cost: Tensor) -> bool:
    """Whether the pairs of rows, atoms and candidates cost less than calls do."""
    return len(f) * cost.numel() <= _FEW_PAIRS


class Bracket(NamedTuple):
    """A cut on either side of the maximum of each row: first that of low ``lambda``."""

    # Where atoms go, ``2 x b x n``.
    target: Tensor
    # The mean scores, ``2 x b``.
    value: Tensor
    # The mean costs, ``2 x b``.
    slope: Tensor
    # Where they have crossed last, and how far the dual lay below that, ``2 x b``.
    crossing: Tensor

    @classmethod
    def of(cls, low: Assignment, high: Assignment, p: Tensor) -> Bracket:
        """Both cuts of rows ``b x n``."""
        (low_value, low_slope), (high_value, high_slope) = low.cut(p), high.cut(p)
        value = torch.stack([low_value, high_value])
        return cls(
            torch.stack([low.target, high.target]),
            value,
            torch.stack([low_slope, high_slope]),
            torch.zeros_like(value),
        )

    def rows(self, which: Tensor) -> Bracket:
        """A copy of some of the rows."""
        return Bracket(*(field.index_select(1, which) for field in self))

    def put(self, which: Tensor, other: Bracket) -> None:
        """Write over some of the rows."""
        for field, new in zip(self, other, strict=True):
            field.index_copy_(1, which, new)

    def with_cut(
        self, sides: Tensor, target: Tensor, value: Tensor, slope: Tensor
    ) -> Bracket:
        """With a cut in place of those of some sides and rows, ``2 x b``."""
        return self._replace(
            target=torch.where(sides.unsqueeze(-1), target, self.target),
            value=torch.where(sides, value, self.value),
            slope=torch.where(sides, slope, self.slope),
        )


def mixed_plan(
    p: Tensor, radius: Tensor, saturated: Tensor, cuts: Bracket, m: int
) -> tuple[Tensor, Tensor]:
    """The mixture of both plans that costs the radius, and its radius derivative."""
    cost_low, cost_high = cuts.slope
    zeros = p.new_zeros(len(p), m)
    # Complementary slackness: at the crossing of two cuts both plans are optimal, and
    # the mixture that costs exactly the radius is feasible.
    q_low = zeros.scatter_add(-1, cuts.target[0], p)
    q_high = zeros.scatter_add(-1, cuts.target[1], p)
    # A larger radius moves the share towards the dearer plan, linearly.
    cost_gap = (cost_low - cost_high).clamp_min(torch.finfo(p.dtype).tiny)
    share = ((radius - cost_high) / cost_gap).clamp(0.0, 1.0)
    share = torch.where(saturated, 1.0, share)[:, None]
    q = share * q_low + (1 - share) * q_high
    direction = (q_low - q_high) / cost_gap[:, None]
    return q, torch.where(saturated[:, None], zeros, direction)


def cheapest_target(
    f: Tensor, cost: Tensor, lam: Tensor, row: Tensor, atom: Tensor
) -> Tensor:
    """The argmin over ``j`` of ``f[row, j] + lam * cost[atom, j]``, ``k``.

    In chunks that are written over, as fresh memory costs more than the arithmetic.
    """
    k, m = len(row), f.shape[-1]
    # Buffers of one chunk are used again: to allocate them takes as long as to add.
    size = max(1, min(k, _CHUNK_ELEMENTS.get(f.device.type, 2**24) // max(1, m)))
    target = torch.empty(k, dtype=torch.long, device=f.device)
    scores, costs = f.new_empty(size, m), f.new_empty(size, m)
    for start in range(0, k, size):
        part = slice(start, min(start + size, k))
        count = part.stop - start
        a, c = scores[:count], costs[:count]
        # f_j + lambda C_ij, for the pairs of row and atom that are asked for.
        torch.index_select(f, 0, row[part], out=a)
        torch.index_select(cost, 0, atom[part], out=c)
        torch.addcmul(a, c, lam[part, None], out=a)
        target[part] = places_of_least(a)
    return target


def largest_slope(f: Tensor, cost: Tensor, stay: Assignment, used: Tensor) -> Tensor:
    """The steepest descent of the score per cost beyond that of staying, ``b``.

    Shapes: ``f``: ``b x m``, ``cost``: ``n x m``, ``stay``: ``b x n``, ``used``: ``b x
    n``.
    """
    # Kantorovich's dual at lambda = the largest slope: from there on nobody moves.
    extra_cost = cost - cost.amin(-1, keepdim=True)  # n x m
    # Where going is not dearer than staying, `stay` is the better of them already.
    no_dearer = extra_cost <= 0
    inverse_cost = extra_cost.reciprocal_().masked_fill_(no_dearer, 0.0)
    stay_score = torch.where(used, stay.score, 0.0)  # without weight: none is < 0
    size = max(
        1, _CHUNK_ELEMENTS.get(f.device.type, 2**24) // max(1, inverse_cost.numel())
    )
    parts = [
        (stays.unsqueeze(-1) - row.unsqueeze(-2)).mul_(inverse_cost).flatten(1).amax(-1)
        for stays, row in zip(stay_score.split(size), f.split(size), strict=True)
    ]
    return torch.cat(parts).clamp_min(0.0)


def farthest_points(
    distances: Callable[[int], Tensor], nearest: Tensor, num: int
) -> Tensor:
    """Points of which each is the farthest from those before it, ``num`` at most.

    Fewer if no other point is away from all of these [Gonzalez1985clustering]_.

    Shapes: ``distances``: from a point to all, ``n``, ``nearest``: from those that are
    there already, ``n``.
    """
    chosen: list[int] = []
    while len(chosen) < num and bool((nearest > 0).any()):
        chosen.append(int(nearest.argmax()))
        nearest = torch.minimum(nearest, distances(chosen[-1]))
    return torch.tensor(chosen, dtype=torch.long, device=nearest.device)


def assignment_at_zero(f: Tensor, cost: Tensor) -> Assignment:
    """The cut at ``lambda = 0``: all atoms go to the cheapest of the lowest scores."""
    # For lambda just above zero: the lowest score, of equal ones the nearest.
    lowest = f == f.amin(-1, keepdim=True)  # b x m
    target = lowest.byte().argmax(-1, keepdim=True).repeat(1, len(cost))
    tied = lowest.sum(-1, keepdim=True) > 1
    # Few candidates are the lowest of any row: only these are looked at.
    some = (lowest & tied).any(0).nonzero().squeeze(-1)
    row, atom = tied.expand(-1, len(cost)).nonzero(as_tuple=True)
    masked = torch.zeros_like(f[:, some]).masked_fill_(~lowest[:, some], torch.inf)
    ones = f.new_ones(len(row))
    nearest = cheapest_target(masked, cost[:, some].contiguous(), ones, row, atom)
    target[row, atom] = some[nearest]
    return _assignment(f, cost, target)


def assignment_at_infinity(f: Tensor, ground: Ground) -> Assignment:
    """The cut for large ``lambda``: the lowest score among the nearest candidates."""
    # For lambda large: the nearest candidate, of equal ones that of the lowest score.
    target = ground.nearest.repeat(len(f), 1)
    tied = ground.tied.nonzero().squeeze(-1)
    costs = ground.cost[tied]
    farther = costs > costs.amin(-1, keepdim=True)
    masked = torch.zeros_like(costs).masked_fill_(farther, torch.inf)
    row, atom = torch.ones_like(target[:, tied]).nonzero(as_tuple=True)
    ones = f.new_ones(len(row))
    target[row, tied[atom]] = cheapest_target(f, masked, ones, row, atom)
    return _assignment(f, ground.cost, target)


def _assignment(f: Tensor, cost: Tensor, target: Tensor) -> Assignment:
    costs = cost.expand(len(f), -1, -1).gather(-1, target.unsqueeze(-1)).squeeze(-1)
    return Assignment(target, f.gather(-1, target), costs)
