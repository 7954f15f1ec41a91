"""Confidence widths against the papers' sums, computed from scratch in numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms import Normalize
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_drbo.confidence import (
    abbasi_yadkori_width,
    confidence_width,
    information_gain,
    model_confidence_width,
)
from botorch_drbo.confidence.width import nonadaptive_confidence_width

NUMBERS = {"norm_bound": 1.7, "delta": 0.05, "noise_std": 0.3, "noise_ratio": 0.04}
BOX = (-1.0, 3.0)


def inputs(t: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(t, 2, generator=generator, dtype=torch.double)


def unit_kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A squared exponential kernel of lengthscale 0.4 with ``k(x, x) = 1``."""
    square = ((A[:, None, :] - B[None, :, :]) ** 2).sum(-1)
    return np.exp(-0.5 * square / 0.4**2)


def lemma_1(X: np.ndarray, B: float, delta: float, sigma: float, lam: float) -> float:
    """The sum of the lemma, each posterior variance solved for anew."""
    total = 0.0
    for s in range(len(X)):
        variance = 1.0
        if s:
            k = unit_kernel(X[:s], X[s : s + 1])[:, 0]
            A = unit_kernel(X[:s], X[:s]) + lam * np.eye(s)
            variance -= k @ np.linalg.inv(A) @ k
        total += math.log(1.0 + variance / lam)
    root = math.sqrt(2.0 * math.log(1.0 / delta) + total)
    return sigma / math.sqrt(lam) * root + B


@pytest.mark.parametrize("t", [0, 1, 12])
def test_lemma_1_by_brute_force(t: int) -> None:
    X = inputs(t).numpy()
    gain = information_gain(torch.tensor(unit_kernel(X, X)), 0.04)
    expected = lemma_1(X, 1.7, 0.05, 0.3, 0.04)
    assert confidence_width(gain, **NUMBERS) == pytest.approx(expected, rel=1e-10)
    assert confidence_width(gain.item(), **NUMBERS) == confidence_width(gain, **NUMBERS)


@pytest.mark.parametrize("t", [1, 12])
def test_abbasi_yadkori_by_brute_force(t: int) -> None:
    X = inputs(t).numpy()
    K = unit_kernel(X, X)
    determinant = np.linalg.det(np.eye(t) + K / 0.04)
    root = math.sqrt(2.0 * math.log(math.sqrt(determinant) / 0.05))
    expected = 0.3 * root + math.sqrt(0.04) * 1.7
    gain = information_gain(torch.tensor(K), 0.04)
    width = abbasi_yadkori_width(gain, **NUMBERS)
    assert width == pytest.approx(expected, rel=1e-10)
    # WDRBO's sigma is ours over sqrt(lambda): one and the same interval.
    ours = confidence_width(gain, **NUMBERS)
    assert width / math.sqrt(0.04) == pytest.approx(ours, rel=1e-12)


def test_nonadaptive_by_hand() -> None:
    for episode in (1, 2, 5):
        share = 0.05 / (episode * (episode + 1)) / 2 / 300
        expected = 0.3 / 0.2 * math.sqrt(2 * math.log(1 / share)) + 1.7
        width = nonadaptive_confidence_width(300, episode=episode, **NUMBERS)
        assert width == pytest.approx(expected, rel=1e-12)


def test_the_shares_of_the_episodes_add_up_to_delta() -> None:
    # Back from the widths to the probabilities that were spent.
    spent = 0.0
    for episode in range(1, 2000):
        width = nonadaptive_confidence_width(7, episode=episode, **NUMBERS)
        spent += 2 * 7 * math.exp(-0.5 * ((width - 1.7) * 0.2 / 0.3) ** 2)
    assert spent == pytest.approx(0.05, rel=1e-3) and spent < 0.05


def test_nonadaptive_interval_covers_and_is_not_vacuous() -> None:
    """Fixed inputs, a function of known norm, Gaussian noise: all points at once."""
    rng = np.random.default_rng(0)
    grid, X = inputs(60).numpy(), inputs(16, seed=1).numpy()
    centres = inputs(5, seed=2).numpy()
    K = unit_kernel(X, X) + 0.04 * np.eye(16)
    k = unit_kernel(X, grid)
    weights = np.linalg.solve(K, k)  # 16 x 60
    sigma = np.sqrt(1.0 - (k * weights).sum(0))
    failures = too_narrow = 0
    for _ in range(300):
        a = rng.normal(size=5)
        a *= 1.7 / math.sqrt(a @ unit_kernel(centres, centres) @ a)  # norm 1.7
        f, f_X = unit_kernel(grid, centres) @ a, unit_kernel(X, centres) @ a
        mu = weights.T @ (f_X + 0.3 * rng.normal(size=16))
        worst = (np.abs(f - mu) / sigma).max()
        failures += worst > nonadaptive_confidence_width(60, **NUMBERS)
        too_narrow += worst > 1.7
    assert failures <= 300 * 0.05
    assert too_narrow > 30  # the norm alone would not do


def scaled_model(
    X: torch.Tensor, Y: torch.Tensor, outputscale: float, noise: float
) -> SingleTaskGP:
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.lengthscale = torch.tensor(0.4, dtype=torch.double)
    kernel.outputscale = outputscale
    bounds = torch.tensor([[BOX[0]] * 2, [BOX[1]] * 2]).double()
    model = SingleTaskGP(
        X, Y, covar_module=kernel, input_transform=Normalize(2, bounds=bounds)
    )
    model.likelihood.noise = torch.tensor(noise, dtype=torch.double)
    return model


