"""A model with some input columns fixed to known values."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from botorch.models.model import Model
from botorch.models.transforms.input import ChainedInputTransform, InputTransform
from torch import Tensor
from torch.nn import Module

from botorch_drbo.posterior.ensemble import each_member


class KnownColumns(InputTransform, Module):
    r"""Put known values into some columns of what a model is asked for.

    It acts on test inputs alone: training inputs stay what they were.

    Args:
        columns: Which.
        values: What is known, one value for each column.
    """

    transform_on_train = False
    transform_on_eval = True
    transform_on_fantasize = True
    columns: Tensor
    values: Tensor

    def __init__(self, columns: Sequence[int], values: Tensor) -> None:
        super().__init__()
        self.register_buffer("columns", torch.tensor(columns, device=values.device))
        self.register_buffer("values", values.detach().clone())

    def transform(self, X: Tensor) -> Tensor:
        r"""Replace the columns.

        Args:
            X: ``... x d``.

        Returns:
            ``... x d``.
        """
        values = self.values.to(X).expand(*X.shape[:-1], -1)
        return X.index_copy(-1, self.columns, values)


def with_known_columns(model: Model, columns: Sequence[int], values: Tensor) -> Model:
    r"""A copy of a fitted model that is constant in some columns.

    .. math:: f_k(z) = f(z_1, \dots, v_j, \dots, z_d)

    with :math:`v_j` in place of :math:`z_j` for each known column ``j``.

    Args:
        model: A Gaussian process of BoTorch, or an ensemble of them.
        columns: The known ones.
        values: What is known, one value for each column, in the user's units.

    Returns:
        The copy, in evaluation mode, of the same training data.

    Example:
        >>> from botorch.models import SingleTaskGP
        >>> from botorch.models.transforms.input import Normalize
        >>> Z = torch.rand(5, 2, dtype=torch.double)
        >>> model = SingleTaskGP(Z, Z[:, :1], input_transform=Normalize(2)).eval()
        >>> known = with_known_columns(model, [1], torch.tensor([0.3]).double())
        >>> known.posterior(Z).mean.var() < model.posterior(Z).mean.var()
        tensor(True)
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
