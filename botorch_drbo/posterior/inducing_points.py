"""A Gaussian process whose training rows are replaced by inducing points."""

from __future__ import annotations

import copy
from typing import cast

import torch
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.models.utils.inducing_point_allocators import GreedyVarianceReduction
from botorch.sampling.pathwise.utils import get_train_inputs
from gpytorch.kernels import InducingPointKernel, Kernel
from torch import Tensor

from botorch_drbo.posterior.ensemble import ModelEnsemble
from botorch_drbo.posterior.exact import ExactPosterior


def inducing_points(model: SingleTaskGP, num: int) -> Tensor:
    r"""Some training inputs: one after the other that of the largest variance.

    Given those before it [Burt2020convergence]_, until what is left is rounding.

    Args:
        model: An exact model. It goes to eval mode.
        num: How many, at most.

    Returns:
        ``m x d``, as the kernel sees them.
    """
    model.eval()
    with torch.no_grad():
        inputs = get_train_inputs(model, transformed=True)[0]
        return GreedyVarianceReduction().allocate_inducing_points(
            inputs=inputs,
            covar_module=cast(Kernel, model.covar_module),
            num_inducing=min(num, len(inputs)),
            input_batch_shape=torch.Size(),
        )


def with_inducing_points(model: Model, num: int) -> Model:
    r"""A copy of a model whose moments cost as much as with ``num`` rows.

    Variances are not smaller than the model's, up to what inducing points say of the
    noise; how near they are is a question of the kernel and of ``num``.

    Args:
        model: A BoTorch model, or an ensemble.
        num: How many points, at most.

    Returns:
        The copy, in evaluation mode; the same model if it has no more rows than
        ``num``, has inducing points already, or is none that ``ExactPosterior`` takes.

    Example:
        >>> Z = torch.rand(9, 2, dtype=torch.double)
        >>> few = with_inducing_points(SingleTaskGP(Z, Z.sum(-1, True)), 3)
        >>> few.covar_module.inducing_points.shape
        torch.Size([3, 2])
    """
    if isinstance(model, ModelEnsemble):
        members = [with_inducing_points(member, num) for member in model.members]
        changed = any(a is not b for a, b in zip(members, model.members, strict=True))
        return ModelEnsemble(members) if changed else model
    if (
        not isinstance(model, SingleTaskGP)
        or not ExactPosterior.supports(model, None)
        or isinstance(model.covar_module, InducingPointKernel)
        or len(model.train_targets) <= num
    ):
        return model
    points = inducing_points(model, num)
    few = copy.deepcopy(model)
    few.covar_module = InducingPointKernel(
        cast(Kernel, few.covar_module), points, few.likelihood
    )
    few.prediction_strategy = None
    return few.requires_grad_(False).eval()
