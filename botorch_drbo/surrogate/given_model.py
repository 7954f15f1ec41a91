"""A model of the user's own, in place of the one that a recipe would fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from gpytorch.likelihoods import GaussianLikelihood
from torch import Tensor

from botorch_drbo.posterior.exact import ExactPosterior
from botorch_drbo.posterior.models import only_model, some_inputs
from botorch_drbo.surrogate.base import ModelData, Surrogate

ModelMaker = Callable[[Tensor, Tensor, Tensor | None, Tensor], Model]
"""From ``train_X``, ``train_Y``, ``train_Yvar`` and ``bounds`` to a fitted model."""


@final
@dataclass(frozen=True)
class GivenModel(Surrogate):
    r"""A function that makes the model.

    Args:
        function: It is called with ``train_X``, ``train_Y``, ``train_Yvar`` and
            ``bounds``, and returns a fitted BoTorch model of one output.
    """

    function: ModelMaker

    @property
    def is_refitted(self) -> bool:
        """Not: the function may take long, or draw at random."""
        return False

    def fit(self, data: ModelData) -> Model:
        r"""Call the function, and look at what it returns."""
        return make_model(
            self.function, data.inputs, data.outcomes, data.Yvar, data.bounds
        )


def check_model_maker(model: object) -> None:
    """Raise unless this is a function from data to a model, or None.

    Raises:
        InputDataError: It is not, or it is a model.
    """
    wanted = (
        "Give a function that takes (train_X, train_Y, train_Yvar, bounds) and returns "
        "a fitted BoTorch model"
    )
    if isinstance(model, Model):
        raise InputDataError(
            f"`model` is a {type(model).__name__}, but outcomes are still to come. "
            f"{wanted}."
        )
    if model is not None and not callable(model):
        raise InputDataError(
            f"`model` must be a function, got {type(model).__name__}. {wanted}."
        )


def make_model(
    maker: ModelMaker, X: Tensor, Y: Tensor, Yvar: Tensor | None, bounds: Tensor
) -> Model:
    r"""Call the user's function, and look at what it returns.

    Args:
        maker: The function.
        X: Inputs, ``t x d``.
        Y: Outcomes, ``t x 1``.
        Yvar: The variances of the noise in the outcomes, ``t x 1``, or None.
        bounds: The box of the inputs, ``2 x d``.

    Returns:
        The model, in evaluation mode.

    Raises:
        InputDataError: Something else than a model.
        UnsupportedError: A model of several outputs, or one without training inputs.
        BotorchTensorDimensionError: A model of other inputs.
    """
    Yvar = None if Yvar is None else Yvar.clone()
    model = maker(X.clone(), Y.clone(), Yvar, bounds.clone())
    if not isinstance(model, Model):
        raise InputDataError(
            "The function `model` must return a fitted BoTorch model, got "
            f"{type(model).__name__}."
        )
    model, d = only_model(model), X.shape[-1]
    if model.num_outputs != 1:
        raise UnsupportedError(
            f"The function `model` returned a {type(model).__name__} of "
            f"{model.num_outputs} outputs. Return a model of one, the outcome."
        )
    inputs = some_inputs(model)
    if inputs is None:
        raise UnsupportedError(
            f"The function `model` returned a {type(model).__name__}, which has no "
            "training inputs. Return a model that was made of `train_X`."
        )
    if inputs.shape[-1] != d:
        raise BotorchTensorDimensionError(
            f"The function `model` was given `train_X` with {d} columns, and returned "
            f"a model of {inputs.shape[-1]} inputs. It has to take them all: decisions "
            "first, contexts last."
        )
    return model.eval()


def check_exact(model: Model, name: str) -> SingleTaskGP:
    """Return a model whose kernel, mean and noise can be put to other data.

    Raises:
        UnsupportedError: Another one.
    """
    if (
        not isinstance(model, SingleTaskGP)
        or not ExactPosterior.supports(model, None)
        or not isinstance(model.likelihood, GaussianLikelihood)
    ):
        likelihood = getattr(model, "likelihood", None)
        raise UnsupportedError(
            f"`{name}` puts the kernel and the noise of a model to other data: it "
            "takes a SingleTaskGP that learns its noise, got "
            f"{type(model).__name__} with {type(likelihood).__name__}. `gp_ucb` takes "
            "any model."
        )
    return model
