"""Mixtures of Gaussians against samples of them, and against a root search of SciPy."""

from __future__ import annotations

import math

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from scipy.optimize import brentq
from scipy.stats import norm

from botorch_drbo.posterior.mixture import GaussianMixture
from tests.models import uniform

MEANS = torch.tensor([-2.0, 0.5, 7.0], dtype=torch.double)
DEVIATIONS = torch.tensor([0.3, 2.0, 1.0], dtype=torch.double)
BELIEF = GaussianMixture(MEANS, DEVIATIONS)


@pytest.mark.parametrize("probability", [1e-9, 0.01, 0.3, 0.5, 0.7, 0.95, 1 - 1e-9])
def test_a_quantile_is_the_root_that_scipy_finds(probability: float) -> None:
    def excess(value: float) -> float:
        each = norm.cdf(value, MEANS.numpy(), DEVIATIONS.numpy())
        return each.mean() - probability

    root = brentq(excess, -30.0, 30.0, xtol=1e-13, rtol=1e-13)
    assert BELIEF.quantile(probability).item() == pytest.approx(root, abs=1e-9)


def test_quantiles_and_moments_are_those_of_samples() -> None:
    generator = torch.Generator().manual_seed(0)
    which = torch.randint(3, (400_000,), generator=generator)
    noise = torch.randn(400_000, generator=generator, dtype=torch.double)
    drawn = MEANS[which] + DEVIATIONS[which] * noise
    for probability in (0.05, 0.4, 0.6, 0.95):
        assert BELIEF.cdf(drawn.quantile(probability)).item() == pytest.approx(
            probability, abs=4e-3
        )
        below = (drawn < BELIEF.quantile(probability)).double().mean().item()
        assert below == pytest.approx(probability, abs=4e-3)
    assert BELIEF.mean.item() == pytest.approx(drawn.mean().item(), abs=0.03)
    assert BELIEF.deviation.item() == pytest.approx(drawn.std().item(), rel=5e-3)


def test_one_gaussian_has_its_own_quantiles() -> None:
    one = GaussianMixture(MEANS[2:], DEVIATIONS[2:])
    assert one.interval(0.9) == pytest.approx(norm.interval(0.9, 7.0, 1.0))


def test_many_numbers_at_once_are_as_one_by_one() -> None:
    means, deviations = uniform(4, 5), uniform(4, 5, seed=1)
    together = GaussianMixture(means, deviations).quantile(0.2)
    alone = [
        GaussianMixture(means[:, j], deviations[:, j]).quantile(0.2) for j in range(5)
    ]
    assert torch.allclose(together, torch.stack(alone), atol=1e-14)


def test_point_masses_have_quantiles_among_them() -> None:
    values = torch.arange(11.0).double()
    points = GaussianMixture(values, torch.zeros_like(values))
    assert points.interval(0.8) == pytest.approx((1.0, 9.0), abs=1.0 + 1e-9)
    assert points.quantile(0.5).item() == pytest.approx(5.0, abs=1e-9)
    assert points.mean.item() == 5.0


def test_stretching_and_turning_round_act_on_every_quantile() -> None:
    middle = BELIEF.mean.item()
    for probability in (0.02, 0.5, 0.9):
        own = BELIEF.quantile(probability).item()
        wider = BELIEF.widened(1.7).quantile(probability).item()
        assert wider == pytest.approx(middle + 1.7 * (own - middle))
        turned = BELIEF.mirrored().quantile(1.0 - probability).item()
        assert turned == pytest.approx(-own)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 90, math.nan, "0.9", True])
def test_a_level_that_is_no_probability_is_refused(level: object) -> None:
    with pytest.raises(InputDataError, match="`level` must be a number between 0 and"):
        BELIEF.interval(level)  # pyright: ignore[reportArgumentType]


def test_a_level_in_percent_is_named() -> None:
    with pytest.raises(InputDataError, match=r"got 90: for 90% give 0\.9\."):
        BELIEF.interval(90)
