"""The model of the outcome, fitted from scratch to the observations."""

from __future__ import annotations

from typing import cast

from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.model import Model

from botorch_drbo.posterior.wrapped import with_known_columns, with_perturbation
from botorch_drbo.problem.round import History
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.surrogate.base import ModelData, Surrogate
from botorch_drbo.surrogate.botorch_default import BoTorchDefault


def fit_outcomes(
    history: History, space: SearchSpace, surrogate: Surrogate, *, uses_contexts: bool
) -> Model:
    """Fit the model of the outcome."""
    if uses_contexts:
        data = joint_data(history, space)
    else:  # the context is noise too, of a size that nobody knows
        data = ModelData(
            history.X,
            history.Y,
            space.bounds,
            None,
            space.categories,
            space.model_bounds.shape[-1],
            features=space.features,
        )
    model = surrogate.fit(data)
    model = model.requires_grad_(False)  # only x is differentiated from here on
    return _of_space(model, space) if uses_contexts else model


def joint_data(history: History, space: SearchSpace) -> ModelData:
    """What a model of ``[x, c]`` is fitted to."""
    return ModelData(
        space.model_inputs(history.X, history.C),
        history.Y,
        space.model_bounds,
        history.Yvar,
        space.joint_categories,
        space.model_bounds.shape[-1],
        features=space.joint_features,
    )


def fit_constraints(history: History, space: SearchSpace) -> ModelListGP | None:
    """Fit a model of each measured constraint, independently: BoTorch's own."""
    data = history.constraints
    if data is None:
        return None
    inputs = space.model_inputs(data.X, data.C)
    bounds, categories = space.model_bounds, space.joint_categories
    models = []
    for column in data.G.split(1, dim=-1):
        values = ModelData(
            inputs,
            column,
            bounds,
            None,
            categories,
            noun="values of a constraint",
            features=space.joint_features,
        )
        model = BoTorchDefault().fit(values).requires_grad_(False)
        models.append(cast(SingleTaskGP, _of_space(model, space)))
    return ModelListGP(*models)


def with_known_context(model: Model, space: SearchSpace) -> Model:
    """A model of ``[x, c]`` that is constant in the known columns of the context."""
    known = space.known_context
    if known is None:
        return model
    columns = space.known_columns
    return with_known_columns(model, [space.d_x + j for j in columns], known[columns])


def each_with_known_context(models: Model, space: SearchSpace) -> ModelListGP:
    """The same of each model of a list."""
    members = cast(ModelListGP, models).models
    known = [with_known_context(cast(Model, member), space) for member in members]
    return ModelListGP(*cast(list[SingleTaskGP], known))


def _of_space(model: Model, space: SearchSpace) -> Model:
    """A model of ``[x, c]`` with perturbations and known columns."""
    perturbed = with_perturbation(model) if space.perturbation else model
    return with_known_context(perturbed, space)
