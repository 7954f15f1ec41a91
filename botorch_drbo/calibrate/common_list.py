"""Several distributions on one list of contexts, and the set whose distance is used."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.ambiguity.sizing import (
    SetOrMaker,
    bound_to_list,
    check_has_radius,
    made_for,
)
from botorch_drbo.contexts import ContextSet


def on_common_list(
    context_sets: Sequence[ContextSet], ambiguity_set: SetOrMaker
) -> tuple[AmbiguitySet, Tensor]:
    """Write distributions as weights on one list, and make the set for it.

    A set that knows positions by a matrix stays on the list that it was made for.
    Otherwise equal contexts become one.

    Args:
        context_sets: ``k`` distributions.
        ambiguity_set: The set, or what makes it.

    Returns:
        The set, and weights ``k x n``, float64.

    Raises:
        InputDataError: No such set, or one that knows the contexts of another list.
        BotorchTensorDimensionError: Other numbers of columns, or of contexts.
    """
    for contexts in context_sets:
        if not isinstance(contexts, ContextSet):
            raise InputDataError(
                f"Distributions must be ContextSets, got {type(contexts).__name__}. "
                "For observed contexts: ContextSet.empirical(observed)."
            )
    first = context_sets[0].points
    columns = sorted({contexts.dim for contexts in context_sets})
    if len(columns) > 1:
        raise BotorchTensorDimensionError(
            f"All distributions must have as many context columns, got {columns}."
        )
    bound = bound_to_list(ambiguity_set)
    if bound is not None:
        if not all(torch.equal(first, contexts.points) for contexts in context_sets):
            raise InputDataError(
                f"This {type(bound).__name__} knows the contexts of one list, "
                "and the distributions are on several. Give a function that makes the "
                "set for any contexts, for example `lambda points: "
                "Wasserstein(0.0, torch.cdist(points, points))`."
            )
        weights = torch.stack([contexts.weights.double() for contexts in context_sets])
        return _fitting(bound, weights), weights
    joined = torch.cat([contexts.points.double() for contexts in context_sets])
    points, index = joined.unique(dim=0, return_inverse=True)
    weights = points.new_zeros(len(context_sets), len(points))
    sizes = [contexts.num_points for contexts in context_sets]
    for row, contexts, at in zip(
        weights, context_sets, index.split(sizes), strict=True
    ):
        row.index_add_(0, at, contexts.weights.double())
    return _fitting(made_for(ambiguity_set, points), weights), weights


def _fitting(ambiguity_set: AmbiguitySet, weights: Tensor) -> AmbiguitySet:
    n = weights.shape[-1]
    check_has_radius(ambiguity_set)._check_sizes(n, n)
    return ambiguity_set
