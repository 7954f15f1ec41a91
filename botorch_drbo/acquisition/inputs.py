"""The arguments that all acquisition functions over contexts have: types and checks."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import TypedDict, TypeVar, cast

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.models import MultiTaskGP
from botorch.models.deterministic import AffineDeterministicModel
from botorch.models.model import Model, ModelList
from torch import Tensor

from botorch_drbo._validation import check_count
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import Objective
from botorch_drbo.posterior.factory import Method
from botorch_drbo.posterior.models import some_inputs


def check_context_set(context_set: ContextSet) -> ContextSet:
    """Return the context set."""
    if not isinstance(context_set, ContextSet):
        raise InputDataError(
            f"`context_set` must be a ContextSet, got {type(context_set).__name__}."
            " Build one with ContextSet(points, weights) or ContextSet.empirical."
        )
    return context_set


_Objective = TypeVar("_Objective", bound=Objective)


def empty_context_set() -> ContextSet:
    """One context of no columns: for a model of decisions alone."""
    contexts = ContextSet(torch.zeros(1, 1, dtype=torch.double))
    contexts.points = contexts.points[:, :0]
    return contexts


def check_objective(objective: _Objective, context_set: ContextSet) -> _Objective:
    """Return the objective on these contexts, if it is one and fits their number.

    A set that has no distances of its own takes those of the contexts: then a copy of
    the objective has it, and the user's stays as it is.
    """
    if not isinstance(objective, Objective):
        raise InputDataError(
            f"`objective` must be an Objective, got {type(objective).__name__}. "
            "Wrap an ambiguity set: UncertaintyObjective(FullSimplex())."
        )
    ball = ambiguity_set_at(objective.ambiguity_set, context_set, "objective")
    if ball is not objective.ambiguity_set:
        objective = copy.deepcopy(objective)
        objective.ambiguity_set = ball
    return objective


def ambiguity_set_at(
    ambiguity_set: AmbiguitySet, context_set: ContextSet, name: str
) -> AmbiguitySet:
    """Return the set on these contexts, if it fits their number."""
    n = context_set.num_points
    ambiguity_set = ambiguity_set.at(context_set.points)
    try:
        ambiguity_set._check_sizes(n, n)
    except BotorchTensorDimensionError as error:
        raise BotorchTensorDimensionError(
            f"`{name}` and `context_set` do not fit: {error} Build the "
            f"{type(ambiguity_set).__name__} from the {n} points of this "
            "context set."
        ) from error
    return ambiguity_set


def check_decision_columns(X: Tensor, d_x: int) -> None:
    """Raise unless ``X`` holds decisions alone, ``... x d_x``."""
    if X.shape[-1] != d_x:
        raise BotorchTensorDimensionError(
            f"`X` must have {d_x} columns, the decisions alone, got shape "
            f"{tuple(X.shape)}. The contexts come from the context set."
        )


def count_inputs(model: Model, given: int | None) -> int:
    """The columns of the model's raw inputs, before any input transform."""
    if given is not None:
        check_count(given, "num_inputs")
    if any(isinstance(part, MultiTaskGP) for part in model.modules()):
        raise UnsupportedError(
            "MultiTaskGP has a task column among its inputs, which is neither decision "
            "nor context. Fit a SingleTaskGP on [x, c], one per task."
        )
    found = _read_off(model)
    if found is None and given is None:
        raise UnsupportedError(
            f"{type(model).__name__} does not tell how many inputs it has, so decision "
            "and context columns cannot be told apart. Pass `num_inputs`, the number "
            "of columns of [x, c]."
        )
    if found is not None and given not in (None, found):
        raise BotorchTensorDimensionError(
            f"`num_inputs` is {given}, but the model has {found} inputs."
        )
    return cast(int, given if found is None else found)


def _read_off(model: Model) -> int | None:
    if isinstance(model, ModelList):
        return _read_off(cast(Model, model.models[0]))
    if isinstance(model, AffineDeterministicModel):
        return cast(Tensor, model.a).shape[0]
    inputs = some_inputs(model)
    return None if inputs is None else inputs.shape[-1]


