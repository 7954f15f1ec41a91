"""Rows of one stationary kernel and their slopes, against GPyTorch and autograd."""

from __future__ import annotations

import pytest
import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from torch import Tensor

from botorch_drbo.kernels.components import kernel_components
from botorch_drbo.kernels.stationary import StationaryKernel, stationary_kernel
from tests.models import set_hyperparameters

KERNELS = {
    "rbf": lambda: ScaleKernel(RBFKernel(ard_num_dims=3)),
    "some columns": lambda: RBFKernel(active_dims=[2, 0], ard_num_dims=2),
    "product of rbf": lambda: ScaleKernel(RBFKernel() * RBFKernel(active_dims=[1])),
    "matern32": lambda: ScaleKernel(MaternKernel(nu=1.5, ard_num_dims=3)),
    "matern52": lambda: ScaleKernel(ScaleKernel(MaternKernel(nu=2.5))),
}


def prepare(name: str, shift: float = 0.0) -> tuple[Kernel, StationaryKernel, Tensor]:
    kernel = KERNELS[name]()
    set_hyperparameters(kernel)
    generator = torch.Generator().manual_seed(0)
    points, Z = shift + torch.rand(2, 7, 3, generator=generator, dtype=torch.double)
    found = stationary_kernel(kernel_components(kernel, 3), points)
    assert found is not None
    return kernel, found, Z


@pytest.mark.parametrize("shift", [0.0, 1e4])  # distances of centred points
@pytest.mark.parametrize("name", KERNELS)
def test_rows_are_gpytorchs(name: str, shift: float) -> None:
    kernel, ours, Z = prepare(name, shift)
    points = ours.centre + ours.points / ours.weights.clamp_min(1e-9)
    with torch.no_grad():
        expected = kernel(Z - shift, points - shift).to_dense()
    found = ours(ours.scale(Z))
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(ours.value_and_slope(ours.scale(Z))[0], found)


@pytest.mark.parametrize("name", KERNELS)
def test_slopes_are_autograds(name: str) -> None:
    """Of ``k(z, z_j)`` in the scaled input: ``D_j (a - b_j)``."""
    _, ours, Z = prepare(name)
    scaled = ours.scale(Z)
    expected = torch.autograd.functional.jacobian(
        lambda a: ours(a).sum(0), scaled
    ).movedim(1, 0)  # N x t x d
    _, slope = ours.value_and_slope(scaled)
    found = slope.unsqueeze(-1) * (scaled.unsqueeze(-2) - ours.points)
    torch.testing.assert_close(found, expected)
    leaf = scaled.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda a: ours.value_and_slope(a)[1], leaf)


@pytest.mark.parametrize(
    "kernel",
    [
        RBFKernel() + RBFKernel(active_dims=[0]),
        RBFKernel() * MaternKernel(),
        MaternKernel(nu=1.5) * MaternKernel(nu=1.5),
        MaternKernel(nu=0.5),
    ],
)
def test_what_is_not_one_smooth_factor(kernel: Kernel) -> None:
    points = torch.rand(4, 3, dtype=torch.double)
    assert stationary_kernel(kernel_components(kernel, 3), points) is None
    assert stationary_kernel([], points) is None
