"""The explained variance in both of its forms, and which of them is taken."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel
from torch import Tensor

from botorch_drbo.posterior import stationary_moments
from botorch_drbo.posterior.stationary_moments import ExplainedVariance
from tests.models import set_hyperparameters, uniform

T = 60
ALLOWED = 1e-9  # of the prior's variance


def inverse_root_and_rows(
    kernel: Kernel, noise: float, lengthscale: float, scale: float = 1.0
) -> tuple[Tensor, Tensor]:
    """``L^-1``, and kernel rows at the data, beside them and elsewhere."""
    set_hyperparameters(kernel, lengthscale)
    Z = uniform(T, 3, seed=1)
    points = torch.cat([Z, Z + 1e-3 * uniform(T, 3, seed=2), uniform(T, 3, seed=3)])
    with torch.no_grad():
        K, rows = (scale * kernel(p, Z).to_dense() for p in (Z, points))
    root = torch.linalg.cholesky(K + noise * scale * torch.eye(T).double())
    return torch.linalg.inv(root), rows


def error(found: ExplainedVariance, K: Tensor) -> float:
    """Against the same sums with more digits."""
    R, rows = (each.numpy().astype(np.longdouble) for each in (found.inverse_root, K))
    expected = np.square(rows @ R.T).sum(-1)
    return float(np.abs(found(K).numpy() - expected).max())


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("lengthscale", [0.2, 0.6, 3.0])
@pytest.mark.parametrize("noise", [1e-2, 1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("kernel", [RBFKernel(), MaternKernel(2.5)])
def test_rounding_is_bounded(
    kernel: Kernel, noise: float, lengthscale: float, scale: float
) -> None:
    R, K = inverse_root_and_rows(kernel, noise, lengthscale, scale)
    assert error(ExplainedVariance.of(R, scale), K) <= ALLOWED * scale


def test_usual_noise_takes_one_product_and_next_to_none_takes_two() -> None:
    kernel = RBFKernel()
    for noise, one in ((1e-2, True), (1e-4, True), (1e-8, False)):
        R, _K = inverse_root_and_rows(kernel, noise, 3.0)
        assert (ExplainedVariance.of(R, 1.0).precision is not None) == one
    R, _K = inverse_root_and_rows(kernel, 1e-2, 3.0)
    assert ExplainedVariance.of(R.float(), 1.0).precision is None


def test_one_product_would_be_wrong_where_two_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    R, K = inverse_root_and_rows(RBFKernel(), 1e-8, 3.0)
    monkeypatch.setattr(stationary_moments, "_ROUNDING", float("inf"))
    assert error(ExplainedVariance.of(R, 1.0), K) > ALLOWED


@pytest.mark.parametrize("largest", [1e-9, 0.0])
def test_weights_are_half_of_the_derivative(
    largest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stationary_moments, "_ROUNDING", largest)
    R, K = inverse_root_and_rows(MaternKernel(1.5), 1e-2, 0.5)
    found = ExplainedVariance.of(R, 1.0)
    assert (found.precision is None) == (largest == 0.0)
    leaf = K.clone().requires_grad_()
    value, weights = found.with_weights(leaf)
    torch.testing.assert_close(value, found(leaf), rtol=0, atol=0)
    (gradient,) = torch.autograd.grad(value.sum(), leaf)
    torch.testing.assert_close(2.0 * weights.detach(), gradient)
