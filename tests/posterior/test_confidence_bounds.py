"""Bounds and slopes from moments, against plain formulas; on tensors and arrays."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from botorch_drbo._by_hand import Call
from botorch_drbo.posterior.confidence_bounds import (
    ConfidenceBounds,
    ExpectedBounds,
    OwnBoundSlopes,
    bound_slopes,
    lowest_bounds,
)
from torch import Tensor

from botorch_drbo import _arrays
from botorch_drbo.posterior.separable import (
    GaussianRows,
    SeparableMoments,
    SkeletonSystem,
)

WIDTH, LEAST, PRIOR = 1.7, 0.05, 0.35
B, R, N, T, D = 4, 3, 6, 5, 2


def uniform(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, generator=generator, dtype=torch.double)


def moments() -> Tensor:
    """Some variances lie below the least one after interpolation."""
    return torch.stack([uniform(B, R, seed=1), uniform(B, R, seed=2) - 0.25])


def interpolation(seed: int = 3) -> Tensor:
    return uniform(R, N, seed=seed)


def plain_bounds(at: Tensor, matrix: Tensor) -> Tensor:
    mean, variance = at @ matrix
    return mean + WIDTH * variance.clamp_min(LEAST).sqrt()


def system() -> SkeletonSystem:
    context_side = uniform(2, R, T, seed=4)
    inverse_root = torch.linalg.inv(
        torch.eye(T).double() + uniform(T, T, seed=5).tril()
    )
    alpha = uniform(T, 1, seed=6)
    # So small a prior variance that all of it is explained at some of the pairs.
    return SkeletonSystem(context_side, alpha, inverse_root, PRIOR, 0.3, 1.2)


def plain_moments(A: Tensor) -> Tensor:
    made = system()
    K = torch.einsum("mbt,mrt->brt", A, made.context_side)
    mean = made.offset + made.scale * (K @ made.alpha).squeeze(-1)
    explained = (K @ made.inverse_root.mT).square().sum(-1)
    left = (made.variance - explained).clamp_min(0.0)
    return torch.stack([mean, made.scale**2 * left])


def plain_rows(X: Tensor, *parts: Tensor) -> Tensor:
    anchor, image, slope, points, _ = parts
    scaled = image + (X - anchor) * slope  # m x b x d
    squared = (scaled.unsqueeze(-2) - points.unsqueeze(-3)).square().sum(-1)
    return (-0.5 * squared).exp()


def row_parts() -> list[Tensor]:
    points = uniform(2, T, D, seed=7)
    return [
        uniform(D, seed=8),
        uniform(2, 1, D, seed=9),
        3 * uniform(2, 1, D, seed=10),
        points,
        points.square().sum(-1).unsqueeze(1),
    ]


def own_matrices() -> Tensor:
    return uniform(1 + 2, B, 2, R, seed=11)


def plain_slopes(at: Tensor) -> Tensor:
    both = own_matrices() @ at.movedim(0, -1)  # (1 + d_c) x b x k x 2
    variance = both[0, ..., 1]
    sigma = variance.clamp_min(LEAST).sqrt()
    share = (variance > LEAST) * WIDTH / (2 * sigma)
    return both[1:, ..., 0] + share * both[1:, ..., 1]


CASES = {
    "rows": (GaussianRows, uniform(B, D, seed=12), row_parts(), plain_rows),
    "moments": (
        SeparableMoments,
        uniform(2, B, T, seed=13),
        [system(), B, True],
        lambda A, *_: plain_moments(A),
    ),
    "moments, in chunks": (
        SeparableMoments,
        uniform(2, B, T, seed=13),
        [system(), 3, False],
        lambda A, *_: plain_moments(A),
    ),
    "expected": (
        ExpectedBounds,
        moments(),
        [interpolation(), uniform(N, seed=14), WIDTH, LEAST],
        lambda at, matrix, weights, *_: plain_bounds(at, matrix) @ weights,
    ),
    "bounds": (
        ConfidenceBounds,
        moments(),
        [interpolation(), WIDTH, LEAST],
        lambda at, matrix, *_: plain_bounds(at, matrix),
    ),
    "own slopes": (
        OwnBoundSlopes,
        moments(),
        [own_matrices(), WIDTH, LEAST],
        lambda at, *_: plain_slopes(at),
    ),
}


@pytest.fixture(params=["numpy", "torch", "torch, one row at a time"])
def kind(request, monkeypatch):
    """By what a formula is computed: by size it would always be NumPy here."""
    if request.param != "numpy":
        monkeypatch.setattr(_arrays, "_MAX_ELEMENTS", 0)
    if request.param.endswith("time"):
        module = "botorch_drbo.posterior.confidence_bounds._CHUNK_ELEMENTS"
        monkeypatch.setattr(module, 1)
    return request.param


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name, kind):
    function, first, rest, plain = CASES[name]
    leaf = first.clone().requires_grad_()
    found, expected = function.apply(leaf, *rest), plain(leaf, *rest)
    torch.testing.assert_close(found, expected)
    with torch.no_grad():
        torch.testing.assert_close(function.apply(first, *rest), expected)
    upstream = uniform(*expected.shape, seed=20)
    gradients = [torch.autograd.grad(f, leaf, upstream)[0] for f in (found, expected)]
    torch.testing.assert_close(*gradients)
    assert gradients[0].abs().max() > 0.01


@pytest.mark.parametrize("name", CASES)
def test_by_hand(name):
    """On arrays the same, without autograd."""
    function, first, rest, plain = CASES[name]
    leaf = first.clone().requires_grad_()
    expected = plain(leaf, *rest)
    upstream = uniform(*expected.shape, seed=20)
    (gradient,) = torch.autograd.grad(expected, leaf, upstream)
    inputs = [part.numpy() if isinstance(part, Tensor) else part for part in rest]
    with torch.no_grad():
        call = Call(True, function, first.numpy(), *inputs)
        pulled = call.pull(upstream.numpy())
    assert isinstance(call.value, np.ndarray)
    assert isinstance(pulled, np.ndarray)
    torch.testing.assert_close(torch.from_numpy(call.value), expected.detach())
    torch.testing.assert_close(torch.from_numpy(pulled), gradient)
    only_value = Call(False, function, first.numpy(), *inputs)
    np.testing.assert_allclose(only_value.value, call.value)


@pytest.mark.parametrize("name", CASES)
def test_second_derivatives(name, kind):
    function, first, rest, _ = CASES[name]
    leaf = first.clone().requires_grad_()
    # A sum has a constant as its incoming gradient, which autograd treats apart.
    for scalar in (torch.sum, lambda value: value.square().sum()):
        assert torch.autograd.gradgradcheck(
            lambda a, scalar=scalar: scalar(function.apply(a, *rest)), leaf
        )


def test_some_variances_are_cut_off():
    variances = plain_moments(CASES["moments"][1])[1]
    assert 0 < (variances == 0.0).sum() < variances.numel()


def test_lowest(kind):
    at, matrix = moments(), interpolation()
    lowest = lowest_bounds(at, matrix, WIDTH, LEAST)
    assert torch.equal(lowest, plain_bounds(at, matrix).argmin(-1))


def test_slopes_at_shared_contexts(kind):
    at = moments()
    values = interpolation()
    slopes = torch.stack([interpolation(seed) for seed in (21, 22)])  # d_c x r x n
    found = bound_slopes(at, values, slopes, WIDTH, LEAST)
    mean, variance = at @ values
    share = (variance > LEAST) * WIDTH / (2 * variance.clamp_min(LEAST).sqrt())
    expected = [at[0] @ slope + share * (at[1] @ slope) for slope in slopes]
    torch.testing.assert_close(found, torch.stack(expected))
    assert (share == 0).any()
    assert (share > 0).any()
