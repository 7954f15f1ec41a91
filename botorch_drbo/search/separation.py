"""A minimum distance of the next decision from pending and from failed decisions."""

from __future__ import annotations

from bisect import bisect_left

import torch
from botorch.acquisition import AcquisitionFunction
from torch import Tensor
from torch.nn.functional import pad

from botorch_drbo.problem.equalities import EXACT
from botorch_drbo.problem.feasible import feasible, settled
from botorch_drbo.problem.feasible import sample as feasible_sample
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.sampling import sobol
from botorch_drbo.search.candidates import best_of, or_worst

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
    lower, side = space.bounds[0], space.bounds[1] - space.bounds[0]
    # A discrete column has to be equal: its next value is another decision.
    same = torch.full_like(side, SAME)
    same[list(space.values)] = 0.0

    # The largest coordinate difference in sides of the box, to the nearest pending
    # decision; one if there is none, zero of what has failed.
    def gap(points: Tensor) -> Tensor:  # n x d_x -> n
        gaps = torch.cdist(points / side, pending / side, p=torch.inf)
        for j in space.categories:  # indices know no distance
            gaps = gaps.where(points[:, j : j + 1] == pending[:, j], 1.0)
        gaps = pad(gaps, (0, 1), value=1.0).amin(-1)
        for row in failed:
            again = (space.gaps(points, row).abs() <= same).all(-1)
            gaps = gaps.masked_fill(again, 0.0)
        return gaps

    # The usual case: the maximum is apart already, and nothing has to be drawn.
    best = candidates[values.argmax()].unsqueeze(0)
    if gap(best) > SEPARATION:
        return best
    # The maximum is taken. The second best place is near it, on the rim of what is too
    # near, or on another hill: both are sampled.
    unit = sobol(num_samples, space.d_x, seed).to(lower)
    # A failed decision forbids a smaller neighbourhood than a pending one.
    reaches = [SEPARATION, SAME] if len(failed) else [SEPARATION]
    around = [best + _NEIGHBOURHOOD * r * (2 * unit - 1) * side for r in reaches]
    nearby = torch.cat(around).clamp(lower, space.bounds[1])
    if space.is_box:
        global_sample = (lower + unit * side).clamp(lower, space.bounds[1])
    else:
        if len(failed):
            nearby = torch.cat([nearby, *_neighbours(best, space)])
        nearby = settled(space, space.snap(nearby))
        nearby = nearby[feasible(space, nearby, EXACT)]
        global_sample = feasible_sample(space, num_samples, seed)
    sample = torch.cat([nearby, global_sample])
    with torch.no_grad():
        # Sampled, not climbed: the slope leads back to the forbidden maximum.
        values = torch.cat([values, or_worst(acqf(sample.unsqueeze(-2)))])
    sample = torch.cat([candidates, sample])
    # If nothing is far enough, what is farthest: in a crowded box an answer is still
    # due.
    gaps = gap(sample)
    return best_of(sample, values, gaps > min(SEPARATION, gaps.max().item() - _TIE))


def _neighbours(x: Tensor, space: SearchSpace) -> list[Tensor]:
    """``1 x d_x`` decisions with another category, or the value before or behind."""
    rows = []
    for j, values in space.values.items():
        if j not in space.categories:
            i = bisect_left(values, x[0, j].item())
            values = values[max(i - 1, 0) : i + 2]
        for value in values:
            rows.append(x.clone())
            rows[-1][0, j] = value
    return rows
