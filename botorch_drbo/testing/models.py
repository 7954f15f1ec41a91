"""Models for the contract tests, with fixed hyper-parameters."""

from __future__ import annotations

from typing import Any, cast

import torch
from botorch.models import SingleTaskGP
from botorch.models.map_saas import EnsembleMapSaasSingleTaskGP
from botorch.models.transforms.input import Normalize
from gpytorch.kernels import Kernel, MaternKernel, ScaleKernel
from torch import Tensor


def known_model(
    Z: Tensor,
    Y: Tensor,
    *,
    lengthscale: float = 0.5,
    noise: float | None = None,
    normalise: bool = True,
    **options: Any,
) -> SingleTaskGP:
    """A Gaussian process on given data, with fixed hyper-parameters.

    Shapes: ``Z``: ``t x d``, ``Y``: ``t x m``.
    """
    if normalise:
        options.setdefault("input_transform", Normalize(Z.shape[-1]))
    model = SingleTaskGP(Z, Y, **options)
    cast(Kernel, model.covar_module).initialize(lengthscale=lengthscale)
    if noise is not None:
        model.likelihood.initialize(noise=noise)
    return model.eval()


def ensemble(Z: Tensor, Y: Tensor, members: int = 3) -> EnsembleMapSaasSingleTaskGP:
    """Models of the same data, no two of which have a hyper-parameter in common.

    BoTorch's start out alike: their mean is each of them, and their minimum too.

    Shapes: ``Z``: ``t x d``, ``Y``: ``t x 1``.
    """
    model = EnsembleMapSaasSingleTaskGP(Z, Y, num_taus=members).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            steps = torch.linspace(-0.9, 0.9, members).to(parameter)
            parameter.add_(steps.reshape(-1, *[1] * (parameter.ndim - 1)))
    return model


def member_of(model: EnsembleMapSaasSingleTaskGP, number: int) -> SingleTaskGP:
    """One model of an ensemble, as BoTorch's plain one, without transforms."""
    Z = model.train_inputs[0][number]
    alone = SingleTaskGP(
        Z,
        model.train_targets[number].unsqueeze(-1),
        covar_module=ScaleKernel(MaternKernel(ard_num_dims=Z.shape[-1])).double(),
        outcome_transform=None,
    )
    ensembled = cast(ScaleKernel, model.covar_module)
    base, level = cast(Kernel, ensembled.base_kernel), model.mean_module.constant
    kernel = cast(ScaleKernel, alone.covar_module)
    kernel.initialize(outputscale=ensembled.outputscale[number])
    cast(Kernel, kernel.base_kernel).initialize(lengthscale=base.lengthscale[number])
    alone.mean_module.initialize(constant=cast(Tensor, level)[number])
    noise = cast(Tensor, model.likelihood.noise)[number]
    alone.likelihood.initialize(noise=noise)
    return alone.eval()
