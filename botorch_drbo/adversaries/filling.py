"""Contexts that fill a box: a Sobol set, the corners, all listed values."""

from __future__ import annotations

from itertools import product
from math import prod

import torch
from torch import Tensor

from botorch_drbo.problem.search_space import Values, snapped
from botorch_drbo.sampling import sobol

_MAX_CORNER_DIMENSIONS = 6
_MAX_LISTED = 4096  # combinations of values that are all looked at
_MAX_COMBINED = 64  # the same, each with a sample of the other columns


def filling(box: Tensor, values: Values, seed: int) -> Tensor:
    """Contexts that fill a box, ``m x d_c``.

    Sobol points and corners of the columns in between whose values there is something,
    with each combination of the values of the others. Where these are too many, the
    column with the most values takes the nearest ones of the Sobol points, then the
    next one.
    """
    d_c = box.shape[-1]
    listed = dict(values)
    while prod(map(len, listed.values())) > (
        _MAX_LISTED if len(listed) == d_c else _MAX_COMBINED
    ):
        del listed[max(listed, key=lambda j: len(listed[j]))]
    free = [j for j in range(d_c) if j not in listed]
    unit = sobol(64 * 2 ** min(len(free), 3), len(free), seed) if free else None
    if unit is None:
        unit = torch.empty(1, 0)
    elif len(free) <= _MAX_CORNER_DIMENSIONS:
        corners = torch.tensor(list(product((0.0, 1.0), repeat=len(free))))
        unit = torch.cat([unit, corners.to(unit)])
    points = torch.lerp(box[0, free], box[1, free], unit.to(box))  # m x f
    combinations = box.new_tensor(list(product(*listed.values())))  # l x v
    filled = box.new_empty(len(combinations), len(points), d_c)
    filled[..., free] = points
    filled[..., list(listed)] = combinations.unsqueeze(1)
    return snapped(filled.flatten(0, 1), values)
