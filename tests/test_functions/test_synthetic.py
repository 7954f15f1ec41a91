"""Formulas against numpy, optima against other quadratures, errors."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import minimize
from torch.distributions import Gamma, Independent, MultivariateNormal

from benchmarks.problems import PROBLEMS, make
from botorch_drbo.test_functions import RobustTestFunction, make_test_function
from botorch_drbo.test_functions.base import find_optimum, normal_law
from botorch_drbo.test_functions.closed_form import ClosedForm
from tests.contracts.functions import random_pairs

Array = NDArray[np.float64]
# These need a data file, and have tests of their own.
WITH_DATA = ("portfolio_normal", "portfolio_uniform", "plant_growth", "covid_testing")
SYNTHETIC = [name for name in PROBLEMS if name not in WITH_DATA]
CASES = [(name, {}) for name in SYNTHETIC] + [
    (name, {"preset": "sbo_kde"})
    for name in ("ackley_1_1", "ackley_2_1", "ackley_2_4", "branin_2_2", "hartmann_5_1")
]


# -- independent formulas: numpy, one pair (x, c) per row ------------------------------


def branin(u: Array | float, v: Array | float) -> Array:
    a, b, c, r, s, t = 1, 5.1 / (4 * np.pi**2), 5 / np.pi, 6, 10, 1 / (8 * np.pi)
    return a * (v - b * u**2 + c * u - r) ** 2 + s * (1 - t) * np.cos(u) + s


def numpy_ackley(x: Array, c: Array) -> Array:
    z = np.concatenate([x, c], axis=1) * 2 * 32.768 - 32.768
    first = -20 * np.exp(-0.2 * np.sqrt(np.mean(z**2, axis=1)))
    second = -np.exp(np.mean(np.cos(2 * np.pi * z), axis=1))
    return -(first + second + 20 + np.exp(1))


def numpy_branin(x: Array, c: Array) -> Array:
    first = branin(15 * x[:, 0] - 5, 15 * c[:, 0])
    second = branin(15 * c[:, 1] - 5, 15 * x[:, 1])
    return -np.sqrt(first * second)


def numpy_hartmann(x: Array, c: Array) -> Array:
    a = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14]]
    a += [[3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
    p = [[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991]]
    p += [[2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381]]
    total = np.zeros(len(x))
    for weight, row, centre in zip([1, 1.2, 3, 3.2], a, p, strict=True):
        z = np.concatenate([x, c], axis=1) - 1e-4 * np.asarray(centre)
        total += weight * np.exp(-(z**2) @ np.asarray(row))
    return total


def numpy_hartmann3(x: Array, c: Array) -> Array:
    a = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
    p = [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]
    z = np.hstack([x, c])[:, None, :] - 1e-4 * np.asarray(p)
    return np.exp(-np.einsum("nij,ij->ni", z**2, a)) @ np.array([1, 1.2, 3, 3.2])


def numpy_newsvendor(x: Array, c: Array) -> Array:
    left = np.where(x > c, x - c, 0.0)
    return (9 * (x - left) + 1 * left - 5 * x)[:, 0]


def numpy_three_hump(x: Array, c: Array) -> Array:
    u, v = x[:, 0], c[:, 0]
    return -np.polyval([1 / 6, 0, -1.05, 0, 2, 0, 0], u) - u * v - v * v


def numpy_six_hump(x: Array, c: Array) -> Array:
    u, v = 4 * x[:, 0] - 2, 2 * c[:, 0] - 1
    return -np.polyval([1 / 3, 0, -2.1, 0, 4, 0, 0], u) - u * v + 4 * v**2 - 4 * v**4


def numpy_figure1(x: Array, c: Array) -> Array:
    size = np.abs(x[:, 0])
    return 1 - np.abs(c[:, 0] - 0.5) / (size + 0.2) - np.sqrt(size + 0.05)


def numpy_reservoir(x: Array, c: Array) -> Array:
    return 0.8 * x[:, 0] + 0.6 * x[:, 1] + 0.15 - 0.3 * c[:, 0]


FORMULAS: dict[str, Callable[[Array, Array], Array]] = {
    "ackley_1_1": numpy_ackley,
    "ackley_2_1": numpy_ackley,
    "ackley_2_4": numpy_ackley,
    "branin_2_2": numpy_branin,
    "hartmann_5_1": numpy_hartmann,
    "complicated_hartmann": numpy_hartmann,
    "hartmann_2_1": numpy_hartmann3,
    "newsvendor": numpy_newsvendor,
    "reservoir": numpy_reservoir,
    "three_hump_camel": numpy_three_hump,
    "six_hump_camel": numpy_six_hump,
    "wdrbo_figure1": numpy_figure1,
}


# -- formulas --------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMULAS)
def test_formula_against_numpy(name: str) -> None:
    function = make(name)
    x, c = random_pairs(function, 200)
    expected = FORMULAS[name](x.numpy(), c.numpy())
    np.testing.assert_allclose(function.evaluate(x, c).numpy(), expected, atol=1e-11)


def at(function: RobustTestFunction, x: list[float], c: list[float]) -> float:
    return function.evaluate(torch.tensor(x).double(), torch.tensor(c).double()).item()


def test_published_optima_of_f() -> None:
    """The optima of the formulas as the literature prints them."""
    assert at(make("ackley_2_4"), [0.5, 0.5], [0.5] * 4) == pytest.approx(0, abs=1e-12)
    # Branin's minimum .397887 is met at (-pi, 12.275) and (pi, 2.275), among others.
    x, c = [(5 - math.pi) / 15, 2.275 / 15], [12.275 / 15, (math.pi + 5) / 15]
    assert at(make("branin_2_2"), x, c) == pytest.approx(-0.397887, abs=1e-6)
    z = [0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573]
    assert at(make("hartmann_5_1"), z[:5], z[5:]) == pytest.approx(3.32237, abs=1e-5)
    z = [0.114614, 0.555649, 0.852547]
    assert at(make("hartmann_2_1"), z[:2], z[2:]) == pytest.approx(3.86278, abs=1e-5)
    x, c = [(0.0898 + 2) / 4], [(-0.7126 + 1) / 2]
    assert at(make("six_hump_camel"), x, c) == pytest.approx(1.0316, abs=1e-4)
    assert at(make("three_hump_camel"), [0.0], [0.0]) == 0
    assert at(make("wdrbo_figure1"), [0.0], [0.5]) == pytest.approx(1 - 0.05**0.5)


# -- optima by another route -----------------------------------------------------------

QUANTILES: dict[str, Callable[[Array], Array]] = {
    "hartmann_2_1": lambda u: u,
    "newsvendor": lambda u: stats.burr12(2, 20).ppf(u),
    "six_hump_camel": lambda u: stats.norm(0.6, 0.2).ppf(u),
    "wdrbo_figure1": lambda u: stats.norm(0.6, 0.2).ppf(u),
}


def midpoint_contexts(name: str, options: dict[str, str], num: int) -> Array:
    """Contexts of equal probability by the midpoint rule, from scipy's laws."""
    if name == "complicated_hartmann":
        # Component by component, not through the mixture's quantile: another route.
        laws = [stats.cauchy(0.2, 0.02), stats.cauchy(0.8, 0.02)]
        means, stds = (0.1, 0.3, 0.4, 0.5, 0.7, 0.8), (2, 7.5, 10, 10, 7.5, 3)
        pairs = zip(means, stds, strict=True)
        laws += [stats.norm(m, s / 100) for m, s in pairs]
        u = (np.arange(num // 8) + 0.5) / (num // 8)
        return np.concatenate([law.ppf(u) for law in laws]).clip(0, 1)[:, None]
    std = 0.2
    if options.get("preset") == "sbo_kde":
        std = 0.15 if name.startswith("ackley") else 0.1
    quantile = QUANTILES.get(name, stats.norm(0.5, std).ppf)
    u = (np.arange(num) + 0.5) / num
    if name == "three_hump_camel":
        return 2 * u[:, None] - 1
    return np.clip(quantile(u), 0, 1)[:, None]


def mean_over(name: str, x: Array, contexts: Array) -> float:
    if name == "branin_2_2":  # the root of the product separates the two contexts
        first = np.sqrt(branin(15 * x[0] - 5, 15 * contexts[:, 0])).mean()
        second = np.sqrt(branin(15 * contexts[:, 0] - 5, 15 * x[1])).mean()
        return -float(first * second)
    return float(FORMULAS[name](np.tile(x, (len(contexts), 1)), contexts).mean())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        case
        for case in CASES
        if case[0] not in ("ackley_2_4", "gp_prior_2_2", "reservoir")
        and not case[0].startswith("misspecified")
    ],
)
def test_stored_optimum_by_another_quadrature(
    name: str, options: dict[str, str]
) -> None:
    """Midpoint rule in probability and Nelder-Mead from the stored decision.

    A product rule is too coarse for four contexts; they, the GP sample, the reservoir
    (whose optimum is a corner) and the misspecified functions have tests of their own.
    """
    function = make(name, **options)
    # Five decisions take more steps; that function is smooth, so spare the time.
    contexts = midpoint_contexts(name, options, 4000 if function.d_x == 5 else 40_000)
    stored = function.optimal_decision.numpy()
    assert (function.bounds[0].numpy() <= stored).all()
    assert (stored <= function.bounds[1].numpy()).all()
    value = mean_over(name, stored, contexts)
    assert function.optimal_value == pytest.approx(value, abs=1e-4)
    result = minimize(
        lambda x: -mean_over(name, x, contexts),
        stored + 0.003,
        method="Nelder-Mead",
        options={"maxfev": 150 if function.d_x == 5 else 60},
    )
    assert -result.fun <= function.optimal_value + 1e-4
    if name in ("newsvendor", "six_hump_camel"):
        np.testing.assert_allclose(result.x, stored, atol=2e-3)


