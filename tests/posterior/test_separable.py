"""Moments at a few contexts against plain sums over both sides of a kernel."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from botorch_drbo.posterior import separable, stationary_moments
from botorch_drbo.posterior.separable import (
    SkeletonSystem,
    coarse_moments,
    separable_moments,
)
from botorch_drbo.posterior.stationary_moments import ExplainedVariance
from tests.models import uniform

B, R, T = 4, 3, 5
LOWER = torch.eye(T).double() + uniform(T, T, seed=5).tril()
ROOT = torch.linalg.inv(LOWER)


def system(memory_budget: int = 2**30, root: Tensor = ROOT) -> SkeletonSystem:
    # So small a prior variance that all of it is explained at some of the pairs.
    return SkeletonSystem(
        context_side=uniform(2, R, T, seed=4),
        alpha=uniform(T, 1, seed=6),
        explained=ExplainedVariance.of(root, 0.35),
        variance=0.35,
        offset=0.3,
        scale=1.2,
        memory_budget=memory_budget,
    )


def plain_moments(A: Tensor) -> Tensor:
    made = system()
    K = torch.einsum("mbt,mrt->brt", A, made.context_side)
    mean = made.offset + made.scale * (K @ made.alpha).squeeze(-1)
    whitened = torch.linalg.solve_triangular(LOWER, K.mT, upper=False)
    explained = whitened.square().sum(-2)
    left = (made.variance - explained).clamp_min(0.0)
    return torch.stack([mean, made.scale**2 * left])


A = uniform(2, B, T, seed=13)


@pytest.fixture(params=["one product", "two products"], autouse=True)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    careful = request.param == "two products"
    if careful:
        monkeypatch.setattr(stationary_moments, "_ROUNDING", 0.0)
    assert (system().explained.precision is None) == careful


@pytest.fixture(params=["at once", "a decision at a time", "nothing kept"])
def budget(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    if request.param != "at once":
        monkeypatch.setattr(separable, "_BLOCK_ELEMENTS", 1)
        monkeypatch.setattr(separable, "_BLOCK_ROWS", 1)
    rows, keep = system(1 if request.param == "nothing kept" else 2**30).blocks(B)
    assert rows == (B if request.param == "at once" else 1) or rows > B
    assert keep == (request.param != "nothing kept")
    return 1 if request.param == "nothing kept" else 2**30


def test_some_variances_are_cut_off() -> None:
    variances = plain_moments(A)[1]
    assert 0 < (variances == 0.0).sum() < variances.numel()


def test_values_and_gradients(budget: int) -> None:
    leaf = A.clone().requires_grad_()
    found, expected = separable_moments(leaf, system(budget)), plain_moments(leaf)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(separable_moments(A, system(budget)), expected)
    upstream = uniform(2, B, R, seed=20)
    gradients = [torch.autograd.grad(f, leaf, upstream)[0] for f in (found, expected)]
    torch.testing.assert_close(*gradients)
    assert gradients[0].abs().max() > 0.01


def test_second_derivatives(budget: int) -> None:
    leaf = A.clone().requires_grad_()
    # A sum has a constant as its incoming gradient, which autograd treats apart.
    for scalar in (torch.sum, lambda value: value.square().sum()):
        assert torch.autograd.gradgradcheck(
            lambda a, scalar=scalar: scalar(separable_moments(a, system(budget))), leaf
        )


def test_jacobian_in_one_sweep(budget: int) -> None:
    found = torch.autograd.functional.jacobian(
        lambda a: separable_moments(a, system(budget)), A, vectorize=True
    )
    expected = torch.autograd.functional.jacobian(plain_moments, A)
    torch.testing.assert_close(found, expected)


def test_coarse_moments_have_exact_means_and_four_digits_of_what_is_explained() -> None:
    (mean, variance), plain = coarse_moments(A, system()), plain_moments(A)
    torch.testing.assert_close(mean, plain[0], rtol=1e-13, atol=1e-13)
    assert variance.dtype == torch.double
    torch.testing.assert_close(variance, plain[1], rtol=0.0, atol=1e-4 * 0.35 * 1.2**2)
    assert not torch.equal(variance, plain[1])  # float32 products


@pytest.mark.parametrize("turned", [False, True], ids=["triangle", "no triangle"])
def test_coarse_moments_in_strips(
    turned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The zeros of a triangle are left out; a root that is none has no zeros."""
    monkeypatch.setattr(separable, "_STRIP", 2)  # of 2, 2 and 1 rows
    root = ROOT
    if turned:  # R' R stays
        root = torch.linalg.qr(uniform(T, T, seed=8))[0] @ root
    found, plain = coarse_moments(A, system(root=root)), plain_moments(A)
    torch.testing.assert_close(found, plain, rtol=0.0, atol=1e-4 * 0.35 * 1.2**2)


def test_coarse_variances_far_from_the_data_keep_their_order() -> None:
    # Of 1 - 1e-10 and the like: float32 would see ones only.
    shares = torch.logspace(-5, -3, 30, dtype=torch.double)
    sides = A[:, :1] * shares[:, None].unsqueeze(0)
    variance = coarse_moments(sides, system())[1]
    assert (variance.diff(dim=0) < 0.0).all()
