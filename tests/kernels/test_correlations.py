"""Correlations of the squared distance: values, slopes, and what happens at zero."""

from __future__ import annotations

import math

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, RQKernel

from botorch_drbo.kernels.components import (
    RationalQuadratic,
    correlation,
    correlation_and_slope,
)

SMOOTH = [1.5, 2.5, math.inf, RationalQuadratic(0.8)]
SQUARED = torch.tensor([1e-6, 1e-3, 0.1, 0.7, 3.0, 40.0], dtype=torch.double)


@pytest.mark.parametrize("smoothness", [0.5, *SMOOTH])
def test_values_are_gpytorchs(smoothness: float | RationalQuadratic) -> None:
    if isinstance(smoothness, RationalQuadratic):
        kernel = RQKernel().double()
        kernel.alpha = smoothness.alpha
    else:
        rbf = math.isinf(smoothness)
        kernel = RBFKernel() if rbf else MaternKernel(nu=smoothness)
    kernel.double().lengthscale = 1.0
    distance = SQUARED.sqrt().unsqueeze(-1)
    with torch.no_grad():
        expected = kernel(distance, torch.zeros(1, 1).double()).to_dense().squeeze()
    torch.testing.assert_close(correlation(smoothness, SQUARED), expected)


@pytest.mark.parametrize("smoothness", SMOOTH)
def test_slopes_are_twice_the_derivative(smoothness: float | RationalQuadratic) -> None:
    value, slope = correlation_and_slope(smoothness, SQUARED)
    assert torch.equal(value, correlation(smoothness, SQUARED))
    h = 1e-4 * SQUARED
    up, down = (correlation(smoothness, SQUARED + step) for step in (h, -h))
    # Of tiny distances the difference is rounding.
    torch.testing.assert_close(slope, (up - down) / h, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("smoothness", SMOOTH)
def test_two_more_derivatives(smoothness: float | RationalQuadratic) -> None:
    leaf = SQUARED[1:].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda s: correlation(smoothness, s), leaf)
    assert torch.autograd.gradgradcheck(lambda s: correlation(smoothness, s), leaf)
    assert torch.autograd.gradcheck(
        lambda s: correlation_and_slope(smoothness, s)[1], leaf
    )


@pytest.mark.parametrize(
    ("smoothness", "slope"), [(math.inf, -1.0), (2.5, -5.0 / 3.0), (1.5, -3.0)]
)
def test_at_zero_distance(smoothness: float, slope: float) -> None:
    zero = torch.zeros(1, dtype=torch.double, requires_grad=True)
    value, found = correlation_and_slope(smoothness, zero)
    torch.testing.assert_close(value.item(), 1.0, rtol=0, atol=1e-14)
    torch.testing.assert_close(found.item(), slope, rtol=1e-12, atol=0)
    (first,) = torch.autograd.grad(value, zero, create_graph=True)
    torch.testing.assert_close(first.item(), slope / 2, rtol=1e-12, atol=0)
    (second,) = torch.autograd.grad(first, zero)
    assert second.isfinite()
    if smoothness != 1.5:  # its second derivative has a pole there
        expected = 0.25 if smoothness == math.inf else 25.0 / 12.0
        torch.testing.assert_close(second.item(), expected, rtol=1e-12, atol=0)


def test_a_kink_gets_no_slope_at_zero() -> None:
    zero = torch.zeros(1, dtype=torch.double, requires_grad=True)
    (first,) = torch.autograd.grad(correlation(0.5, zero), zero)
    assert first == 0.0
