"""The inputs of a model: numbers in a unit cube, categories separately."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial

import torch
from botorch.models.transforms.input import (
    ChainedInputTransform,
    InputTransform,
    Normalize,
    NumericToCategoricalEncoding,
    Round,
)
from torch import Tensor
from torch.nn.functional import one_hot

from botorch_drbo.problem.search_space import Categories


def model_inputs(bounds: Tensor, categories: Categories) -> InputTransform:
    r"""The input transform of a model.

    Numbers are scaled to the unit cube. A category becomes a vector with a one at its
    place: any two are equally far apart, so that the kernel knows no order.

    Args:
        bounds: Of the model's inputs, ``2 x d``.
        categories: Columns that are categories, and how many there are.

    Returns:
        The transform.

    Example:
        >>> bounds = torch.tensor([[0.0, 0.0], [10.0, 2.0]])
        >>> model_inputs(bounds, {1: 3})(torch.tensor([[5.0, 2.0]]))
        tensor([[0.5000, 0.0000, 0.0000, 1.0000]])
    """
    d = bounds.shape[-1]
    if not categories:
        return Normalize(d, bounds=bounds)
    parts: OrderedDict[str, InputTransform] = OrderedDict()
    parts["round"] = Round(integer_indices=list(categories))
    numbers = [j for j in range(d) if j not in categories]
    if numbers:
        parts["normalize"] = Normalize(d, indices=numbers, bounds=bounds)
    parts["encode"] = NumericToCategoricalEncoding(
        d,
        categorical_features=dict(categories),
        encoders={j: partial(one_hot, num_classes=k) for j, k in categories.items()},
    )
    return ChainedInputTransform(**parts)


def num_columns(d: int, categories: Categories) -> Tensor:
    """How many columns of the model each of ``d`` inputs becomes, ``d``."""
    return torch.tensor([categories.get(j, 1) for j in range(d)])
