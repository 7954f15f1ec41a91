"""The model of the outcome, fitted from scratch to what has been observed."""

from __future__ import annotations

from typing import cast

from botorch.fit import fit_gpytorch_mll
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms.input import InputTransform
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from botorch_drbo.posterior import with_known_columns, with_perturbation
from botorch_drbo.problem.history import History
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.surrogate.fitting import minimise_in_logarithms
from botorch_drbo.surrogate.given_model import ModelMaker, make_model
from botorch_drbo.surrogate.hyperparameters import FixedHyperparameters
from botorch_drbo.surrogate.model_inputs import model_inputs
from botorch_drbo.surrogate.outcome_units import level_and_unit, scaled_model


def fit_outcomes(
    history: History,
    space: SearchSpace,
    *,
    uses_contexts: bool,
    hyperparameters: FixedHyperparameters | None = None,
    maker: ModelMaker | None = None,
) -> SingleTaskGP:
    r"""Fit the model of the outcome.

    Args:
        history: What has been observed, to be maximised.
        space: The boxes of decisions and contexts.
        uses_contexts: Whether the model is one of ``[x, c]``; otherwise of ``x`` alone.
        hyperparameters: Those of the model if they are known: then nothing is fitted.
        maker: The user's own function that makes the model.

    Returns:
        The model, in evaluation mode, without parameters to differentiate; of
        ``[x, c]`` one that is constant in the known columns of the context.
    """
    # Of x alone the context is noise too, of a size that nobody knows.
    Yvar = history.Yvar if uses_contexts else None
    inputs, bounds, categories = history.X, space.bounds, space.categories
    if uses_contexts:
        inputs = space.model_inputs(history.X, history.C)
        bounds, categories = space.model_bounds, space.joint_categories
    if maker is not None:
        made = make_model(maker, inputs, history.Y, Yvar, bounds)
        model = cast(SingleTaskGP, made)
    elif hyperparameters is not None:
        model = hyperparameters.model(
            inputs,
            history.Y,
            bounds,
            space.model_bounds.shape[-1],
            Yvar,
            categories,
        )
    else:
        transform = model_inputs(bounds, categories)
        model = _fit(inputs, history.Y, Yvar, transform, "outcomes")
    model = model.requires_grad_(False)  # only x is differentiated from here on
    return _of_space(model, space) if uses_contexts else model


def fit_constraints(history: History, space: SearchSpace) -> ModelListGP | None:
    r"""Fit a model of each measured constraint, independently.

    Args:
        history: What has been observed.
        space: The boxes of decisions and contexts.

    Returns:
        The models of ``[x, c]``, one for each constraint; None without any.
    """
    data = history.constraints
    if data is None:
        return None
    inputs = space.model_inputs(data.X, data.C)
    bounds, categories = space.model_bounds, space.joint_categories
    models = []
    for column in data.G.split(1, dim=-1):
        transform = model_inputs(bounds, categories)
        model = _fit(inputs, column, None, transform, "values of a constraint")
        models.append(_of_space(model.requires_grad_(False), space))
    return ModelListGP(*models)


def with_known_context(model: SingleTaskGP, space: SearchSpace) -> SingleTaskGP:
    """A model of ``[x, c]`` that is constant in the known columns of the context."""
    known = space.known_context
    if known is None:
        return model
    columns = space.known_columns
    return with_known_columns(model, [space.d_x + j for j in columns], known[columns])


def _fit(
    inputs: Tensor, Y: Tensor, Yvar: Tensor | None, transform: InputTransform, noun: str
) -> SingleTaskGP:
    """A model fitted to values ``t x 1`` that users know under a name."""
    units = level_and_unit(Y, noun)
    model = scaled_model(inputs, Y, *units, Yvar, input_transform=transform)
    likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
    fit_gpytorch_mll(likelihood, optimizer=minimise_in_logarithms)
    return model.eval()


def _of_space(model: SingleTaskGP, space: SearchSpace) -> SingleTaskGP:
    """A model of ``[x, c]`` that knows of perturbations and known columns."""
    perturbed = with_perturbation(model) if space.perturbation else model
    return with_known_context(perturbed, space)
