"""Models of models: with some columns known, with a context that perturbs."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import cast

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.models.transforms.input import ChainedInputTransform, InputTransform
from torch import Tensor
from torch.nn import Module

from botorch_drbo.posterior.ensemble import ModelEnsemble, each_member


class KnownColumns(InputTransform, Module):
    """Put known values into some columns of what a model is asked for.

    It acts on test inputs alone: training inputs stay what they were.
    """

    transform_on_train = False
    transform_on_eval = True
    transform_on_fantasize = True
    # Which.
    columns: Tensor
    # What is known, one value for each column.
    values: Tensor

    def __init__(self, columns: Sequence[int], values: Tensor) -> None:
        super().__init__()
        self.register_buffer("columns", torch.tensor(columns, device=values.device))
        self.register_buffer("values", values.detach().clone())

    def transform(self, X: Tensor) -> Tensor:
        """Replace the columns.

        Shapes: ``X``: ``... x d``, returns ``... x d``.
        """
        values = self.values.to(X).expand(*X.shape[:-1], -1)
        return X.index_copy(-1, self.columns, values)


def with_known_columns(model: Model, columns: Sequence[int], values: Tensor) -> Model:
    r"""A copy of a fitted model that is constant in some columns.

    .. math:: f_k(z) = f(z_1, \dots, v_j, \dots, z_d)

    with :math:`v_j` in place of :math:`z_j` for each known column ``j``.
    """

    def with_known(member: Model) -> Model:
        known = copy.deepcopy(member)
        transform: InputTransform = KnownColumns(columns, values)
        own = getattr(known, "input_transform", None)
        if own is not None:
            transform = ChainedInputTransform(known=transform, own=own)
        known.input_transform = transform
        return known.eval()

    return each_member(model, with_known)


class AddedPerturbation(InputTransform, Module):
    r"""What a model sees of ``[x, c]`` is ``x + c``.

    It acts on training inputs too: those of the model are ``[x, c]``, decisions as they
    were meant and the errors of their execution.
    """

    transform_on_train = True
    transform_on_eval = True
    transform_on_fantasize = True

    def transform(self, X: Tensor) -> Tensor:
        """Add the two halves of the columns.

        Shapes: ``X``: ``... x 2 d``, returns ``... x d``.
        """
        if X.shape[-1] % 2:
            raise BotorchTensorDimensionError(
                "A perturbation has as many columns as the decision, got joint inputs "
                f"`[x, c]` of shape {tuple(X.shape)}."
            )
        decision, perturbation = X.chunk(2, dim=-1)
        return decision + perturbation


def with_perturbation(model: Model) -> Model:
    r"""Make a model of ``[x, c]`` out of one of ``x``: it answers at ``x + c``.

    .. math:: f'([x, c]) = f(x + c)

    The context is a tolerance or an error of implementation: what is executed is not
    quite what was decided. The acquisition functions of this package take the model as
    they take any of ``[x, c]``, with perturbations as contexts. BoTorch's
    ``InputPerturbation`` does the same for a fixed set of equally likely perturbations,
    and is not needed here. For relative errors, ``x (1 + c)``, model the logarithm of
    the decision.

    Args:
        model: A fitted ``SingleTaskGP`` of decisions ``t x d``, as they were executed,
            or an ensemble of such.

    Returns:
        A copy in evaluation mode; its training inputs are ``[x, 0]``.

    Raises:
        UnsupportedError: Another model, or one that adds perturbations of its own.

    Example:
        >>> Z = torch.rand(6, 2, dtype=torch.double)
        >>> model = SingleTaskGP(Z, Z.sum(-1, True)).eval()
        >>> x, c = torch.tensor([[0.3, 0.4], [0.1, -0.2]]).double()
        >>> joint = torch.cat([x, c]).unsqueeze(0)
        >>> there = model.posterior((x + c).unsqueeze(0)).mean
        >>> (with_perturbation(model).posterior(joint).mean - there).item()
        0.0
    """
    if isinstance(model, ModelEnsemble):
        return each_member(model, with_perturbation)
    if not isinstance(model, SingleTaskGP):
        raise UnsupportedError(
            f"`with_perturbation` takes a SingleTaskGP, got {type(model).__name__}. "
            "Give another model an input transform that maps `[x, c]` to `x + c`."
        )
    own = getattr(model, "input_transform", None)
    if getattr(own, "is_one_to_many", False):
        raise UnsupportedError(
            f"The model's input transform {type(own).__name__} adds points of its own. "
            "Fit the model without it: its perturbations become the contexts."
        )
    perturbed = copy.deepcopy(model).train()
    (executed,) = cast(tuple[Tensor], perturbed.train_inputs)
    perturbed.set_train_data(
        torch.cat([executed, torch.zeros_like(executed)], dim=-1), strict=False
    )
    perturbed.input_transform = added(own)
    return perturbed.eval()


def added(own: InputTransform | None) -> InputTransform:
    """The sum ``x + c``, and then a model's own input transform."""
    if own is None:
        return AddedPerturbation()
    return ChainedInputTransform(added=AddedPerturbation(), own=own)