@pytest.mark.parametrize(
    "name", ["newsvendor", "three_hump_camel", "six_hump_camel", "wdrbo_figure1"]
)
def test_one_decision_grids(name: str) -> None:
    """With one decision, a dense grid shows that the optimum is global."""
    function = make(name)
    contexts = midpoint_contexts(name, {}, 2000)
    low, high = function.bounds[:, 0].tolist()
    grid = np.linspace(low, high, 2001)
    values = np.array([mean_over(name, np.array([x]), contexts) for x in grid])
    best = grid[values.argmax()]
    assert values.max() == pytest.approx(function.optimal_value, abs=2e-4)
    if name == "wdrbo_figure1":
        best = abs(best)  # the function is even
    # Three-hump camel and Figure 1 are flat at the top; a grid step is 5e-4 or 1e-3.
    assert best == pytest.approx(function.optimal_decision.item(), abs=5e-3)


def test_ackley_with_four_contexts_by_separation() -> None:
    """The ripple factorises over coordinates; the radius is summed by Monte Carlo."""
    for preset, std in (("wdrbo", 0.2), ("sbo_kde", 0.15)):
        function = make("ackley_2_4", preset=preset)
        x = function.optimal_decision.numpy()
        np.testing.assert_allclose(x, 0.5, atol=1e-4)  # by symmetry
        u = (np.arange(50_000) + 0.5) / 50_000
        one = 65.536 * np.clip(stats.norm(0.5, std).ppf(u), 0, 1) - 32.768
        ripple = np.exp(1 / 3) * np.exp(np.cos(2 * np.pi * one) / 6).mean() ** 4
        # E exp(-.2 R / sqrt 6) with R^2 the sum of four: the law of a sum of two
        # squares on a grid of quantiles, twice.
        squares = midpoint_of_sum(midpoint_of_sum(one**2))
        value = 20 * np.exp(-0.2 * np.sqrt(squares / 6)).mean() + ripple - 20 - np.e
        assert function.optimal_value == pytest.approx(value, abs=2e-3)


