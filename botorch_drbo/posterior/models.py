"""Properties of a BoTorch model that decide how its posterior is computed."""

from __future__ import annotations

from typing import TypeVar, cast

import torch
from botorch.acquisition.objective import (
    PosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import UnsupportedError
from botorch.models import SingleTaskVariationalGP
from botorch.models.deterministic import (
    FixedSingleSampleModel,
    MatheronPathModel,
    PosteriorMeanModel,
)
from botorch.models.model import Model, ModelList
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.sampling.pathwise.utils import get_train_inputs
from gpytorch.models import ExactGP
from gpytorch.module import Module as GPyTorchModule
from gpytorch.settings import prior_mode
from torch import Tensor
from torch.nn import Module

from botorch_drbo.posterior.blocks import any_variance
from botorch_drbo.posterior.ensemble import ModelEnsemble

_MADE_OF_A_MODEL = (PosteriorMeanModel, FixedSingleSampleModel, MatheronPathModel)

AnyModule = TypeVar("AnyModule", bound=Module)


def only_model(model: Model) -> Model:
    """The model of a list of one; any other model as it is."""
    if not isinstance(model, Model):
        kind, advice = type(model).__name__, "Fit one, such as a SingleTaskGP."
        if isinstance(model, ExactGP):
            advice = (
                "Let its class inherit from botorch.models.gpytorch.GPyTorchModel as "
                f"well, `class {kind}(ExactGP, GPyTorchModel)` with `_num_outputs = 1`,"
                " or give mean and kernel to a SingleTaskGP (`mean_module`, "
                "`covar_module`)."
            )
        raise UnsupportedError(f"`model` must be a BoTorch model, got {kind}. {advice}")
    while isinstance(model, ModelList) and len(model.models) == 1:
        model = cast(Model, model.models[0])
    return model


def some_inputs(model: Model) -> Tensor | None:
    """Training inputs in the user's units, ``... x t x d``; None if there are none."""
    if isinstance(model, ModelList | ModelEnsemble):
        return some_inputs(cast(Model, model.models[0]))
    if isinstance(model, _MADE_OF_A_MODEL):
        return some_inputs(model.model)
    if isinstance(model, SingleTaskVariationalGP) or (
        getattr(model, "train_inputs", None) is not None
    ):
        return inputs_in_units(model)
    return None


def inputs_in_units(model: Model) -> Tensor:
    """Training inputs of one Gaussian process in the user's units, ``... x t x d``.

    They are where the model is: BoTorch's ``to`` leaves these inputs behind, of a model
    in evaluation mode with an input transform.
    """
    inputs = get_train_inputs(model, transformed=False)[0]
    return inputs.to(next(model.parameters(), inputs).device)


def settle(model: Model) -> None:
    """Put a model into evaluation mode, and forget what it keeps of earlier calls.

    GPyTorch keeps factors of its last call, whatever has happened to its parameters
    since.
    """
    model.eval()
    for part in model.modules():
        if isinstance(part, GPyTorchModule):
            part._clear_cache()


_FEW = 4  # inputs: the prior variance of a stationary kernel is the same everywhere


def prior_variance(
    model: Model,
    posterior_transform: PosteriorTransform | None = None,
    *,
    at: Tensor | None = None,
) -> float:
    r"""Average the prior variance of a model's outcome over a few inputs.

    .. math:: \bar\sigma_0^2 = \frac1k \sum_{i=1}^k
        \operatorname{Var}_{\text{prior}} f(z_i)

    In other units of the outcome, ``a y + b``, it is ``a^2`` times as large: what is
    small or large compared with it does not depend on units.

    Shapes: ``at``: ``k x d``.
    """
    if at is None:
        inputs = some_inputs(model)
        if inputs is None:
            raise UnsupportedError(
                f"{type(model).__name__} has no training inputs at which its prior "
                "variance could be asked for. Pass `at`."
            )
        at = inputs.reshape(-1, inputs.shape[-1])[:_FEW]
    square = 1.0
    if model.num_outputs == 1 and isinstance(
        posterior_transform, ScalarizedPosteriorTransform
    ):  # BoTorch applies it to Gaussian posteriors alone
        square = cast(Tensor, posterior_transform.weights).square().item()
        posterior_transform = None
    with torch.no_grad(), prior_mode(), any_variance():
        posterior = cast(
            GPyTorchPosterior,
            model.posterior(at, posterior_transform=posterior_transform),
        )
        return square * posterior.variance.mean().item()
