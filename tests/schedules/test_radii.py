"""Radii against formulas by hand; the Wasserstein radius against simulations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from botorch_drbo.schedules import (
    Constant,
    InverseSquareRoot,
    KernelDensityRadius,
    MMDRadius,
    WassersteinConfidenceRadius,
)


@pytest.mark.parametrize("t", [1, 2, 9, 100, 12345])
def test_formulas_by_hand(t):
    assert Constant(1.5)(t) == 1.5
    assert InverseSquareRoot(0.3)(t) == pytest.approx(0.3 * t**-0.5, rel=1e-14)
    assert KernelDensityRadius(1)(t) == pytest.approx(t**-0.4, rel=1e-14)
    assert KernelDensityRadius(4, 0.5)(t) == pytest.approx(0.5 * t**-0.25, rel=1e-14)
    assert MMDRadius()(t) == pytest.approx(4.145966026289 * t**-0.5, rel=1e-12)
    assert MMDRadius(math.exp(-2.0))(t) == pytest.approx(4.0 * t**-0.5, rel=1e-14)


@pytest.mark.parametrize("t", [3, 10, 250])
def test_wasserstein_radius_for_one_function(t):
    want = 2.5 * math.sqrt(math.log(20.0) / (2 * t))
    for d_c in (1, 7):  # the dimension does not matter
        got = WassersteinConfidenceRadius(d_c, 2.5, 0.05)(t)
        assert got == pytest.approx(want, rel=1e-14)


@pytest.mark.parametrize("d_c", [1, 2, 3, 5])
@pytest.mark.parametrize("t", [40, 1000, 10**5, 10**7])
def test_wasserstein_radius_for_all_functions(d_c, t):
    def bound(k_star):
        terms = [
            2.0 ** -(k - 1) * math.sqrt(2.0 ** (k * d_c) / t)
            for k in range(1, k_star + 1)
        ]
        return 2.0**-k_star + sum(terms)

    mean = 0.5 / math.sqrt(t) if d_c == 1 else min(map(bound, range(40)))
    want = 3.0 * min(1.0, mean + math.sqrt(math.log(10.0) / (2 * t)))
    got = WassersteinConfidenceRadius(d_c, 3.0, 0.1, uniform=True)(t)
    assert got == pytest.approx(want, rel=1e-12)


def test_wasserstein_radius_is_at_most_the_diameter():
    assert WassersteinConfidenceRadius(1, 0.7)(1) == 0.7  # the root alone is 1.07
    assert WassersteinConfidenceRadius(8, 0.7, uniform=True)(5) == 0.7


# Laws on [0, 2] as quantile functions. The two-point laws have the largest spread that
# the diameter allows: there the bounds are tightest.
QUANTILES = {
    "uniform": lambda u: 2.0 * u,
    "two points": lambda u: 2.0 * (u > 0.5),
    "rare point": lambda u: 2.0 * (u > 0.9),
    "arcsine": lambda u: 2.0 * stats.beta.ppf(u, 0.5, 0.5),
    "narrow": lambda u: np.clip(stats.norm.ppf(u, 1.0, 0.1), 0.0, 2.0),
}


DELTA = 0.3


def allowed_failures(repetitions: int) -> float:
    """Failures that a rate of DELTA exceeds with a probability of about 1e-3."""
    return float(stats.binom.ppf(0.999, repetitions, DELTA))


@pytest.mark.parametrize("law", QUANTILES)
@pytest.mark.parametrize("t", [5, 60])
def test_uniform_radius_covers_the_wasserstein_distance(law, t):
    rng, repetitions = np.random.default_rng(0), 300
    radius = WassersteinConfidenceRadius(1, 2.0, DELTA, uniform=True)(t)
    truth = QUANTILES[law]((np.arange(2000) + 0.5) / 2000)
    distances = [
        stats.wasserstein_distance(QUANTILES[law](rng.random(t)), truth)
        for _ in range(repetitions)
    ]
    assert sum(d > radius for d in distances) <= allowed_failures(repetitions)
    mean_bound = 2.0 * 0.5 / math.sqrt(t)
    assert np.mean(distances) <= mean_bound + 3 * np.std(distances) / repetitions**0.5
    if law == "two points":  # not vacuous: the mean has the bound's order
        assert np.mean(distances) > 0.6 * mean_bound


@pytest.mark.parametrize("law", QUANTILES)
@pytest.mark.parametrize("t", [5, 60])
def test_radius_covers_one_lipschitz_function(law, t):
    rng, repetitions = np.random.default_rng(1), 4000
    radius = WassersteinConfidenceRadius(1, 2.0, DELTA)(t)
    samples = QUANTILES[law](rng.random((repetitions, t)))
    truth = QUANTILES[law]((np.arange(20000) + 0.5) / 20000)
    rates = {}
    for name, f in {
        "c": lambda c: c,
        "-c": lambda c: -c,
        "|c-1|": lambda c: abs(c - 1),
    }.items():
        failures = f(truth).mean() < f(samples).mean(-1) - radius
        rates[name] = failures.mean()
        assert failures.sum() <= allowed_failures(repetitions)
    if law == "two points":  # not vacuous: it does fail now and then
        assert rates["c"] > 0.02


@pytest.mark.parametrize(("d_c", "t"), [(2, 100), (3, 400)])
def test_dyadic_bound_covers_the_mean_distance_on_the_corners_of_a_cube(d_c, t):
    rng = np.random.default_rng(2)
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=d_c)))
    truth = np.full(len(corners), 1.0 / len(corners))
    distances = [
        stats.wasserstein_distance_nd(
            corners, corners, rng.multinomial(t, truth) / t, truth
        )
        for _ in range(15)
    ]
    delta = 1.0 - 1e-12  # takes the deviation term away: what is left bounds the mean
    radius = WassersteinConfidenceRadius(d_c, math.sqrt(d_c), delta, uniform=True)(t)
    assert 0.02 * radius < np.mean(distances) < radius < math.sqrt(d_c)
