"""Where the ascents of an acquisition function begin: one start on each hill."""

from __future__ import annotations

import math

import torch
from botorch.acquisition import AcquisitionFunction
from scipy.spatial import KDTree
from torch import Tensor

from botorch_drbo.search.candidates import score


def hilltops(acqf: AcquisitionFunction, unit: Tensor, num: int) -> Tensor:
    r"""The samples that are higher than their neighbours, the most promising first.

    Of points that fill the unit cube, those that none of their nearest
    ``2 d_x + 2`` exceeds: fewer than ``num`` where there are fewer hills. They are
    ranked by height and prominence together,

    .. math:: h_i + (h_i - s_i)

    with :math:`s_i` the height of the saddle at which one has to pass from hill ``i``
    to a higher one, walking from neighbour to neighbour. A hill that stands alone rises
    above its sample as it rises above its saddle; on a long ridge, along a variable
    that hardly counts, every other sample is a hilltop, but none of them stands out:
    ranked by height alone they can take all starts.

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
    finite = values[values.isfinite()]
    # A moat is hardly deeper than the lowest of the rest, which is a hill all the same.
    moat = math.nextafter(finite.min().item(), -math.inf) if len(finite) else 0.0
    height = values.double().nan_to_num(neginf=moat).tolist()
    neighbours = min(2 * d_x + 2, num_samples - 1)
    # The first neighbour of a point is itself.
    places = unit.cpu().numpy()
    _, near = KDTree(places).query(places, k=neighbours + 1)
    saddles = _saddles(height, near.reshape(num_samples, -1).tolist())
    best = sorted(saddles, key=lambda i: saddles[i] - 2 * height[i])
    return torch.tensor(best[:num], device=values.device)


def _saddles(height: list[float], near: list[list[int]]) -> dict[int, float]:
    """The hilltops, highest first, and the height of the saddle of each.

    The points emerge from a falling sea, highest first. One without a neighbour on land
    is a new island. One between islands joins them: for all but the highest it is the
    saddle. What is never joined has the sea's last level.
    """
    saddles: dict[int, float] = {}
    lowest = min(height)
    above = [-1] * len(height)  # a point nearer to the top of its island; under water

    def top(i: int) -> int:
        while above[i] != i:
            above[i] = above[above[i]]
            i = above[i]
        return i

    for i in sorted(range(len(height)), key=lambda i: -height[i]):
        tops = {top(j) for j in near[i] if above[j] >= 0}
        if not tops:
            saddles[i] = lowest
        above[i] = max(tops, key=height.__getitem__, default=i)
        for other in tops - {above[i]}:
            saddles[other] = height[i]
            above[other] = above[i]
    return saddles
