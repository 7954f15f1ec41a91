"""What has to be known about a BoTorch model before anything is computed."""

from __future__ import annotations

from typing import cast

from botorch.models import SingleTaskVariationalGP
from botorch.models.model import Model, ModelList
from botorch.sampling.pathwise.utils import get_train_inputs
from torch import Tensor


def only_model(model: Model) -> Model:
    """The model of a list of one; any other model as it is.

    Args:
        model: A BoTorch model.

    Returns:
        A model with the same posterior.
    """
    while isinstance(model, ModelList) and len(model.models) == 1:
        model = cast(Model, model.models[0])
    return model


def some_inputs(model: Model) -> Tensor | None:
    """Training inputs in the user's units, ``... x t x d``; None where there are none.

    Args:
        model: A BoTorch model.

    Returns:
        Those of the first model of a list.
    """
    if isinstance(model, ModelList):
        return some_inputs(cast(Model, model.models[0]))
    if isinstance(model, SingleTaskVariationalGP) or (
        getattr(model, "train_inputs", None) is not None
    ):
        return get_train_inputs(model, transformed=False)[0]
    return None
