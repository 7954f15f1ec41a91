"""A finite list of decisions in place of the box, apart from pending ones."""

from __future__ import annotations

from bisect import bisect_left

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import InputDataError
from torch import Tensor
from torch.nn.functional import pad

from botorch_drbo._validation import check_finite, check_inside
from botorch_drbo.acquisition.decisions import DecisionAcquisitionFunction
from botorch_drbo.acquisition.upper_confidence_bound import OnFewContexts
from botorch_drbo.problem.equalities import EXACT
from botorch_drbo.problem.feasible import all_decisions, feasible, sample, settled
from botorch_drbo.problem.feasible import sample as feasible_sample
from botorch_drbo.problem.search_space import SearchSpace, check_values
from botorch_drbo.sampling import sobol

_ROWS = 1024  # as many as an optimiser scores at once by default
_FIRST = 16  # of a ranking, that are evaluated
_SOME = 96  # the same at the start of a plate, ...
_AT_ONCE = 16  # ... and for each row of it at least


def check_candidates(candidates: Tensor, space: SearchSpace, q: int = 1) -> Tensor:
    """Return the list, ``m x d_x``, in the dtype of the bounds.

    Rows that are outside by no more than the rounding of their dtype are moved inside.
    """
    rows = check_finite(candidates, "candidates").detach().to(space.bounds.device)
    if rows.ndim == 2 and len(rows) == 0:
        raise InputDataError(
            "`candidates` is an empty list. Give at least one decision, or None to "
            "search the whole box."
        )
    check_inside(rows, space.bounds, "candidates", "bounds")
    check_values(rows, space.bounds, space.values, "candidates")
    rows = space.snap(rows.to(space.bounds).clamp(*space.bounds))
    allowed = feasible(space, rows)
    if not allowed.all():
        violating = (~allowed).nonzero().flatten().tolist()
        raise InputDataError(
            "`candidates` has rows that violate the constraints: rows "
            f"{violating[:5]}, the first is {rows[violating[0]].tolist()}. Leave them "
            "out."
        )
    # Adding zero turns -0.0 to 0.0: they are the same decision.
    different = len(rows) if q == 1 else len((rows + 0.0).unique(dim=0))
    if q > different:
        raise InputDataError(
            f"`candidates` has {different} different rows, but q = {q} decisions are "
            "asked for. Ask for fewer, or give a longer list."
        )
    return rows


def score(acqf: AcquisitionFunction, candidates: Tensor) -> Tensor:
    """The acquisition value of each row ``m x d_x``, without a graph, ``m``."""
    with torch.no_grad():
        parts = candidates.unsqueeze(-2).split(_ROWS)
        return or_worst(torch.cat([acqf(part) for part in parts]))


def or_worst(values: Tensor) -> Tensor:
    """Acquisition values of which one that is not a number is worse than all others."""
    return values.nan_to_num(nan=-torch.inf, posinf=-torch.inf, neginf=-torch.inf)


def ranking(acqf: AcquisitionFunction, X: Tensor) -> Tensor:
    """A cheap order of ``b x 1 x d_x`` decisions, ``b``; BoTorch's own have none."""
    if isinstance(acqf, DecisionAcquisitionFunction | OnFewContexts):
        return acqf.ranking(X)
    return acqf(X)


def best_of_many(acqf: AcquisitionFunction, candidates: Tensor) -> Tensor:
    """The best row of ``m x d_x``; of many, among the first 16 by the cheap ranking."""
    if len(candidates) > _FIRST:
        parts = candidates.unsqueeze(-2).split(_ROWS)
        with torch.no_grad():
            found = or_worst(torch.cat([ranking(acqf, part) for part in parts]))
        candidates = candidates[found.topk(_FIRST).indices]
    return candidates[score(acqf, candidates).argmax()]


def best_row(candidates: Tensor, values: Tensor, taken: Tensor) -> Tensor:
    """The best row that is not taken, or the best of all if each is; ``1 x d_x``."""
    return best_of(candidates, values, ~_among(candidates, taken))


def best_of(candidates: Tensor, values: Tensor, allowed: Tensor) -> Tensor:
    """The best row that is allowed, or the best of all if none is; ``1 x d_x``."""
    if allowed.any():
        candidates, values = candidates[allowed], values[allowed]
    return candidates[values.argmax()].unsqueeze(0)


