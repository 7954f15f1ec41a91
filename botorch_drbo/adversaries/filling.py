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

    A Sobol set and the corners of the continuous columns, with each combination of the
    listed values of the other columns (a full factorial design). Where these are too
    many, the column with the most values takes the values nearest to Sobol points
    instead, then the next one.
    """
    d_c = box.shape[-1]
    # Full factorial of the listed values, times a Sobol set of the other columns.
    listed = dict(values)
    while prod(map(len, listed.values())) > (
        _MAX_LISTED if len(listed) == d_c else _MAX_COMBINED
    ):
        del listed[max(listed, key=lambda j: len(listed[j]))]
    continuous = [j for j in range(d_c) if j not in listed]
    unit = (
        sobol(64 * 2 ** min(len(continuous), 3), len(continuous), seed)
        if continuous
        else None
    )
    if unit is None:
        unit = torch.empty(1, 0)
    elif len(continuous) <= _MAX_CORNER_DIMENSIONS:
        corners = torch.tensor(list(product((0.0, 1.0), repeat=len(continuous))))
        unit = torch.cat([unit, corners.to(unit)])
    points = torch.lerp(box[0, continuous], box[1, continuous], unit.to(box))  # m x f
    combinations = box.new_tensor(list(product(*listed.values())))  # l x v
    filled = box.new_empty(len(combinations), len(points), d_c)
    filled[..., continuous] = points
    filled[..., list(listed)] = combinations.unsqueeze(1)
    return snapped(filled.flatten(0, 1), values)