def midpoint_of_sum(values: Array, num: int = 1000) -> Array:
    """Return ``num`` quantiles of the sum of two independent copies of ``values``."""
    u = (np.arange(num) + 0.5) / num
    coarse = np.quantile(values, u)
    total = np.sort(np.add.outer(coarse, coarse).ravel())
    return total.reshape(num, num).mean(axis=1)


def test_optima_in_closed_form() -> None:
    """Newsvendor: the critical fractile is (9 - 5) / (9 - 1) = 1/2, the median."""
    function = make("newsvendor")
    median = math.sqrt(2 ** (1 / 20) - 1)
    assert function.optimal_decision.item() == pytest.approx(median, abs=2e-5)
    assert make("ackley_2_1").optimal_value == pytest.approx(-12.531, abs=1e-3)
    assert make("ackley_1_1").optimal_value == pytest.approx(-13.854, abs=1e-3)
    # Three-hump camel at x = 0 leaves -E[c^2] = -1/3 for a uniform c.
    camel = make("three_hump_camel")
    assert camel.optimal_value == -1 / 3 and camel.optimal_decision.item() == 0.0
    assert camel.bounds.tolist() == camel.context_bounds.tolist() == [[-1.0], [1.0]]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ackley_2_1", "branin_2_2", "hartmann_5_1"])
def test_search_finds_the_stored_optimum(name: str) -> None:
    function = make(name)
    found = find_optimum(function, num_contexts=2**13)
    assert found.value == pytest.approx(function.optimal_value, abs=1e-3)


