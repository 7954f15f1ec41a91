"""Several distributions on one list of contexts, and the set that measures them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo.ambiguity import AmbiguitySet, FullSimplex, NoAmbiguity
from botorch_drbo.contexts import ContextSet

SetOrMaker = AmbiguitySet | Callable[[Tensor], AmbiguitySet]
"""An ambiguity set; or, for one that knows where its contexts lie, a function that
makes it from contexts ``n x d_c``. Its own radius does not count."""


def check_has_radius(ambiguity_set: AmbiguitySet) -> AmbiguitySet:
    """Return the set if there is a radius to choose.

    Raises:
        InputDataError: It is no ambiguity set, or one of the two that have one size.
    """
    if not isinstance(ambiguity_set, AmbiguitySet):
        raise InputDataError(
            "`ambiguity_set` must be an AmbiguitySet, or a function that makes one "
            f"from contexts, got {type(ambiguity_set).__name__}."
        )
    if isinstance(ambiguity_set, (NoAmbiguity, FullSimplex)):
        raise InputDataError(
            f"{type(ambiguity_set).__name__} has no radius to choose. Give a set that "
            "has one, for example `ambiguity_set=TotalVariation(0.2)`."
        )
    return ambiguity_set


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
    if isinstance(ambiguity_set, AmbiguitySet) and ambiguity_set.knows_positions:
        if not all(torch.equal(first, contexts.points) for contexts in context_sets):
            raise InputDataError(
                f"This {type(ambiguity_set).__name__} knows the contexts of one list, "
                "and the distributions are on several. Give a function that makes the "
                "set for any contexts, for example `lambda points: "
                "Wasserstein(0.0, torch.cdist(points, points))`."
            )
        weights = torch.stack([contexts.weights.double() for contexts in context_sets])
        return _fitting(ambiguity_set, weights), weights
    joined = torch.cat([contexts.points.double() for contexts in context_sets])
    points, place = joined.unique(dim=0, return_inverse=True)
    weights = points.new_zeros(len(context_sets), len(points))
    sizes = [contexts.num_points for contexts in context_sets]
    for row, contexts, at in zip(
        weights, context_sets, place.split(sizes), strict=True
    ):
        row.index_add_(0, at, contexts.weights.double())
    if not isinstance(ambiguity_set, AmbiguitySet) and callable(ambiguity_set):
        ambiguity_set = ambiguity_set(points)
    return _fitting(ambiguity_set, weights), weights


def _fitting(ambiguity_set: AmbiguitySet, weights: Tensor) -> AmbiguitySet:
    n = weights.shape[-1]
    check_has_radius(ambiguity_set)._check_sizes(n, n)
    return ambiguity_set
