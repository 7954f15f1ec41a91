"""Starting points of the ascents: local maxima of the acquisition function on a sample.

They are ranked by height and prominence, the 0-dimensional persistence of the
superlevel sets on the graph of nearest neighbours [Edelsbrunner2002persistence]_.
"""

from __future__ import annotations

import math

import torch
from botorch.acquisition import AcquisitionFunction
from scipy.spatial import KDTree
from torch import Tensor

from botorch_drbo.search.candidates import score


def hilltops(acqf: AcquisitionFunction, unit: Tensor, num: int) -> Tensor:
    r"""The local maxima among samples, by height plus prominence.

    Of points that fill the unit cube, those that none of their nearest
    ``2 d_x + 2`` exceeds: fewer than ``num`` where there are fewer hills. They are
    ranked by height and prominence together,

    .. math:: h_i + (h_i - s_i)

    with :math:`s_i` the height of the saddle, the highest minimum of all paths from
    hill ``i`` to a higher one along neighbours; :math:`h_i - s_i` is its prominence,
    the persistence of its component of the superlevel sets
    [Edelsbrunner2002persistence]_. A hill that stands alone rises above its sample as
    it rises above its saddle; on a long ridge, along a variable that hardly counts,
    every other sample is a local maximum, but of small prominence: ranked by height
    alone they can take all starts.

    Args:
        acqf: A function of decisions in the unit cube, ``b x 1 x d_x``.
        unit: The points, ``m x d_x``.
        num: The number of starts, at most.

    Returns:
        Starts, ``k x 1 x d_x`` with ``1 <= k <= num``.
    """
    return unit[hills(unit, score(acqf, unit), num)].unsqueeze(-2)


def hills(unit: Tensor, values: Tensor, num: int) -> Tensor:
    """Local maxima among points, by height plus prominence.

    Args:
        unit: Points that fill the unit cube, ``m x d_x``.
        values: Their heights, ``m``.
        num: How many, at most.

    Returns:
        Row numbers, ``k`` with ``1 <= k <= num``.
    """
    num_samples, d_x = unit.shape
    # A function may be minus infinity where a decision is infeasible beyond doubt.
    finite = values[values.isfinite()]
    # Minus infinity becomes a floor just below the lowest finite value.
    floor = math.nextafter(finite.min().item(), -math.inf) if len(finite) else 0.0
    height = values.double().nan_to_num(neginf=floor).tolist()
    # Two neighbours for each side of each column make the graph connected enough for
    # ridges, and few enough that a hill is still a local maximum.
    num_neighbours = min(2 * d_x + 2, num_samples - 1)
    # A k-d tree: all distances of thousands of samples would take longer than the
    # function.
    # The first neighbour of a point is itself.
    coordinates = unit.cpu().numpy()
    _, neighbours = KDTree(coordinates).query(coordinates, k=num_neighbours + 1)
    saddles = _saddles(height, neighbours.reshape(num_samples, -1).tolist())
    # Largest h + (h - s) first.
    # Height alone would take all starts from one long ridge, prominence alone small
    # bumps far below the best.
    best = sorted(saddles, key=lambda i: saddles[i] - 2 * height[i])
    return torch.tensor(best[:num], device=values.device)


def _saddles(height: list[float], neighbours: list[list[int]]) -> dict[int, float]:
    """The local maxima, highest first, and the height of the saddle of each.

    0-dimensional persistence by union-find: points enter the superlevel set highest
    first. One without a neighbour in it is born as a component. One between components
    merges them: for all but the highest (elder rule) it is the saddle. The saddle of a
    component that is never merged is the lowest value.
    """
    saddles: dict[int, float] = {}
    lowest = min(height)
    # Towards the component's maximum; -1 outside the superlevel set.
    parent = [-1] * len(height)

    def find(i: int) -> int:
        while parent[i] != i:  # path halving
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    # Sweep the level downwards: the superlevel set grows by one point at a time.
    for i in sorted(range(len(height)), key=lambda i: -height[i]):
        # The components that this point touches: none is a birth, several are a merger.
        roots = {find(j) for j in neighbours[i] if parent[j] >= 0}
        # A birth: until it meets a higher component its saddle is the lowest value.
        if not roots:
            saddles[i] = lowest
        parent[i] = max(roots, key=height.__getitem__, default=i)
        # Elder rule: all but the highest component end at this saddle.
        for merged in roots - {parent[i]}:
            saddles[merged] = height[i]
            parent[merged] = parent[i]
    return saddles
