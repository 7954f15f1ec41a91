"""Properties of a BoTorch model that decide how its posterior is computed."""

from __future__ import annotations

from typing import TypeVar, cast

from botorch.exceptions.errors import UnsupportedError
from botorch.models import SingleTaskVariationalGP
from botorch.models.deterministic import (
    FixedSingleSampleModel,
    MatheronPathModel,
    PosteriorMeanModel,
)
from botorch.models.model import Model, ModelList
from botorch.sampling.pathwise.utils import get_train_inputs
from gpytorch.models import ExactGP
from gpytorch.module import Module as GPyTorchModule
from torch import Tensor
from torch.nn import Module

from botorch_drbo.posterior.ensemble import ModelEnsemble

_MADE_OF_A_MODEL = (PosteriorMeanModel, FixedSingleSampleModel, MatheronPathModel)

AnyModule = TypeVar("AnyModule", bound=Module)


def only_model(model: Model) -> Model:
    """The model of a list of one; any other model as it is.

    Args:
        model: A BoTorch model.

    Returns:
        A model with the same posterior.

    Raises:
        UnsupportedError: No BoTorch model; a plain GPyTorch model is none.
    """
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
    """Training inputs in the user's units, ``... x t x d``; None where there are none.

    Args:
        model: A BoTorch model.

    Returns:
        Those of the first model of a list or an ensemble, or of the model that a
        deterministic one was made of.
    """
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

    Args:
        model: A model with training inputs.
    """
    inputs = get_train_inputs(model, transformed=False)[0]
    return inputs.to(next(model.parameters(), inputs).device)


def settle(model: Model) -> None:
    """Put a model into evaluation mode, and forget what it keeps of earlier calls.

    GPyTorch keeps factors of its last call, whatever has happened to its parameters
    since.

    Args:
        model: A BoTorch model.
    """
    model.eval()
    for part in model.modules():
        if isinstance(part, GPyTorchModule):
            part._clear_cache()
