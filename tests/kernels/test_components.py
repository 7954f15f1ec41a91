"""Kernels multiplied out, against GPyTorch's own evaluation of the same trees."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from gpytorch.kernels import (
    AdditiveKernel,
    CosineKernel,
    Kernel,
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    ProductKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)
from torch import Tensor

from botorch_drbo.kernels.components import (
    KernelComponent,
    RationalQuadratic,
    StationaryFactor,
    curvature_at_zero,
    kernel_components,
)
from tests.models import set_hyperparameters

KERNELS = {
    "rbf": lambda: RBFKernel(),
    "ard": lambda: ScaleKernel(RBFKernel(ard_num_dims=3)),
    "matern12": lambda: MaternKernel(nu=0.5, ard_num_dims=3),
    "rational quadratic": lambda: ScaleKernel(RQKernel(ard_num_dims=3)),
    "matern32": lambda: ScaleKernel(MaternKernel(nu=1.5)),
    "matern52": lambda: MaternKernel(nu=2.5, active_dims=[2, 0], ard_num_dims=2),
    "product of sums": lambda: ScaleKernel(
        (ScaleKernel(RBFKernel(active_dims=[0])) + MaternKernel(active_dims=[2]))
        * (ScaleKernel(RBFKernel()) + ScaleKernel(MaternKernel(nu=1.5)))
    ),
    "columns of columns": lambda: ScaleKernel(
        AdditiveKernel(RBFKernel(active_dims=[1]), RBFKernel(active_dims=[0])),
        active_dims=[2, 0],
    ),
    "scale of columns": lambda: ScaleKernel(
        ScaleKernel(MaternKernel(nu=2.5, active_dims=[2, 0]))
    ),
    "the same column twice": lambda: RBFKernel(active_dims=[1, 1], ard_num_dims=2),
    "three factors": lambda: ProductKernel(
        RBFKernel(active_dims=[0]), MaternKernel(nu=1.5), RBFKernel(active_dims=[2])
    ),
}


def make_kernel(name: str) -> Kernel:
    kernel = KERNELS[name]()
    set_hyperparameters(kernel)
    return kernel


def radial(smoothness: float | RationalQuadratic, r: Tensor) -> Tensor:
    if isinstance(smoothness, RationalQuadratic):
        return (1 + r.square() / (2 * smoothness.alpha)) ** -smoothness.alpha
    if math.isinf(smoothness):
        return (-0.5 * r.square()).exp()
    a = math.sqrt(2 * smoothness) * r
    polynomial = {0.5: 1.0, 1.5: 1 + a, 2.5: 1 + a + a.square() / 3}[smoothness]
    return polynomial * (-a).exp()


def evaluate(components: Sequence[KernelComponent], gap: Tensor) -> Tensor:
    """The formula of the module, for ``z - z'`` of any shape ``... x d``."""
    total = torch.zeros(gap.shape[:-1], dtype=torch.double)
    for component in components:
        row = torch.full_like(total, component.variance)
        for factor in component.factors:
            row = row * radial(factor.smoothness, (gap * factor.weights).norm(dim=-1))
        total = total + row
    return total


def of_gpytorch(kernel: Kernel, left: Tensor, right: Tensor) -> Tensor:
    with torch.no_grad():
        return kernel(left, right).to_dense()


@pytest.mark.parametrize("name", KERNELS)
def test_components_add_up_to_the_kernel(name: str) -> None:
    kernel = make_kernel(name)
    left, right = torch.rand(2, 9, 3, dtype=torch.double)
    found = evaluate(kernel_components(kernel, 3), left[:, None] - right)
    torch.testing.assert_close(
        found, of_gpytorch(kernel, left, right), rtol=1e-7, atol=1e-7
    )


def test_products_are_multiplied_out() -> None:
    components = kernel_components(make_kernel("product of sums"), 3)
    kinds = [[f.smoothness for f in part.factors] for part in components]
    assert kinds == [[math.inf, math.inf], [math.inf, 1.5], [2.5, math.inf], [2.5, 1.5]]


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (ScaleKernel(CosineKernel()), "CosineKernel"),
        (RBFKernel() * (RBFKernel() + PeriodicKernel()), "PeriodicKernel"),
        (LinearKernel(), "LinearKernel"),
        (RBFKernel(batch_shape=torch.Size([2])), "batch of .2,. kernels"),
        (ScaleKernel(RBFKernel(), batch_shape=torch.Size([3])), "batch of .3,."),
    ],
)
def test_other_kernels_are_refused(kernel: Kernel, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        kernel_components(kernel, 3)


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "matern12"])
def test_curvature_is_the_second_difference_at_the_peak(name: str) -> None:
    kernel = make_kernel(name)
    found = torch.stack(list(map(curvature_at_zero, kernel_components(kernel, 3))))
    h = 1e-4
    z = torch.full((1, 3), 0.5, dtype=torch.double)
    peak = of_gpytorch(kernel, z, z).squeeze()
    nearby = of_gpytorch(kernel, z + h * torch.eye(3).double(), z).squeeze(-1)
    expected = 2 * (peak - nearby) / h**2  # the slope at the peak is zero
    torch.testing.assert_close(found.sum(0), expected, rtol=1e-3, atol=1e-3)


def test_a_kink_has_no_curvature() -> None:
    (component,) = kernel_components(make_kernel("matern12"), 3)
    with pytest.raises(UnsupportedError, match="kink"):
        curvature_at_zero(component)


@pytest.mark.parametrize(
    "smoothness", [0.5, 1.5, 2.5, math.inf, RationalQuadratic(0.8)], ids=str
)
def test_frequencies_come_from_the_spectral_density(
    smoothness: float | RationalQuadratic,
) -> None:
    """By Bochner's theorem the mean of ``cos(w . gap)`` is the correlation."""
    weights = torch.tensor([[1.5, 0.7, 0.0], [0.0, 2.0, 1.0]], dtype=torch.double)
    component = KernelComponent(
        3.0,
        (
            StationaryFactor(smoothness, weights[0]),
            StationaryFactor(math.inf, weights[1]),
        ),
    )
    generator = torch.Generator().manual_seed(0)
    drawn = component.frequencies([100, 1000], generator).flatten(0, 1)
    gaps = torch.tensor([[0.3, 0.2, 0.1], [1.0, 0.0, 0.0], [0.0, 0.1, 0.9]]).double()
    cosines = (drawn @ gaps.mT).cos()  # N x 3
    error = cosines.mean(0) - evaluate([component], gaps) / 3.0
    assert (error.abs() < 4 * cosines.std(0) / len(drawn) ** 0.5).all()