def context_columns(
    indices: Sequence[int] | None, num_joint: int, d_c: int
) -> tuple[int, ...]:
    """Non-negative context columns; the last ``d_c`` by default."""
    if d_c >= num_joint:
        raise BotorchTensorDimensionError(
            f"The model has {num_joint} inputs and the context set {d_c} columns: no "
            "column is left for the decision. Fit the model on [x, c] jointly."
        )
    if indices is None:
        return tuple(range(num_joint - d_c, num_joint))
    if not isinstance(indices, Sequence) or not all(type(i) is int for i in indices):
        raise InputDataError(
            f"`context_indices` must be a sequence of integers, got {indices!r}."
        )
    columns = tuple(i + num_joint if i < 0 else i for i in indices)
    if (
        len(columns) != d_c
        or len(set(columns)) != d_c
        or not all(0 <= i < num_joint for i in columns)
    ):
        raise BotorchTensorDimensionError(
            f"`context_indices` must name {d_c} different columns of the model's "
            f"{num_joint} inputs, got {list(indices)}."
        )
    return columns


class ContextOptions(TypedDict, total=False):
    """Options of every acquisition function over contexts."""

    # The model's input columns that hold the context; by default the last ``d_c``.
    context_indices: Sequence[int] | None
    # Combines several outputs into one, or changes the sign. Sample paths take a
    # ``ScalarizedPosteriorTransform`` of one weight: -1 minimises.
    posterior_transform: PosteriorTransform | None
    # Bytes for the temporaries of posterior and paths.
    memory_budget: int


class MomentOptions(ContextOptions, total=False):
    """Options of what follows from moments: those of ``ContextOptions``, and these."""

    # The number of contexts that represent the unknown context of each pending
    # decision.
    num_pending_contexts: int
    # The number of columns of ``[x, c]``, for a model that does not state it.
    num_inputs: int | None
    # How moments are computed; see ``marginal_posterior``.
    method: Method


class PosteriorOptions(MomentOptions, total=False):
    """Options of bounds of a posterior: those of ``MomentOptions``, and one more."""

    # Decisions ``m x d_x`` that are being evaluated.
    X_pending: Tensor | None


class ConfidenceBoundOptions(PosteriorOptions, total=False):
    r"""Keyword options of every confidence bound.

    Args:
        misspecification: The largest difference between the outcome and a function that
            the model can represent, in the units of y; see ``EnlargedConfidenceUCB``.

    Example:
        >>> from botorch_drbo.acquisition.inputs import ConfidenceBoundOptions
        >>> options: ConfidenceBoundOptions = {"method": "exact", "misspecification": 1}
        >>> sorted(options)
        ['method', 'misspecification']
    """

    # The largest difference between the outcome and a function that the model can
    # represent, in the units of y; see ``EnlargedConfidenceUCB``.
    misspecification: float | Tensor


class PathOptions(ContextOptions, total=False):
    r"""Keyword options of every average over sample paths.

    Args:
        num_paths: The number of sample paths ``S``.
        num_features: Random features of each path's prior part.
        seed: The seed of the paths; None draws one from torch's generator.

    Example:
        >>> from botorch_drbo.acquisition.inputs import PathOptions
        >>> options: PathOptions = {"num_paths": 16, "seed": 0}
        >>> sorted(options)
        ['num_paths', 'seed']
    """

    # The number of sample paths ``S``.
    num_paths: int
    # Random features of each path's prior part.
    num_features: int
    # The seed of the paths; None draws one from torch's generator.
    seed: int | None


def with_options(kind: type) -> inspect.Signature:
    """The signature of a class that hands ``**options`` on, with them."""
    _, *own = inspect.signature(kind.__init__).parameters.values()
    if not own or own[-1].kind is not inspect.Parameter.VAR_KEYWORD:
        return inspect.Signature(own)
    *own, _ = own
    named = {parameter.name for parameter in own}
    above = inspect.signature(kind.__mro__[1]).parameters.values()
    handed_on = [
        parameter
        for parameter in above
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        and parameter.name not in named
    ]
    return inspect.Signature([*own, *handed_on])
