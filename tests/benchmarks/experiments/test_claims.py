"""The claims: cases with tension, rules, runs and verdicts."""

import math

import pytest
import torch

from benchmarks.experiments.claims.cases import CASES, TENSION
from benchmarks.experiments.claims.formulas import PROBLEMS
from benchmarks.experiments.claims.truth import RARE, SETTLED, SHIFTED, truth_of
from botorch_drbo.test_functions.closed_form import ClosedForm

WITH_TENSION = [name for name, case in CASES.items() if case.tension]


def outcome(name, x, c):
    X, C = (torch.tensor([row], dtype=torch.double) for row in (x, c))
    return ClosedForm(PROBLEMS[name]).evaluate(X, C).item()


def test_outcomes_by_hand():
    # orders .6 and .9 for demands .5 and 1: one tenth too many, one too few
    found = outcome("two_products_2_2", [0.6, 0.9], [0.5, 1.0])
    assert found == pytest.approx(4 * (0.5 + 0.9) - 2 * 0.6 - 3 * 0.9)
    # half the advertising makes a demand of .5 one of .5 too
    found = outcome("advertised_2_1", [0.7, 0.5], [0.5])
    assert found == pytest.approx(5 * 0.5 + 0.5 * 0.2 - 2.5 * 0.7 - 0.3 * 0.5)
    # .64 are stored, .5 are released: .14 of an inflow of one find no room
    found = outcome("released_2_1", [0.64, 0.5], [1.0])
    assert found == pytest.approx(0.8 - 0.35 * 0.5 - 5 * (0.64 + 0.7 - 0.2 - 1))


def test_a_controller_that_is_not_too_fast_comes_to_rest_below_its_aim():
    # y = 1 - w / (g k) at rest; 20 samples are enough where g k is about one
    gain, load, k = 0.4 + 1.2 * 0.5, 0.6 * (0.5 + 0.5), 2.5 * 0.4
    errors, y = [], 0.0
    for _ in range(20):
        y = y + gain * k * (1 - y) - load
        errors.append(abs(1 - y))
    assert errors[-1] == pytest.approx(load / (gain * k))
    found = outcome("controller_2_2", [0.4, 0.0], [0.5, 0.5])
    assert found == pytest.approx(-sum(errors) / 20)


@pytest.mark.parametrize("name", PROBLEMS)
def test_stored_optima_are_those_of_a_search(name):
    function = ClosedForm(PROBLEMS[name])
    X = torch.rand(2048, function.d_x, generator=torch.Generator().manual_seed(0))
    values = function.expected_value(X.double())
    best = function.expected_value(function.optimal_decision.unsqueeze(0))
    assert best.item() == pytest.approx(function.optimal_value, abs=1e-4)
    assert values.max() <= best + 1e-9
    if name == "two_products_2_2":  # the newsvendor's quantiles
        z = torch.special.ndtri(torch.tensor(0.25)).item()
        x = function.optimal_decision.tolist()
        assert x == pytest.approx([0.5, 0.5 + 0.2 * z], abs=1e-3)


@pytest.mark.parametrize("name", WITH_TENSION)
def test_robustness_pays_where_there_is_tension(name):
    """By dense lists of decisions and contexts, and a sort of its own for the ball."""
    known = truth_of(name, 0).known
    assert known.gain >= TENSION
    assert known.price >= -0.5  # but for the search, nothing is better than the best


def test_half_of_the_cases_have_tension():
    assert len(CASES) >= 10
    assert len(WITH_TENSION) * 2 == len(CASES)


def test_the_ball_lowers_a_linear_outcome_by_one_deviation():
    truth = truth_of("two_products_2_2", 0)
    x = torch.tensor([[0.0, 1.0]], dtype=torch.double)  # f = 4 min(1, c_2) - 3
    ball = truth.ball
    deviation = ball.box[1, 1].item()
    mean = ball.atoms[:, 1].mean().item()
    # f falls by the same for each step down, so that the whole radius is used: the mean
    # falls by one deviation, but for the grid of demands to which mass may move
    found = ball.value(truth.function, x).item()
    assert found == pytest.approx(4 * (mean - deviation) - 3, abs=0.06)


def test_losses_are_zero_for_the_best_and_a_hundred_for_a_guess():
    truth = truth_of("newsvendor", 0)
    X = torch.linspace(0, 1, 4001, dtype=torch.double).unsqueeze(-1)
    for name in (SETTLED, SHIFTED, RARE):
        losses = truth.losses(X)[name]
        assert min(losses) == pytest.approx(0.0, abs=0.01)
        assert sum(losses) / len(losses) == pytest.approx(100.0, abs=1.0)
    quantile = truth.losses(truth.function.optimal_decision.unsqueeze(0))[SETTLED][0]
    assert math.isclose(quantile, 0.0, abs_tol=0.05)
