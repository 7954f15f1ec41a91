"""Equalities of decisions: some columns follow from the others."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import linprog
from torch import Tensor

Array = npt.NDArray[np.float64]

EXACT = 1e-10  # of its terms: by how much a sum that is to be right may be missed
_FLAT = 1e-8  # of the box: what has no more room is a point
_ROUNDING = 1e-9  # of a side: what is nearer to a bound is there
_ZERO = 1e-12  # of a row: a coefficient that elimination left


@dataclass(frozen=True, eq=False)
class Equalities:
    r"""Weighted sums of decisions that have to be right.

    .. math:: u_k = b_k - \sum_{j \in F} A_{kj} u_j \quad\text{for each } k \notin F

    with ``u`` a decision in the user's units and ``F`` the columns that are free.
    """

    # ``A`` with all columns, ``m x d_x``: a unit matrix in those that follow.
    weights: Tensor
    # ``b``, ``m``.
    sums: Tensor
    # The columns that are chosen.
    free: tuple[int, ...]
    # Those that follow from them, ``m``.
    dependent: tuple[int, ...]
    # Columns of which a model sees the logarithm.
    logarithms: tuple[int, ...]
    # What all linear constraints leave of the bounds of the free columns, as a model
    # sees them, ``2 x f``.
    bounds: Tensor
    # Which of the given inequalities are among the equalities.
    used: tuple[int, ...]

    @classmethod
    def of(
        cls,
        weights: Array,
        least: Array,
        bounds: Tensor,
        values: Mapping[int, Sequence[float]],
        logarithms: tuple[int, ...] = (),
    ) -> Equalities | None:
        """The equalities in ``weights @ u >= least``: inequalities without any room.

        Two opposite ones without a gap are one equality, and so is one that the bounds
        and the others let hold with equality only.

        Shapes: ``weights``: ``r x d_x``, ``bounds``: ``2 x d_x``.
        """
        box = in_units(bounds, logarithms)
        # Two inequalities that meet are an equality, and so are many that leave no
        # room: which ones is found by linear programs, not read off their form.
        program = Program(weights, least, box.numpy())
        # A point satisfies all with room to spare: the set has an interior, and no sum
        # is fixed.
        if program.room > _FLAT:
            return None
        used = [i for i in range(len(least)) if program.room_of(i) <= _FLAT]
        A, b = weights[used], least[used]
        while True:
            # A column that can take a single value only is fixed by a further equality,
            # which may fix others: until none is left.
            A, b, dependent = _echelon(A, b, program.side, values, logarithms)
            free = [j for j in range(bounds.shape[-1]) if j not in dependent]
            ends = {j: program.ends(j, values.get(j), j in logarithms) for j in free}
            points = [j for j in free if ends[j][0] == ends[j][1]]
            if not points:
                break
            # The equality `u_j = value`, a row of the identity.
            A = np.vstack([A, np.eye(bounds.shape[-1])[points]])
            b = np.append(b, [ends[j][0] for j in points])
        left = bounds.new_tensor([ends[j] for j in free]).reshape(-1, 2).mT
        seen = left.clone()
        for i in (i for i, j in enumerate(free) if j in logarithms):
            seen[:, i] = left[:, i].log()
        # A bound that stays is the same to the bit.
        return cls(
            weights=bounds.new_tensor(A),
            sums=bounds.new_tensor(b),
            free=tuple(free),
            dependent=tuple(dependent),
            logarithms=logarithms,
            bounds=torch.where(left == box[:, free], bounds[:, free], seen),
            used=tuple(used),
        )

    def lifted(self, F: Tensor) -> Tensor:
        """Decisions ``... x d_x`` with these free columns ``... x f``, differentiable.

        Those that follow may leave their bounds.
        """
        # `A` is in echelon form: each dependent column stands in one row, with weight
        # one.
        columns = dict(zip(self.free, F.unbind(-1), strict=True))
        free = list(self.free)
        units = torch.stack(
            [v.exp() if j in self.logarithms else v for j, v in columns.items()], -1
        )
        rest = self.sums.to(F) - units @ self.weights[:, free].mT.to(F)  # ... x m
        for j, value in zip(self.dependent, rest.unbind(-1), strict=True):
            tiny = torch.finfo(F.dtype).tiny
            columns[j] = value.clamp_min(tiny).log() if j in self.logarithms else value
        return torch.stack([columns[j] for j in sorted(columns)], -1)

    def missed(self, X: Tensor) -> Tensor:
        """The most by which decisions ``n x d_x`` miss a sum, of its terms, ``n``."""
        terms = in_units(X, self.logarithms).unsqueeze(-2) * self.weights.to(X)
        sums = self.sums.to(X)
        # Relative error: what a sum of these terms loses by rounding is in proportion
        # to it.
        size = sums.abs() + terms.abs().sum(-1)  # n x m
        gaps = (terms.sum(-1) - sums).abs() / size.clamp_min(torch.finfo(X.dtype).tiny)
        return gaps.amax(-1)

    def settled(self, X: Tensor, bounds: Tensor, held: Sequence[int]) -> Tensor:
        """Decisions near by of which the sums are right, if there are any, ``n x d_x``.

        What is at a bound up to rounding is put there, and moves only where the others
        are not enough. Distances are in sides of the box.

        Shapes: ``X``: ``n x d_x``, ``bounds``: ``2 x d_x``.
        """
        loose = torch.ones_like(X, dtype=torch.bool)
        loose[:, list(held)] = False
        (lower, upper), slack = bounds, _ROUNDING * (bounds[1] - bounds[0])
        # Columns at a bound stay there if they can: an active bound is usually meant.
        low, high = loose & (X - lower <= slack), loose & (upper - X <= slack)
        X = torch.where(low, lower, torch.where(high, upper, X))
        # First without the columns at bounds; if that does not do, with all that may
        # move.
        X = self._moved(X, bounds, loose & ~low & ~high)
        return self._moved(X, bounds, loose)

    def _moved(self, X: Tensor, bounds: Tensor, moves: Tensor) -> Tensor:
        """The same by moves in ``n x d_x`` columns, each until it meets a bound."""
        box = in_units(bounds, self.logarithms)
        A, side = self.weights.to(X), box[1] - box[0]
        # Projection with an active set: a column that would leave the box stops at its
        # bound and moves no more. A pass that leaves a gap has stopped one at least.
        for _ in range(X.shape[-1]):
            unsettled = self.missed(X) > torch.finfo(X.dtype).eps
            if not unsettled.any():
                break
            units = in_units(X, self.logarithms)
            gap = (self.sums.to(X) - units @ A.mT).unsqueeze(-1)  # n x m x 1
            scale = side * moves  # n x d_x
            # The least change in sides of the box that closes the gap: a pseudoinverse,
            # since sums may depend on the same columns.
            inverse = torch.linalg.pinv(A * scale.unsqueeze(-2))  # n x d_x x m
            ends = units + scale * (inverse @ gap).squeeze(-1)
            at = ends.clamp(*box)
            for j in self.logarithms:
                at[:, j] = at[:, j].log()
            X = torch.where(unsettled.unsqueeze(-1) & moves, at.clamp(*bounds), X)
            moves = moves & (ends >= box[0]) & (ends <= box[1])
        return X


def in_units(X: Tensor, logarithms: Sequence[int]) -> Tensor:
    """What a model sees, ``... x d_x``, in the user's units."""
    if not logarithms:
        return X
    columns = list(X.unbind(-1))
    for j in logarithms:
        columns[j] = columns[j].exp()
    return torch.stack(columns, -1)


