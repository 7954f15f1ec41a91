"""Where the ascents of an acquisition function begin: one start on each hill."""

from __future__ import annotations

import torch
from botorch.acquisition import AcquisitionFunction
from scipy.spatial import cKDTree
from torch import Tensor

from botorch_drbo.algorithms.candidates import score
from botorch_drbo.sampling import sobol


def hilltops(
    acqf: AcquisitionFunction, bounds: Tensor, num: int, num_samples: int, seed: int
) -> Tensor:
    r"""The highest samples that are higher than their neighbours.

    Of Sobol points that fill the unit cube, those that none of their nearest
    ``2 d_x + 2`` exceeds, best first: fewer than ``num`` where there are fewer hills.
    BoTorch draws its starts at random, the higher the likelier: several then climb the
    same hill, and a narrow hill may get none.

    Args:
        acqf: A function of decisions in the unit cube, ``b x 1 x d_x``.
        bounds: The unit cube, ``2 x d_x``.
        num: The number of starts, at most.
        num_samples: The number of Sobol points.
        seed: Decides them.

    Returns:
        Starts, ``k x 1 x d_x`` with ``1 <= k <= num``.
    """
    d_x = bounds.shape[-1]
    unit = sobol(num_samples, d_x, seed)
    points = unit.to(bounds)
    values = score(acqf, points)
    neighbours = min(2 * d_x + 2, num_samples - 1)
    # The first neighbour of a point is itself.
    _, near = cKDTree(unit.numpy()).query(unit.numpy(), k=range(1, neighbours + 2))
    highest = values[torch.as_tensor(near, device=values.device)].amax(-1)
    hills = (values >= highest).nonzero().squeeze(-1)
    order = values[hills].argsort(descending=True, stable=True)
    return points[hills[order[:num]]].unsqueeze(-2)
