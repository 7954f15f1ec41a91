"""The functions of the development set against formulas written out here."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import quad
from scipy.special import gamma, kv

from benchmarks.development.cases import CASES, half_of
from benchmarks.development.formulas import PROBLEMS
from benchmarks.development.truth import truth_of
from benchmarks.study.samples import CategorySample, PriorSample, Waves
from benchmarks.study.truth import Scale
from botorch_drbo.test_functions.closed_form import ClosedForm
from tests.data import with_data

CLAIMS = Path("benchmarks/development/claims.md")


def rows(*values: float) -> torch.Tensor:
    return torch.tensor([values], dtype=torch.double)


def expected(name: str, *x: float) -> float:
    return ClosedForm(PROBLEMS[name]).expected_value(rows(*x)).item()


def clipped_normal(value, mean: float = 0.5, std: float = 0.2) -> float:
    """The expectation of a function of a normal context clipped to [0, 1]."""
    law = stats.norm(mean, std)
    inside = quad(lambda c: value(c) * law.pdf(c), 0, 1, limit=200)[0]
    return inside + value(0.0) * law.cdf(0) + value(1.0) * law.sf(1)


def test_the_halves_are_those_written_down():
    first = ["ackley_2_1", "hartmann_2_1", "three_hump_camel", "branin_2_2"]
    first += ["newsvendor", "reservoir_2_1", "rbf_2_2", "rational_quadratic_3_1"]
    first += ["noisy_1_2"]
    second = ["rastrigin_2_1", "hartmann_5_1", "six_hump_camel", "drop_wave_1_1"]
    second += ["newsvendor_2_1", "portfolio_normal", "matern_2_1", "category_2_1"]
    second += ["bowl_3_1"]
    assert [name for name in CASES if half_of(name) == "A"] == first
    assert [name for name in CASES if half_of(name) == "B"] == second
    assert "the 18 rows of `CASES`" in CLAIMS.read_text()
    assert "odd rows" in CLAIMS.read_text()


@pytest.mark.parametrize("name", with_data(CASES))
def test_one_to_six_columns(name):
    function = CASES[name].make(0)
    assert 2 <= function.d_x + function.d_c <= 6
    space = CASES[name].space(function)
    assert dict(space.categories) == dict(CASES[name].categories)


def test_rastrigin():
    z = 5.12 * np.array([0.1, 0.7]) - 2

    def of_column(v):
        return 10 + v * v - 10 * math.cos(2 * math.pi * v)

    truth = -sum(map(of_column, z)) - clipped_normal(lambda c: of_column(5.12 * c - 2))
    assert expected("rastrigin_2_1", 0.1, 0.7) == pytest.approx(truth, abs=1e-3)
    best = truth_of("rastrigin_2_1", 0).best  # of each column by itself: z = 0
    assert best.tolist() == pytest.approx([2 / 5.12] * 2, abs=1e-5)


def test_drop_wave():
    def value(c):
        squared = (5.12 * 0.3 - 2) ** 2 + (5.12 * c - 2) ** 2
        return (1 + math.cos(12 * math.sqrt(squared))) / (squared / 2 + 2)

    assert expected("drop_wave_1_1", 0.3) == pytest.approx(
        clipped_normal(value), abs=1e-4
    )
    top = ClosedForm(PROBLEMS["drop_wave_1_1"]).evaluate(rows(2 / 5.12), rows(2 / 5.12))
    assert top.item() == pytest.approx(1.0)


def test_the_priced_newsvendor():
    order, markup = 0.2, 0.75
    price, demand = 10.0, 0.75  # times the context

    def profit(c):
        sold = min(order, demand * c)
        return price * sold + (order - sold) - 3 * order

    law = stats.burr12(2.0, 20.0)
    truth = quad(lambda c: profit(c) * law.pdf(c), 0, 1, points=[order / demand])[0]
    assert expected("newsvendor_2_1", order, markup) == pytest.approx(truth, abs=1e-4)


def test_at_price_8_the_demand_is_the_context():
    function = ClosedForm(PROBLEMS["newsvendor_2_1"])
    # order .3, 8 a piece, cost 3, salvage 1: all sold, or .1 left
    assert function.evaluate(rows(0.3, 0.5), rows(0.4)).item() == pytest.approx(1.5)
    assert function.evaluate(rows(0.3, 0.5), rows(0.2)).item() == pytest.approx(0.8)


def test_the_bowl():
    mean = clipped_normal(lambda c: c)
    variance = clipped_normal(lambda c: (c - mean) ** 2)
    offsets = np.array([0.1, 0.2, 0.9]) - [0.3, 0.55, 0.7]
    truth = -(offsets**2).sum() - 3 * 0.3**2 * variance
    assert expected("bowl_3_1", 0.1, 0.2, 0.9) == pytest.approx(truth, abs=1e-4)


def test_the_reservoir_pays_for_what_spills():
    x = np.array([0.8, 0.6])
    room = 1.05 - 0.5 * (x**2).sum()  # .55
    everyday = (1 - room) ** 2 / 2
    floods = 0.95 - room
    inflow = 0.9 * 0.5 + 0.1 * 0.95
    truth = 0.8 * x[0] + 0.6 * x[1] + 0.3 * (0.5 - inflow)
    truth -= 4 * (0.9 * everyday + 0.1 * floods)
    assert expected("reservoir_2_1", *x) == pytest.approx(truth, abs=1e-3)


def matern(r: np.ndarray, nu: float) -> np.ndarray:
    scaled = np.sqrt(2 * nu) * np.maximum(r, 1e-9)
    return 2 ** (1 - nu) / gamma(nu) * scaled**nu * kv(nu, scaled)


KERNELS = {
    "rbf": lambda r: np.exp(-(r**2) / 2),
    "matern_3_2": lambda r: matern(r, 1.5),
    "matern_5_2": lambda r: matern(r, 2.5),
    "rational_quadratic": lambda r: 1 / (1 + r**2 / 2),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_samples_have_the_covariance_of_their_prior(kernel):
    lengthscales = torch.tensor([0.3, 0.8]).double()
    z = torch.tensor([[0.1, 0.2], [0.25, 0.3], [0.5, 0.9], [1.0, 0.0]]).double()
    rng = np.random.default_rng(0)
    values = np.stack(
        [
            (w.decision(z[:, :1]) * w.context(z[:, 1:])).sum(-1).numpy()
            for w in (Waves(kernel, lengthscales, rng, 64) for _ in range(8000))
        ]
    )
    covariance = values.T @ values / len(values)
    r = torch.cdist(z / lengthscales, z / lengthscales).numpy()
    np.testing.assert_allclose(covariance, KERNELS[kernel](r), atol=0.05)


def test_a_sample_has_variance_one_at_each_point():
    # of its weights, given the frequencies: the sum of the squares of the waves
    waves = Waves("matern_3_2", torch.ones(2).double(), np.random.default_rng(1), 32)
    z = torch.rand(5, 2).double()
    angle = z @ waves.frequencies.mT
    squares = (angle.cos() ** 2 + angle.sin() ** 2).mean(-1)
    torch.testing.assert_close(squares, torch.ones(5).double())
    a, b = waves.weights
    direct = (angle.cos() * a + angle.sin() * b).sum(-1)
    found = (waves.decision(z[:, :1]) * waves.context(z[:, 1:])).sum(-1)
    torch.testing.assert_close(found, direct)


def test_samples_differ_by_seed_and_kind_and_have_their_noise():
    samples = [PriorSample(k, 1, 1, s) for k in ("rbf", "matern_5_2") for s in (0, 1)]
    values = {f.evaluate(rows(0.5), rows(0.5)).item() for f in samples}
    scales = {tuple(f.lengthscales.tolist()) for f in samples}
    assert len(values) == len(scales) == 4
    assert all(0.2 <= scale <= 1 for each in scales for scale in each)
    assert [CASES[n].make(0).noise_std for n in ("noisy_1_2", "rbf_2_2")] == [0.4, 0.0]


def test_categories_share_half_of_their_variance():
    where = torch.tensor([[0.0, 0.4], [1.0, 0.4], [2.0, 0.4]]).double()
    values = torch.stack(
        [CategorySample(seed).evaluate(where, rows(0.6)) for seed in range(1500)]
    )
    covariance = values.mT @ values / len(values)
    wanted = torch.full((3, 3), 0.5).double() + 0.5 * torch.eye(3)
    torch.testing.assert_close(covariance, wanted, atol=0.12, rtol=0)


def test_random_decisions_take_each_category_as_often():
    case = CASES["category_2_1"]
    uniforms = torch.rand(3000, 2, generator=torch.Generator().manual_seed(0)).double()
    X = case.decisions(case.make(0), uniforms)
    counts = X[:, 0].unique(return_counts=True)[1]
    assert len(counts) == 3
    assert (counts - 1000).abs().max() < 100
    torch.testing.assert_close(X[:, 1], uniforms[:, 1])


@pytest.mark.slow
@pytest.mark.parametrize("name", with_data(CASES))
def test_the_best_decision_is_not_beaten_by_random_search(name):
    truth = truth_of(name, 1)
    generator = torch.Generator().manual_seed(3)
    uniforms = torch.rand(300, truth.function.d_x, generator=generator).double()
    values = truth.expected(CASES[name].decisions(truth.function, uniforms))
    losses = [truth.scale.loss(value) for value in values.tolist()]
    assert min(losses) > -0.5
    # a blind guess loses 100, by definition; these are other guesses
    error = np.std(losses) / len(losses) ** 0.5
    assert np.mean(losses) == pytest.approx(100, abs=4 * error + 4)


def test_the_best_category_is_found():
    truth = truth_of("category_2_1", 2)
    grid = torch.linspace(0, 1, 201).double()
    X = torch.cartesian_prod(torch.arange(3).double(), grid)
    values = truth.expected(X)
    assert truth.scale.best == pytest.approx(values.max().item(), abs=1e-3)
    assert truth.best[0] == X[values.argmax(), 0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["six_hump_camel", "category_2_1"])
def test_the_best_worst_case_is_not_beaten_either(name):
    truth = truth_of(name, 0)
    generator = torch.Generator().manual_seed(4)
    uniforms = torch.rand(200, truth.function.d_x, generator=generator).double()
    values = truth.worst(CASES[name].decisions(truth.function, uniforms))
    assert values.max() <= truth.worst_scale.best + 1e-3
    assert truth.worst_scale.best < truth.scale.best  # the adversary takes something


def test_a_loss_is_in_percent_of_a_blind_guess():
    scale = Scale(best=-1.0, guess=-5.0)
    assert [scale.loss(v) for v in (-1.0, -5.0, -2.0)] == [0.0, 100.0, 25.0]


def test_a_function_is_made_once_unless_its_seed_makes_another():
    assert truth_of("bowl_3_1", 0) is truth_of("bowl_3_1", 5)
    assert truth_of("rbf_2_2", 0) is not truth_of("rbf_2_2", 5)


def test_the_spread_of_outcomes():
    truth = truth_of("bowl_3_1", 0)
    generator = torch.Generator().manual_seed(5)
    X = torch.rand(4000, 3, generator=generator).double()
    C = truth.function.sample_contexts(4000, seed=1)
    outcomes = truth.function.evaluate(X, C)
    assert truth.deviation == pytest.approx(outcomes.std().item(), rel=0.05)