class Program:
    """Linear programs over what linear constraints leave of a box.

    Shapes: ``weights``: ``r x d``, ``box``: ``2 x d``.
    """

    def __init__(self, weights: Array, least: Array, box: Array) -> None:
        self._box, self.side = box, box[1] - box[0]
        # Scaled to the unit cube, and each row to a largest weight of one: solvers have
        # absolute tolerances.
        rows = weights * self.side
        size = np.abs(rows).max(-1)
        self._rows = rows / size[:, None]
        self._least = (least - weights @ box[0]) / size
        # How much room one point leaves to all constraints at once, of the box.
        self.room: float = -linprog(
            np.append(np.zeros_like(self.side), -1.0),
            A_ub=np.hstack([-self._rows, np.ones((len(size), 1))]),
            b_ub=-self._least,
            bounds=[*self._sides, (None, None)],
        ).fun
        # What rounding made infeasible by less than the tolerance is moved to be
        # feasible.
        self._least += min(self.room, 0.0)  # what rounding took

    @property
    def _sides(self) -> list[tuple[float, float]]:
        return [(0.0, 1.0)] * len(self.side)

    def room_of(self, i: int) -> float:
        """How much room a constraint has, at most, of the box."""
        return self._largest(self._rows[i]) - self._least[i]

    def ends(
        self, j: int, values: Sequence[float] | None, is_logarithm: bool
    ) -> tuple[float, float]:
        """The smallest and the largest value of a column; equal if it has one only.

        Of values that increase only the ends are looked up: a range may be very long.
        """
        lower, upper = self._box[:, j].tolist()
        # No constraint on the column: its bounds stay the same to the bit.
        if not self._rows[:, j].any():
            return lower, upper
        axis = np.eye(len(self.side))[j]
        low, high = -self._largest(-axis), self._largest(axis)
        # A bound that can be reached is met to the bit.
        start = lower if low <= _FLAT else lower + low * (upper - lower)
        end = upper if high >= 1.0 - _FLAT else lower + high * (upper - lower)
        if values is not None:
            slack = _FLAT * (upper - lower)
            unit = math.exp if is_logarithm else float
            first = bisect_left(values, start - slack, key=unit)
            last = bisect_right(values, end + slack, key=unit) - 1
            if first <= last:
                start, end = unit(values[first]), unit(values[last])
        elif high - low <= _FLAT:
            end = start
        return start, end

    def _largest(self, goal: Array) -> float:
        found = linprog(-goal, A_ub=-self._rows, b_ub=-self._least, bounds=self._sides)
        return -found.fun


