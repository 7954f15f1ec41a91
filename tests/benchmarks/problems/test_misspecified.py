"""Misspecified functions: norm, size of the error, optimum, and what a model sees."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from benchmarks.problems import MisspecifiedFunction
from botorch_drbo.confidence import confidence_width, information_gain

KINDS = ["waves", "bumps"]


def grid(num: int, d: int = 2) -> Tensor:
    axis = torch.linspace(0, 1, num, dtype=torch.double)
    return torch.cartesian_prod(*[axis] * d).reshape(-1, d)


def kernel(a: np.ndarray, b: np.ndarray, lengthscale: float) -> np.ndarray:
    gaps = (a[:, None, :] - b[None, :, :]) / lengthscale
    return np.exp(-0.5 * (gaps**2).sum(-1))


def values(function: MisspecifiedFunction, X: Tensor) -> Tensor:
    return function.evaluate(X, torch.zeros(1, 1).double())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_norm_is_exact(kind: str, d: int) -> None:
    """From values alone: the interpolant at the centres is the function itself."""
    function = MisspecifiedFunction(kind, 3, norm=2.5, d_x=d, num_centres=8)
    Z = function._centres.numpy()
    h = function.represented(function._centres).numpy()
    square = h @ np.linalg.solve(kernel(Z, Z, 0.2), h)
    assert math.sqrt(square) == pytest.approx(2.5, rel=1e-5)
    other = grid({1: 50, 2: 9, 3: 5}[d], d)
    interpolated = kernel(other.numpy(), Z, 0.2) @ np.linalg.solve(kernel(Z, Z, 0.2), h)
    np.testing.assert_allclose(function.represented(other), interpolated, atol=1e-6)
    assert function.represented(other).abs().max() <= 2.5  # |h(z)| <= B


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_error_is_at_most_epsilon_and_reaches_it(kind: str, seed: int) -> None:
    function = MisspecifiedFunction(kind, seed, misspecification=0.3)
    X = torch.cat([grid(401), (grid(10) * 9 + 0.5) / 10])  # with the middles of cells
    error = (values(function, X) - function.represented(X)).abs()
    assert error.max() <= 0.3 + 1e-12
    assert error.max() >= 0.3 * 0.99
    assert (error < 0.03).any()


@pytest.mark.parametrize("kind", KINDS)
def test_the_kernel_cannot_reproduce_the_error(kind: str) -> None:
    """Any function with these values on a grid has at least this norm."""
    function = MisspecifiedFunction(kind, 1, misspecification=0.2, d_x=1)
    X = (grid(200, 1) * 199 + 0.5) / 200
    error = (values(function, X) - function.represented(X)).numpy()
    K = kernel(X.numpy(), X.numpy(), 0.2) + 1e-12 * np.eye(200)
    assert math.sqrt(error @ np.linalg.solve(K, error)) > 1e4 * 0.2


def test_bumps_point_against_the_function() -> None:
    function = MisspecifiedFunction("bumps", 4, misspecification=0.2)
    middles = (grid(10) * 9 + 0.5) / 10
    h = function.represented(middles)
    error = values(function, middles) - h
    torch.testing.assert_close(error.abs(), torch.full_like(error, 0.2))
    assert (error[h.topk(20).indices] < 0).all()
    assert (error[(-h).topk(20).indices] > 0).all()
    edges = grid(11)  # corners of the cells
    torch.testing.assert_close(values(function, edges), function.represented(edges))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, 5])
def test_optimum_against_a_fine_grid(kind: str, seed: int) -> None:
    function = MisspecifiedFunction(kind, seed, misspecification=0.3)
    X = grid(601)
    best = values(function, X).max().item()
    optimum = function.optimum
    assert best <= optimum.value + 1e-9
    assert optimum.value <= best + 0.02
    x = function.optimal_decision
    assert values(function, x.unsqueeze(0)).item() == pytest.approx(optimum.value)
    finite = function.optimum_among(X)
    assert finite.value == pytest.approx(best)
    assert values(function, torch.tensor([finite.decision]).double()).item() == (
        pytest.approx(best)
    )


def test_contexts() -> None:
    function = MisspecifiedFunction("bumps", 2, d_x=1, d_c=2)
    assert (function.d_x, function.d_c) == (1, 2)
    joint = MisspecifiedFunction("bumps", 2, d_x=3)
    Z = torch.rand(7, 3).double()
    torch.testing.assert_close(
        function.evaluate(Z[:, :1], Z[:, 1:]), values(joint, Z), rtol=1e-12, atol=1e-12
    )
    torch.testing.assert_close(
        function.represented(Z[:, :1], Z[:, 1:]), joint.represented(Z)
    )
    with pytest.raises(InputDataError, match="`C`"):
        function.represented(Z[:, :1])
    alone, C = MisspecifiedFunction("waves", 2), torch.rand(7, 1).double()
    assert torch.equal(alone.evaluate(Z[:, :2], C), alone.evaluate(Z[:, :2], 0 * C))
    torch.testing.assert_close(alone.expected_value(Z[:, :2]), values(alone, Z[:, :2]))


def test_without_error_and_seeds() -> None:
    X = grid(20)
    plain = MisspecifiedFunction("bumps", 1, misspecification=0.0)
    assert torch.equal(values(plain, X), plain.represented(X))
    other = MisspecifiedFunction("waves", 1, misspecification=0.5)
    assert torch.equal(plain.represented(X), other.represented(X))
    third = MisspecifiedFunction("waves", 2, misspecification=0.5)
    assert not torch.equal(values(other, X), values(third, X))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"perturbation": "steps"}, "waves"),
        ({"misspecification": -0.1}, "misspecification"),
        ({"norm": -1.0}, "norm"),
        ({"lengthscale": 0.0}, "lengthscale"),
        ({"lengthscale": 3.0}, "lengthscale"),
        ({"d_x": 0}, "d_x"),
        ({"d_c": -1}, "d_c"),
        ({"num_centres": 0}, "num_centres"),
        ({"seed": 0.5}, "seed"),
    ],
)
def test_bad_input(options: dict, text: str) -> None:
    with pytest.raises(InputDataError, match=text):
        MisspecifiedFunction(**options)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_coverage_of_the_enlarged_interval(kind: str) -> None:
    r"""200 functions: the enlarged interval holds everywhere, the plain one does not.

    Lemma 1 and the enlargement give, with probability 1 - delta and everywhere,
    |h - mu| <= (w + eps sqrt(t) / sqrt(lambda)) sigma for the represented part h, and
    so |f - mu| <= the same + eps for the function itself.
    """
    lengthscale, noise, eps, norm, delta, t = 0.3, 0.05, 0.3, 1.0, 0.1, 200
    d, lam = 1, noise**2
    X = grid(301, d)
    held = plain = itself = without_root = 0
    for seed in range(200):
        function = MisspecifiedFunction(
            kind, seed, misspecification=eps, norm=norm, lengthscale=lengthscale, d_x=d
        )
        generator = np.random.default_rng(seed)
        cells = round(2 / lengthscale)  # half of the data in the middles of cells
        middles = (generator.integers(cells, size=(t // 2, d)) + 0.5) / cells
        Z = np.concatenate([middles, generator.random((t - t // 2, d))])
        y = values(function, torch.tensor(Z)).numpy() + noise * generator.normal(size=t)
        K = kernel(Z, Z, lengthscale)
        cross = kernel(Z, X.numpy(), lengthscale)
        solved = np.linalg.solve(K + lam * np.eye(t), cross)
        mean = solved.T @ y
        sigma = np.sqrt(np.clip(1.0 - (cross * solved).sum(0), 0.0, None))
        width = confidence_width(
            information_gain(torch.tensor(K), lam).item(),
            norm_bound=norm,
            delta=delta,
            noise_std=noise,
            noise_ratio=lam,
        )
        enlarged = (width + eps * math.sqrt(t / lam)) * sigma
        h, f = function.represented(X).numpy(), values(function, X).numpy()
        held += bool((np.abs(h - mean) <= enlarged).all())
        itself += bool((np.abs(f - mean) <= enlarged + eps).all())
        plain += bool((np.abs(h - mean) <= width * sigma).all())
        less = (width + eps / math.sqrt(lam)) * sigma  # sqrt(t) forgotten
        without_root += bool((np.abs(h - mean) <= less).all())
    assert held >= (1 - delta) * 200 and itself >= (1 - delta) * 200
    assert plain < (1 - delta) * 200 and without_root < (1 - delta) * 200