def best_rows(candidates: Tensor, values: Tensor, num: int, taken: Tensor) -> Tensor:
    """The ``num`` best different rows, those taken last, ``num x d_x``."""
    chosen = [candidates[:0]]
    for _ in range(num):
        row = best_row(candidates, values, taken)
        chosen.append(row)
        left = ~_among(candidates, row)
        candidates, values = candidates[left], values[left]
    return torch.cat(chosen)


def without(candidates: Tensor, rows: Tensor) -> Tensor:
    """The list without what equals one of the rows."""
    return candidates[~_among(candidates, rows)]


def redrawn(
    rows: Tensor, failed: Tensor, space: SearchSpace, seed: int, first: int = 0
) -> Tensor:
    """Rows ``n x d_x``; for those that have failed others, as long as there are any."""
    hit = _among(rows, failed)
    if not hit.any():
        return rows
    every = all_decisions(space)
    others = without(sample(space, _ROWS, seed) if every is None else every, failed)
    if len(others):
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(others), generator=generator)
        turns = order[(first + torch.arange(int(hit.sum()))) % len(others)]
        rows = rows.masked_scatter(hit.unsqueeze(-1), others[turns.to(others.device)])
    return rows


def _among(candidates: Tensor, rows: Tensor) -> Tensor:
    """Which candidates equal one of the rows, ``m``."""
    found = torch.zeros(len(candidates), dtype=torch.bool, device=candidates.device)
    for row in rows:
        found |= (candidates == row).all(-1)
    return found


# Decisions nearer than this (largest coordinate difference, in sides of the box) are
# not asked while one of them is pending.
SEPARATION = 0.01
# What is as near in all continuous coordinates to a failed one, and has the same values
# in all others, is that decision again.
SAME = 0.001
_NEIGHBOURHOOD = 5.0  # half-width of the search for a new one, in these distances
_TIE = 1e-9


def best_apart(
    acqf: AcquisitionFunction,
    candidates: Tensor,
    values: Tensor,
    pending: Tensor,
    failed: Tensor,
    space: SearchSpace,
    seed: int,
    num_samples: int,
) -> Tensor:
    """The best candidate (``1 x d_x``) apart from pending ones, and not a failed one.

    Pending decisions repel the next one by as much as is still unknown. That can be
    next to nothing, late in a run; and a sample path knows nothing of them. Of a failed
    one nothing is known at all. Then the best is taken from a sample around the best
    candidate and over the whole box; where nothing is apart, the best in the widest
    gap, which is the best of all where each is taken.
    """
    # The usual case: the maximum is apart already, and nothing has to be drawn.
    best = candidates[values.argmax()].unsqueeze(0)
    if gaps(space, best, pending, failed) > SEPARATION:
        return best
    # The maximum is taken. The second best place is near it, on the rim of what is too
    # near, or on another hill: both are sampled.
    sample = torch.cat(
        [
            nearby(best[0], failed, space, seed, num_samples),
            everywhere(space, seed, num_samples),
        ]
    )
    # Sampled, not climbed: the slope leads back to the forbidden maximum.
    values = torch.cat([values, score(acqf, sample)])
    sample = torch.cat([candidates, sample])
    # If nothing is far enough, what is farthest: in a crowded box an answer is still
    # due.
    apart = gaps(space, sample, pending, failed)
    return best_of(sample, values, apart > min(SEPARATION, apart.max().item() - _TIE))


def gaps(space: SearchSpace, points: Tensor, pending: Tensor, failed: Tensor) -> Tensor:
    """The largest coordinate difference to the nearest pending decision, ``n``.

    In sides of the box; one if there is none, zero of what has failed.

    Shapes: ``points``: ``n x d_x``, ``pending``: ``m x d_x``, ``failed``: ``k x d_x``.
    """
    side = space.bounds[1] - space.bounds[0]
    # A discrete column has to be equal: its next value is another decision.
    same = torch.full_like(side, SAME)
    same[list(space.values)] = 0.0
    found = torch.cdist(points / side, pending / side, p=torch.inf)
    for j in space.categories:  # indices know no distance
        found = found.where(points[:, j : j + 1] == pending[:, j], 1.0)
    found = pad(found, (0, 1), value=1.0).amin(-1)
    for row in failed:
        again = (space.gaps(points, row).abs() <= same).all(-1)
        found = found.masked_fill(again, 0.0)
    return found