def contradiction(weights: Array, least: Array, box: Array) -> list[int]:
    """Rows of ``weights @ u >= least`` that cannot all hold in a box, and none more."""
    rows = list(range(len(least)))

    def impossible(rows: list[int]) -> bool:
        return bool(rows) and Program(weights[rows], least[rows], box).room < -_FLAT

    if not impossible(rows):
        return []
    # Deletion filter: what is not needed for the contradiction is left out, and what
    # remains is an irreducible infeasible subset.
    for i in range(len(least)):
        rest = [row for row in rows if row != i]
        rows = rest if impossible(rest) else rows
    return rows


def _echelon(
    A: Array,
    b: Array,
    side: Array,
    values: Container[int],
    logarithms: Sequence[int],
) -> tuple[Array, Array, list[int]]:
    """Equalities solved for a column each: rows, sums, columns; no row twice.

    Numbers of an interval before logarithms, those with the largest term first: they
    leave the others most room. Listed numbers last, those with the smallest
    coefficient first: whole numbers make them whole numbers.
    """
    A, b = A.copy(), b.copy()
    size = np.abs(A * side).max(-1, keepdims=True)
    dependent: list[int] = []

    # The pivot: columns of any number before logarithms before listed values, so that
    # what is solved for can take the value; then the largest, for rounding.
    def order(place: tuple[int, int]) -> tuple[int, float, int]:
        i, j = place
        if j in values:
            return 2, abs(A[i, j]), -j
        return int(j in logarithms), -abs(A[i, j]) * side[j] / size[i, 0], -j

    while True:
        k = len(dependent)
        # Elimination leaves rounding errors where there should be zeros: they are no
        # pivots.
        A[np.abs(A * side) <= _ZERO * size] = 0.0
        places = [(k + int(i), int(j)) for i, j in np.argwhere(A[k:])]
        if not places:
            return A[:k], b[:k], dependent
        i, j = min(places, key=order)
        # Gauss-Jordan: swap the pivot row up, scale it to one, clear its column
        # elsewhere.
        for array in (A, b, size):
            array[[k, i]] = array[[i, k]]
        b[k] /= A[k, j]
        size[k] /= abs(A[k, j])
        A[k] /= A[k, j]
        for i in (i for i in range(len(A)) if i != k):
            b[i] -= A[i, j] * b[k]
            A[i] -= A[i, j] * A[k]
        dependent.append(j)
