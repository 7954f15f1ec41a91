"""Paths at many contexts, interpolated from a few, against one context at a time."""

from __future__ import annotations

import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from torch import Tensor

from botorch_drbo.sample_paths import PosteriorPaths
from botorch_drbo.sample_paths.posterior_paths import interpolation


def fitted(kernel: type = RBFKernel, lengthscale: float = 0.4) -> SingleTaskGP:
    generator = torch.Generator().manual_seed(1)
    Z = torch.rand(25, 2, generator=generator, dtype=torch.double)
    Y = (6 * Z[:, :1]).sin() + (4 * Z[:, 1:] * Z[:, :1]).cos()
    covariance = ScaleKernel(kernel(ard_num_dims=2)).double()
    covariance.base_kernel.lengthscale = torch.tensor([[0.3, lengthscale]]).double()
    covariance.outputscale = 3.0
    model = SingleTaskGP(Z, Y, covar_module=covariance)
    model.likelihood.noise = torch.tensor([1e-4]).double()
    return model.eval()


def many(n: int) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    return torch.rand(n, 1, generator=generator, dtype=torch.double)


@pytest.mark.parametrize("num_paths", [1, 6])
def test_values_and_gradients_are_those_of_single_contexts(num_paths: int) -> None:
    """One context alone is never interpolated."""
    paths = PosteriorPaths(fitted(), [1], num_paths=num_paths, num_features=64, seed=3)
    contexts, few = many(300), 20
    X = torch.linspace(0.1, 0.9, 7, dtype=torch.double).unsqueeze(-1).requires_grad_()
    found = paths(X, contexts)  # P x 7 x 300
    assert paths._cache is not None
    matrix = paths._cache[-1].interpolation
    assert matrix is not None and matrix.shape[1] < 40
    alone = torch.cat([paths(X, contexts[i : i + 1]) for i in range(few)], -1)
    assert paths._cache[-1].interpolation is None
    assert alone.std() > 0.1
    torch.testing.assert_close(found[..., :few], alone, rtol=0.0, atol=1e-8)
    (slope,) = torch.autograd.grad(found[..., :few].sum(), X)
    (expected,) = torch.autograd.grad(alone.sum(), X)
    torch.testing.assert_close(slope, expected, rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize(
    "model", [fitted(MaternKernel), fitted(lengthscale=1e-3)], ids=["rough", "short"]
)
def test_what_is_not_smooth_is_not_interpolated(model: SingleTaskGP) -> None:
    paths = PosteriorPaths(model, [1], num_features=64, seed=3)
    contexts = many(200)
    X = torch.tensor([[0.2], [0.7]], dtype=torch.double)
    found = paths(X, contexts)
    assert paths._cache is not None and paths._cache[-1].interpolation is None
    alone = torch.cat([paths(X, contexts[i : i + 1]) for i in range(20)], -1)
    torch.testing.assert_close(found[..., :20], alone)


def test_functions_of_low_rank_are_exact_and_others_are_seen() -> None:
    """Polynomials of degree four need five contexts; noise needs all."""
    x = many(150).squeeze(-1)
    powers = torch.stack([x**k for k in range(5)])
    found = interpolation([powers[:2], powers[2:].reshape(1, 3, -1)])
    assert found is not None and len(found.chosen) == 5
    torch.testing.assert_close(powers[:, found.chosen] @ found.matrix.mT, powers)
    noise = torch.randn(300, 150, generator=torch.Generator().manual_seed(0)).double()
    assert interpolation([powers, noise]) is None
    assert interpolation([powers[:, :63]]) is None  # nothing to save


def test_a_sketch_that_missed_a_function_is_not_taken(monkeypatch) -> None:
    """A rank that is too small: the check on other mixtures finds it."""
    x = many(150).squeeze(-1)
    powers = torch.stack([x**k for k in range(5)])
    name = "botorch_drbo.sample_paths.posterior_paths.numerical_rank"
    monkeypatch.setattr(name, lambda *_: 4)
    assert interpolation([powers]) is None
