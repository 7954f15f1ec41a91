"""Where the ascents of an acquisition function begin: one start on each hill."""

from __future__ import annotations

import torch
from botorch.acquisition import AcquisitionFunction
from scipy.spatial import KDTree
from torch import Tensor

from botorch_drbo.algorithms.candidates import score


def hilltops(acqf: AcquisitionFunction, unit: Tensor, num: int) -> Tensor:
    r"""The highest samples that are higher than their neighbours.

    Of points that fill the unit cube, those that none of their nearest
    ``2 d_x + 2`` exceeds, best first: fewer than ``num`` where there are fewer hills.
    BoTorch draws its starts at random, the higher the likelier: several then climb the
    same hill, and a narrow hill may get none.

    *How often the maximum is missed*, by more than .01 standard deviations of ``y``,
    against an ascent from 200 starts out of 8,192 points, polished (``erbo``, 1,024
    points, 46 histories of 8 to 40 outcomes on portfolio, Ackley and Branin, three
    seeds each): 10 starts drawn as BoTorch does 2 of 138 times, 20 or 40 of them and 10
    hilltops never; at 51, 57, 70 and 53 ms. (``wdrbo``, 36, 32 of them on Ackley, 28 of
    ``sbo_kde``, 10 of ``wdrbo_exact``, against 60 starts: never, either way. Too few to
    tell one in a hundred.)

    Args:
        acqf: A function of decisions in the unit cube, ``b x 1 x d_x``.
        unit: The points, ``m x d_x``.
        num: The number of starts, at most.

    Returns:
        Starts, ``k x 1 x d_x`` with ``1 <= k <= num``.
    """
    return unit[hills(unit, score(acqf, unit), num)].unsqueeze(-2)


def hills(unit: Tensor, values: Tensor, num: int) -> Tensor:
    """Which points are higher than their neighbours, best first.

    Args:
        unit: Points that fill the unit cube, ``m x d_x``.
        values: Their heights, ``m``.
        num: How many, at most.

    Returns:
        Row numbers, ``k`` with ``1 <= k <= num``.
    """
    num_samples, d_x = unit.shape
    neighbours = min(2 * d_x + 2, num_samples - 1)
    # The first neighbour of a point is itself.
    places = unit.cpu().numpy()
    _, near = KDTree(places).query(places, k=neighbours + 1)
    near = torch.as_tensor(near, device=values.device).reshape(num_samples, -1)
    highest = values[near].amax(-1)
    peaks = (values >= highest).nonzero().squeeze(-1)
    order = values[peaks].argsort(descending=True, stable=True)
    return peaks[order[:num]]
