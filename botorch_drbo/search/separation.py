"""A minimum distance of the next decision from pending decisions."""

from __future__ import annotations

import torch
from botorch.acquisition import AcquisitionFunction
from torch import Tensor

from botorch_drbo.problem.feasible import feasible
from botorch_drbo.problem.feasible import sample as feasible_sample
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.sampling import sobol

# Decisions nearer than this (largest coordinate difference, in sides of the box) are
# not asked while one of them is pending.
SEPARATION = 0.01
_NEIGHBOURHOOD = 0.05  # half-width, in sides of the box, of the search for a new one


def best_apart(
    acqf: AcquisitionFunction,
    candidates: Tensor,
    values: Tensor,
    pending: Tensor,
    space: SearchSpace,
    seed: int,
    num_samples: int,
) -> Tensor:
    """The best candidate (``1 x d_x``) at a least distance from pending decisions.

    Pending decisions repel the next one by as much as is still unknown. That can be
    next to nothing, late in a run; and a sample path knows nothing of them. Then the
    best is taken from a sample around the pending decision and over the whole box.
    """
    lower, side = space.bounds[0], space.bounds[1] - space.bounds[0]

    def distance(points: Tensor) -> Tensor:  # n x d_x -> n
        distances = torch.cdist(points / side, pending / side, p=torch.inf)
        return distances.amin(-1)

    best = candidates[values.argmax()].unsqueeze(0)
    if len(pending) == 0 or distance(best) > SEPARATION:
        return best
    unit = sobol(num_samples, space.d_x, seed).to(lower)
    nearby = best + _NEIGHBOURHOOD * (2 * unit - 1) * side
    nearby = nearby.clamp(lower, space.bounds[1])
    if space.is_box:
        global_sample = (lower + unit * side).clamp(lower, space.bounds[1])
    else:
        nearby = space.snap(nearby)
        nearby = nearby[feasible(space, nearby)]
        global_sample = feasible_sample(space, num_samples, seed)
    sample = torch.cat([nearby, global_sample])
    with torch.no_grad():
        values = torch.cat([values, acqf(sample.unsqueeze(-2))])
    sample = torch.cat([candidates, sample])
    separated = distance(sample) > SEPARATION
    if not separated.any():  # the box is full of pending decisions: take the widest gap
        return sample[distance(sample).argmax()].unsqueeze(0)
    return sample[torch.where(separated, values, -torch.inf).argmax()].unsqueeze(0)
