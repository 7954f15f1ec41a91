"""Fits in logarithms against BoTorch's own fits of the same models."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim.closures import get_loss_closure_with_grads
from botorch.optim.utils import get_parameters_and_bounds
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from botorch_drbo.surrogate.botorch_default import minimise_in_logarithms


def data(t: int, noise: float) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    Z = torch.rand(t, 3, generator=generator).double()
    Y = (4 * Z[:, :1]).sin() + Z[:, 1:2] ** 2 + 0.3 * Z[:, 2:]
    Y = Y + noise * torch.randn(t, 1, generator=generator).double()
    return Z, (Y - Y.mean()) / Y.std()


def default(noise: float = 0.1) -> SingleTaskGP:
    return SingleTaskGP(*data(40, noise), outcome_transform=None)


def given_noise() -> SingleTaskGP:
    Z, Y = data(40, 0.1)
    return SingleTaskGP(Z, Y, torch.full_like(Y, 0.02), outcome_transform=None)


def transformed() -> SingleTaskGP:
    """GPyTorch's own constraints, under which what is fitted is not positive."""
    kernel = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=3))
    return SingleTaskGP(*data(40, 0.1), covar_module=kernel, outcome_transform=None)


def fitted(model: SingleTaskGP, **options: Any) -> tuple[Any, int]:
    """The fit, and how often the loss was evaluated."""
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    parameters, _ = get_parameters_and_bounds(mll)
    loss, count = get_loss_closure_with_grads(mll, parameters), 0

    def counted() -> tuple[Tensor, tuple[Tensor | None, ...]]:
        nonlocal count
        count += 1
        return loss()

    fit_gpytorch_mll(mll, closure=counted, **options)
    return mll, count


@pytest.mark.parametrize("make", [default, given_noise, transformed])
def test_finds_the_minimum_of_botorch(make):
    theirs, _ = fitted(make())
    ours, _ = fitted(make(), optimizer=minimise_in_logarithms)
    assert not ours.training
    flat = make is transformed  # there hyper-parameters differ at nearly the same loss
    for name, found in ours.named_parameters() if not flat else ():
        at = theirs.get_parameter(name)
        torch.testing.assert_close(found, at, rtol=2e-2, atol=2e-3, msg=name)

    def loss(mll: Any) -> float:
        mll.train()
        model = mll.model
        return -mll(model(*model.train_inputs), model.train_targets).item()

    assert loss(theirs) - 1e-4 < loss(ours) < loss(theirs) + 1e-6


def test_takes_half_as_many_evaluations():
    _, theirs = fitted(default())
    _, ours = fitted(default(), optimizer=minimise_in_logarithms)
    assert ours <= 0.6 * theirs


def test_stays_within_the_bounds():
    mll, _ = fitted(default(noise=0.0), optimizer=minimise_in_logarithms)
    constraint = mll.likelihood.noise_covar.raw_noise_constraint
    noise = mll.likelihood.noise
    assert noise >= constraint.lower_bound
    torch.testing.assert_close(noise, constraint.lower_bound.expand(1).to(noise))


def test_what_is_frozen_stays():
    model: Any = default()
    model.covar_module.raw_lengthscale.requires_grad_(False)
    before = model.covar_module.lengthscale.clone()
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    noise = model.likelihood.noise.item()
    fit_gpytorch_mll(mll, optimizer=minimise_in_logarithms)
    assert torch.equal(model.covar_module.lengthscale, before)
    assert model.likelihood.noise.item() != noise