def nearby(
    x: Tensor, failed: Tensor, space: SearchSpace, seed: int, num: int
) -> Tensor:
    """A sample around ``d_x``, some of it beyond what is too near, ``m x d_x``."""
    lower, side = space.bounds[0], space.bounds[1] - space.bounds[0]
    unit = sobol(num, space.d_x, seed).to(lower)
    # A failed decision forbids a smaller neighbourhood than a pending one.
    reaches = [SEPARATION, SAME] if len(failed) else [SEPARATION]
    rows = torch.cat([x + _NEIGHBOURHOOD * r * (2 * unit - 1) * side for r in reaches])
    rows = rows.clamp(lower, space.bounds[1])
    if space.is_box:
        return rows
    if len(failed):
        rows = torch.cat([rows, neighbours(x, space)])
    rows = settled(space, space.snap(rows))
    return rows[feasible(space, rows, EXACT)]


def everywhere(space: SearchSpace, seed: int, num: int) -> Tensor:
    """A sample of the whole space, ``num x d_x``."""
    if not space.is_box:
        return feasible_sample(space, num, seed)
    lower, upper = space.bounds
    unit = sobol(num, space.d_x, seed).to(lower)
    return (lower + unit * (upper - lower)).clamp(lower, upper)


class Plate:
    """Decisions ranked once, from which the rows of a batch are taken one by one.

    A pending decision makes no other one better (next to none where slopes are
    penalised): what a decision was worth before is an upper bound of its worth now. So
    only the first by these bounds are evaluated, until the best of them is above all
    others' (lazy greedy maximisation, [Minoux1978accelerated]_). Those that were never
    evaluated follow below in the order of the ranking.

    Shapes: ``first``: ``r x d_x``, the best ones known, ``others``: ``m x d_x``.
    """

    def __init__(
        self, acqf: AcquisitionFunction, first: Tensor, others: Tensor
    ) -> None:
        parts = others.unsqueeze(-2).split(_ROWS)
        with torch.no_grad():
            ranks = or_worst(torch.cat([ranking(acqf, part) for part in parts]))
        order = ranks.argsort(descending=True)
        some, rest = order[:_SOME], order[_SOME:]
        self.rows = torch.cat([first, others[order]])
        values = score(acqf, self.rows[: len(first) + len(some)])
        below = values[len(first) :].amin() + ranks[rest] - ranks[some].amin()
        self.bounds = torch.cat([values, below])

    def add(self, rows: Tensor, values: Tensor) -> None:
        """Take further rows, ``k x d_x``, and their values."""
        self.rows = torch.cat([self.rows, rows])
        self.bounds = torch.cat([self.bounds, values])

    def best(
        self,
        acqf: AcquisitionFunction,
        pending: Tensor,
        failed: Tensor,
        space: SearchSpace,
    ) -> Tensor | None:
        """The best row apart from pending ones, ``1 x d_x``; None if all are taken."""
        apart = gaps(space, self.rows, pending, failed) > SEPARATION
        self.rows, self.bounds = self.rows[apart], self.bounds[apart]
        if not len(self.rows):
            return None
        fresh, num = torch.zeros_like(self.bounds, dtype=torch.bool), _AT_ONCE
        while True:
            first = self.bounds.topk(min(num, len(self.bounds))).indices
            if fresh[first[0]]:
                return self.rows[first[:1]]
            stale, num = first[~fresh[first]], 2 * num
            self.bounds[stale] = score(acqf, self.rows[stale])
            fresh[stale] = True


def neighbours(x: Tensor, space: SearchSpace) -> Tensor:
    """Decisions with another category, or a value 1, 2, 4, ... places before or behind.

    Shapes: ``x``: ``d_x``, returns ``m x d_x``.
    """
    rows = [x.unsqueeze(0)[:0]]
    for j, values in space.values.items():
        reached = range(len(values))
        if j not in space.categories:
            i = bisect_left(values, x[j].item())
            strides = [2**k for k in range(len(values).bit_length())]
            places = {i - stride for stride in strides} | {i + s for s in strides}
            reached = sorted(k for k in places if k in reached)
        moved = x.repeat(len(reached), 1)
        moved[:, j] = x.new_tensor([values[k] for k in reached])
        rows.append(moved[moved[:, j] != x[j]])
    return torch.cat(rows)