def test_width_of_a_model_times_its_sigma_is_the_papers() -> None:
    U = inputs(14)
    X = BOX[0] + (BOX[1] - BOX[0]) * U
    Y = 20.0 + 7.0 * X.sum(-1, keepdim=True).sin()
    unit = Y.std().item()
    outputscale, noise, B, delta, noise_std = 2.5, 0.1, 30.0, 0.05, 1.3
    model = scaled_model(X, Y, outputscale, noise)

    lam = noise / outputscale  # the paper's normalised kernel, y in units of `unit`
    k = unit_kernel(U.numpy(), inputs(6, seed=4).numpy())
    A = unit_kernel(U.numpy(), U.numpy()) + lam * np.eye(14)
    sigma = np.sqrt(1.0 - (k * np.linalg.solve(A, k)).sum(0))
    width = lemma_1(U.numpy(), B / unit, delta, noise_std / unit, lam)
    expected = unit * width * sigma

    test = BOX[0] + (BOX[1] - BOX[0]) * inputs(6, seed=4)
    ours = model_confidence_width(model, norm_bound=B, delta=delta, noise_std=noise_std)
    with torch.no_grad():
        posterior = model.posterior(test.unsqueeze(-2))
        actual = ours * posterior.variance.sqrt().flatten()
        np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-6)
        # And the square is what BoTorch calls beta.
        bound = UpperConfidenceBound(model, beta=ours**2)(test.unsqueeze(-2))
        torch.testing.assert_close(bound, posterior.mean.flatten() + actual)


def test_noise_of_the_model_is_believed_unless_said_otherwise() -> None:
    X = inputs(9)
    Y = X.sum(-1, keepdim=True)
    model = scaled_model(X, Y, 1.0, 0.25)
    own = 0.5 * Y.std().item()
    options = {"norm_bound": 1.0, "delta": 0.1}
    believed = model_confidence_width(model, **options)
    said = model_confidence_width(model, noise_std=own, **options)
    twice = model_confidence_width(model, noise_std=2 * own, **options)
    assert believed == pytest.approx(said, rel=1e-12)
    B = 1.0 / Y.std().item()
    assert twice - B == pytest.approx(2 * (said - B), rel=1e-9)


def test_noise_of_each_observation() -> None:
    X = inputs(5)
    noise = torch.tensor([[0.1], [0.2], [0.3], [0.4], [0.5]], dtype=torch.double)
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.lengthscale = torch.tensor(0.4, dtype=torch.double)
    kernel.outputscale = 4.0
    model = SingleTaskGP(
        X, X[:, :1], noise, covar_module=kernel, outcome_transform=None
    )
    K = 4.0 * unit_kernel(X.numpy(), X.numpy())
    scale = noise.numpy() ** -0.5
    _, logdet = np.linalg.slogdet(np.eye(5) + scale * K * scale.T)
    root = math.sqrt(2 * math.log(10.0) + logdet)
    width = model_confidence_width(model, norm_bound=3.0, delta=0.1)
    assert width == pytest.approx(root + 3.0 / 2.0, rel=1e-9)
    width = model_confidence_width(model, norm_bound=3.0, delta=0.1, noise_std=0.5)
    assert width == pytest.approx(0.5 / 0.1**0.5 * root + 3.0 / 2.0, rel=1e-9)


def test_another_model() -> None:
    X = inputs(3)
    several = ModelListGP(SingleTaskGP(X, X[:, :1]))
    with pytest.raises(UnsupportedError, match="ModelListGP"):
        model_confidence_width(several, norm_bound=1.0, delta=0.1)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("delta", 0.0),
        ("delta", 1.0),
        ("delta", -0.1),
        ("delta", 1.5),
        ("delta", math.nan),
        ("delta", "0.1"),
        ("norm_bound", -1.0),
        ("norm_bound", math.inf),
        ("norm_bound", torch.ones(2)),
        ("noise_std", -0.1),
        ("noise_ratio", 0.0),
        ("noise_ratio", -1.0),
        ("information_gain", -1e-3),
        ("information_gain", True),
    ],
)
def test_numbers_out_of_range(name: str, value: object) -> None:
    numbers: dict = {**NUMBERS, "information_gain": 1.0, name: value}
    gain = numbers.pop("information_gain")
    for width in (confidence_width, abbasi_yadkori_width):
        with pytest.raises(InputDataError, match=name):
            width(gain, **numbers)
    if name != "information_gain":
        with pytest.raises(InputDataError, match=name):
            nonadaptive_confidence_width(5, **numbers)
    if name in ("delta", "norm_bound", "noise_std"):
        numbers.pop("noise_ratio")
        X = inputs(3)
        with pytest.raises(InputDataError, match=name):
            model_confidence_width(SingleTaskGP(X, X[:, :1]), **numbers)


@pytest.mark.parametrize("name", ["num_decisions", "episode"])
@pytest.mark.parametrize("count", [0, -1, 2.0, True])
def test_bad_counts(name: str, count: object) -> None:
    counts: dict = {"num_decisions": 5, "episode": 1, name: count}
    with pytest.raises(InputDataError, match=name):
        nonadaptive_confidence_width(**counts, **NUMBERS)
