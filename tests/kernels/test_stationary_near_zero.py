"""Stationary kernels against their textbook formulas, close to a training input."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from botorch_drbo.kernels.stationary import StationaryKernel

NU = {"rbf": math.inf, "matern32": 1.5, "matern52": 2.5}
RADII = torch.logspace(-12, 0, 13, dtype=torch.double)


def correlation(kind: str, r: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """``phi(r)``, ``phi'(r) / r``, and how fast the latter changes with ``r``."""
    if kind == "rbf":
        value = (-0.5 * r.square()).exp()
        return value, -value, r * value
    root = math.sqrt(5.0 if kind == "matern52" else 3.0)
    decay = (-root * r).exp()
    if kind == "matern32":
        return (1 + root * r) * decay, -3 * decay, 3 * root * decay
    value = (1 + root * r + 5 / 3 * r.square()) * decay
    return value, -5 / 3 * (1 + root * r) * decay, 25 / 3 * r * decay


@pytest.mark.parametrize("kind", ["rbf", "matern32", "matern52"])
def test_value_and_slope_and_its_derivative_at_any_distance(kind):
    """Down to 1e-12 lengthscales: the floor that mends a root at zero is below."""
    scale, lengthscale = 1.75, torch.tensor([0.5, 2.0], dtype=torch.double)
    point = torch.tensor([[3.0, -4.0]], dtype=torch.double)
    kernel = StationaryKernel(NU[kind], 1 / lengthscale, scale, point)
    towards = torch.tensor([0.6, 0.8], dtype=torch.double)
    scaled = (RADII[:, None] * towards).requires_grad_()  # from the point, its centre
    value, slope = kernel.value_and_slope(scaled)
    expected = [scale * part for part in correlation(kind, RADII)]
    close = {"rtol": 1e-10, "atol": 0.0}
    torch.testing.assert_close(kernel(scaled).squeeze(-1), expected[0], **close)
    torch.testing.assert_close(value.squeeze(-1), expected[0], **close)
    torch.testing.assert_close(slope.squeeze(-1), expected[1], **close)
    (first,) = torch.autograd.grad(value.sum(), scaled, retain_graph=True)
    torch.testing.assert_close(first, expected[1][:, None] * scaled, **close)
    (second,) = torch.autograd.grad(slope.sum(), scaled)
    torch.testing.assert_close(second @ towards, expected[2], **close)


@pytest.mark.parametrize("kind", ["rbf", "matern32", "matern52"])
def test_derivatives_at_a_training_input_are_finite(kind):
    points = torch.tensor([[0.3], [0.7]], dtype=torch.double)
    one = torch.ones((), dtype=torch.double)
    kernel = StationaryKernel(NU[kind], one.reshape(1), 1.0, points)
    scaled = kernel.scale(points).requires_grad_()
    value, slope = kernel.value_and_slope(scaled)
    for part in (value, slope):
        (gradient,) = torch.autograd.grad(part.sum(), scaled, retain_graph=True)
        assert gradient.isfinite().all()