def test_own_law_is_searched_on_demand() -> None:
    function = make("six_hump_camel", context_law=normal_law(0.4, 0.1, 1))
    contexts = np.clip(stats.norm(0.4, 0.1).ppf((np.arange(4000) + 0.5) / 4000), 0, 1)
    grid = np.linspace(0, 1, 1001)
    values = [
        mean_over("six_hump_camel", np.array([x]), contexts[:, None]) for x in grid
    ]
    assert function.optimal_value == pytest.approx(max(values), abs=1e-3)
    best = grid[int(np.argmax(values))]
    assert function.optimal_decision.item() == pytest.approx(best, abs=2e-3)


# -- contexts and noise ----------------------------------------------------------------


def test_chunks_do_not_change_values(monkeypatch: pytest.MonkeyPatch) -> None:
    function = make("ackley_2_4")
    x, c = random_pairs(function, 33)
    whole, mean = function.evaluate(x, c), function.expected_value(x, num=50)
    for size in (7, 120):  # contexts split; then decisions split
        monkeypatch.setattr(ClosedForm, "_pairs_at_once", size)
        torch.testing.assert_close(function.evaluate(x, c), whole)
        torch.testing.assert_close(function.expected_value(x, num=50), mean)


@pytest.mark.parametrize(
    "name",
    [
        "ackley_2_1",
        "three_hump_camel",
        "complicated_hartmann",
        "hartmann_2_1",
        "newsvendor",
        "six_hump_camel",
    ],
)
def test_contexts_follow_the_law(name: str) -> None:
    """Against scipy: draws by Kolmogorov-Smirnov distance, Sobol by quantiles."""
    function = make(name)
    expected = np.sort(midpoint_contexts(name, {}, 8000)[:, 0])
    drawn = function.sample_contexts(4000, seed=0)[:, 0].numpy()
    distance = np.abs(
        np.searchsorted(np.sort(drawn), expected, side="right") / len(drawn)
        - np.searchsorted(expected, expected, side="right") / len(expected)
    ).max()
    assert distance < 1.95 * np.sqrt(1 / len(drawn) + 1 / len(expected))  # level .001
    sobol = np.sort(function.true_contexts(8192)[:, 0].numpy())
    levels = np.linspace(0.02, 0.98, 49)
    np.testing.assert_allclose(
        np.quantile(sobol, levels), np.quantile(expected, levels), atol=2e-3
    )


def test_noise() -> None:
    function = make("newsvendor", noise_std=0.3)
    x, c = random_pairs(function, 4000)
    noise = function.observe(x, c, generator=torch.Generator().manual_seed(0))
    noise = noise - function.evaluate(x, c)
    assert noise.std().item() == pytest.approx(0.3, abs=0.02)
    assert noise.mean().item() == pytest.approx(0, abs=0.02)
    again = function.observe(x, c, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(again - function.evaluate(x, c), noise)
    clean = make("newsvendor")
    torch.testing.assert_close(clean.observe(x, c), clean.evaluate(x, c))


def test_reference_of_the_general_setting() -> None:
    reference = make("wdrbo_figure1").reference
    assert reference is not None
    assert reference.mean.item() == pytest.approx(0.5, abs=2e-3)
    assert reference.std.item() == pytest.approx(0.1, abs=5e-3)
    assert make("ackley_2_1").reference is None


def test_presets_differ() -> None:
    wide, narrow = (
        make("ackley_2_1"),
        make("ackley_2_1", preset="sbo_kde"),
    )
    assert wide.true_contexts(1024).std() > narrow.true_contexts(1024).std() + 0.03


# -- errors ----------------------------------------------------------------------------


def test_errors_name_the_cure() -> None:
    with pytest.raises(InputDataError, match="Choose one of"):
        make_test_function("rosenbrock")
    with pytest.raises(InputDataError, match="`preset` must be one of"):
        make("ackley_2_1", preset="mine")
    with pytest.raises(InputDataError, match="noise_std"):
        make("newsvendor", noise_std=-1.0)
    with pytest.raises(UnsupportedError, match="independent coordinates"):
        make("ackley_2_1", context_law=MultivariateNormal(torch.zeros(1), torch.eye(1)))
    law = Independent(Gamma(torch.ones(1), torch.ones(1)), 1)
    with pytest.raises(UnsupportedError, match="inverse cdf"):
        make("ackley_2_1", context_law=law)
    with pytest.raises(BotorchTensorDimensionError, match="event shape"):
        make("ackley_2_1", context_law=normal_law(0.5, 0.1, 2))
    function = make("ackley_2_1")
    x, c = random_pairs(function, 3)
    with pytest.raises(BotorchTensorDimensionError, match="2 columns"):
        function.evaluate(c, c)
    with pytest.raises(BotorchTensorDimensionError, match="1 columns"):
        function.evaluate(x, x)
