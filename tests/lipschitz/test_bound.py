"""The certified bound: above what any search finds, and right about the kernel."""

from __future__ import annotations

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import Normalize
from gpytorch.kernels import (
    AdditiveKernel,
    Kernel,
    LinearKernel,
    MaternKernel,
    ProductKernel,
    RBFKernel,
    ScaleKernel,
)

from botorch_drbo.lipschitz import kernel_lipschitz_constant, lipschitz_upper_bound
from tests.lipschitz.scores import grid_maximum, make_score
from tests.models import UNIT


@pytest.mark.parametrize(
    "kernel",
    [
        None,
        ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=2)),
        ScaleKernel(MaternKernel(nu=1.5, ard_num_dims=2)),
    ],
)
def test_lies_above_the_maximum(kernel: Kernel | None) -> None:
    score = make_score(1, kernel)
    X = torch.linspace(0, 1, 25, dtype=torch.double)[:, None]
    steepest = grid_maximum(score, X, 1, 801).max()
    bound = lipschitz_upper_bound(score.model, 2.25, [1], UNIT)
    assert bound >= steepest
    assert bound <= 50 * steepest  # a bound, not just a large number


@pytest.mark.parametrize(
    "kernel",
    [
        RBFKernel(ard_num_dims=2),
        ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=2)),
        ScaleKernel(MaternKernel(nu=1.5)),
        AdditiveKernel(
            RBFKernel(active_dims=[0]), ScaleKernel(RBFKernel(active_dims=[1]))
        ),
        ProductKernel(
            ScaleKernel(RBFKernel(active_dims=[0, 1])),
            ScaleKernel(MaternKernel(nu=2.5, active_dims=[1])),
        ),
    ],
)
def test_kernel_constant_is_the_limit_of_difference_quotients(kernel: Kernel) -> None:
    Z = torch.rand(5, 2, dtype=torch.double)
    model = SingleTaskGP(Z, Z[:, :1], covar_module=kernel, outcome_transform=None)
    constant = kernel_lipschitz_constant(model, [1], UNIT)
    h = 1e-3
    a = torch.tensor([[0.4, 0.3]], dtype=torch.double)
    b = a + torch.tensor([[0.0, h]], dtype=torch.double)
    with torch.no_grad():
        k = model.covar_module(torch.cat([a, b])).to_dense()
    quotient = (k[0, 0] + k[1, 1] - 2 * k[0, 1]).clamp_min(0).sqrt() / h
    torch.testing.assert_close(quotient, constant, rtol=1e-2, atol=0)


def test_units() -> None:
    Z = torch.rand(9, 2, dtype=torch.double)
    Y = (4 * Z[:, 1:]).sin()
    wide = Z * torch.tensor([1.0, 20.0]).double()
    bounds = torch.tensor([[0.0], [20.0]], dtype=torch.double)
    unit = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
    box = torch.tensor([[0.0, 0.0], [1.0, 20.0]], dtype=torch.double)
    narrow = SingleTaskGP(Z, Y, input_transform=Normalize(2, bounds=unit))
    scaled = SingleTaskGP(wide, Y, input_transform=Normalize(2, bounds=box))
    torch.testing.assert_close(
        lipschitz_upper_bound(narrow, 1.0, [1], UNIT),
        lipschitz_upper_bound(scaled, 1.0, [1], bounds),
    )
    lemma = lipschitz_upper_bound(narrow, 1.0, [1], UNIT, norm_bound=3.0)
    constant = kernel_lipschitz_constant(narrow, [1], UNIT)
    scale = narrow.outcome_transform.stdvs.squeeze()
    torch.testing.assert_close(lemma, 2 * 3.0 * constant * scale)


@pytest.mark.parametrize(
    "kernel", [MaternKernel(nu=0.5, ard_num_dims=2), LinearKernel()]
)
def test_unknown_kernels_are_refused(kernel: Kernel) -> None:
    Z = torch.rand(5, 2, dtype=torch.double)
    model = SingleTaskGP(Z, Z[:, :1], covar_module=kernel)
    with pytest.raises(UnsupportedError, match="sampled"):
        lipschitz_upper_bound(model, 1.0, [1], UNIT)
