"""Rows in two groups of columns: put together they are the kernel's."""

from __future__ import annotations

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel

from botorch_drbo.kernels.components import kernel_components
from botorch_drbo.kernels.stationary import SplitComponent
from tests.models import set_hyperparameters

KERNELS = {
    "rbf": (lambda: ScaleKernel(RBFKernel(ard_num_dims=3)), True),
    "product": (
        lambda: MaternKernel(active_dims=[0, 1]) * MaternKernel(0.5, active_dims=[2]),
        True,
    ),
    "one group": (lambda: ScaleKernel(RBFKernel(active_dims=[0, 1])), True),
    "mixed": (lambda: MaternKernel(nu=2.5, ard_num_dims=3), False),
    "two mixed and more": (
        lambda: (
            MaternKernel(nu=1.5)
            * MaternKernel(nu=2.5, active_dims=[0, 2])
            * RBFKernel()
            * MaternKernel(nu=1.5, active_dims=[1])
        ),
        False,
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_both_sides_together_are_the_kernel(name: str) -> None:
    make, separable = KERNELS[name]
    kernel = make()
    set_hyperparameters(kernel)
    X, C, Z = torch.rand(3, 5, 3, dtype=torch.double)
    (component,) = kernel_components(kernel, 3)
    split = SplitComponent(component, Z, 2)
    assert split.separable == separable
    first, second = split.side(X[:, :2], 0), split.side(C[:4, 2:], 1)
    found = torch.full((5, 4, 5), split.variance, dtype=torch.double)  # N x n x t
    if first.correlation is not None:
        found = found * first.correlation.unsqueeze(1)
    if second.correlation is not None:
        found = found * second.correlation
    if not separable:
        found = found * split.mixed(first, second)
    joint = torch.cat(
        [X[:, None, :2].expand(-1, 4, -1), C[None, :4, 2:].expand(5, -1, -1)], -1
    )
    with torch.no_grad():
        expected = kernel(joint.flatten(0, 1), Z).to_dense().reshape(5, 4, 5)
    torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-8)


def test_a_group_that_no_factor_sees_contributes_nothing() -> None:
    (component,) = kernel_components(RBFKernel(active_dims=[0, 1]), 3)
    split = SplitComponent(component, torch.rand(5, 3).double(), 2)
    assert split.side(torch.rand(4, 1).double(), 1).correlation is None
