"""Radii from scenarios: distances in closed form, and scenarios that lie inside."""

from __future__ import annotations

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError

from botorch_drbo.ambiguity import (
    KullbackLeibler,
    MaximumMeanDiscrepancy,
    NoAmbiguity,
    TotalVariation,
    Wasserstein,
)
from botorch_drbo.calibrate import from_scenarios, scaled, shifted
from botorch_drbo.contexts import ContextSet
from tests.models import UNIT, uniform

DEMAND = ContextSet(uniform(7, 2, seed=2), uniform(7, seed=3))


def metric_ball(points):
    cost = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
    return Wasserstein(0.0, cost)


def kernel_ball(points):
    return MaximumMeanDiscrepancy(0.0, (-(torch.cdist(points, points) ** 2)).exp())


def test_a_shift_is_as_far_as_its_length():
    # Kantorovich: no plan moves the mean by less than the distance of the means.
    by = torch.tensor([0.3, -0.4], dtype=torch.double)
    radius = from_scenarios(DEMAND, shifted(DEMAND, by), metric_ball)
    assert radius == pytest.approx(0.5, rel=1e-7)


def test_the_farthest_scenario_decides():
    scenarios = [shifted(DEMAND, step) for step in (0.1, -0.2, 0.05)]
    radius = from_scenarios(DEMAND, scenarios, metric_ball)
    assert radius == pytest.approx(0.2 * 2**0.5, rel=1e-7)


def test_the_kernel_mean_is_compared_over_all_contexts():
    other = shifted(DEMAND, 0.1)
    points = torch.cat([DEMAND.points, other.points])
    difference = torch.cat([DEMAND.weights, -other.weights])
    kernel = (-(torch.cdist(points, points) ** 2)).exp()
    expected = (difference @ kernel @ difference).sqrt().item()
    assert from_scenarios(DEMAND, other, kernel_ball) == pytest.approx(expected, 1e-6)


def test_weights_on_one_list_need_no_function():
    now = ContextSet(UNIT, torch.tensor([0.5, 0.5]))
    then = ContextSet(UNIT, torch.tensor([0.8, 0.2]))
    assert from_scenarios(now, then, TotalVariation(0.0)) == pytest.approx(0.6)
    ball = Wasserstein(0.0, 3 * torch.cdist(UNIT, UNIT))
    assert from_scenarios(now, then, ball) == pytest.approx(0.9)
    tilted = 0.8 * torch.tensor(1.6).log() + 0.2 * torch.tensor(0.4).log()
    radius = from_scenarios(now, then, KullbackLeibler(0.0))
    assert radius == pytest.approx(tilted.item(), rel=1e-5)


def test_no_worse_value_than_the_worst_case_under_any_scenario():
    now = ContextSet(uniform(5, 1), uniform(5, seed=1))
    feared = [ContextSet(now.points, uniform(5, seed=s)) for s in (2, 3)]
    ball = TotalVariation(0.0)
    f = torch.randn(50, 5, dtype=torch.double)
    radius = from_scenarios(now, feared, ball)
    worst = ball.with_radius(radius).value(f, now.weights)
    under = torch.stack([f @ scenario.weights for scenario in feared])
    assert (worst <= under + 1e-12).all()
    closer = ball.with_radius(0.99 * radius).value
    assert radius == pytest.approx(
        max(ball.distance(now.weights, s.weights).item() for s in feared)
    )
    assert (closer(f, now.weights) > worst).any()


def test_disjoint_lists_are_opposite_ends_for_a_set_without_positions():
    radius = from_scenarios(DEMAND, shifted(DEMAND, 1e-3), TotalVariation(0.0))
    assert radius == pytest.approx(2.0)


def test_shifted_moves_the_mean_and_clips():
    assert torch.allclose(shifted(DEMAND, -0.2 * DEMAND.mean).mean, 0.8 * DEMAND.mean)
    box = torch.tensor([[0.0, 0.0], [1.0, 0.5]], dtype=torch.double)
    moved = shifted(DEMAND, 1.0, box)
    assert torch.equal(moved.points, box[1].expand(7, 2))
    assert torch.equal(moved.weights, DEMAND.weights)


def test_scaled_keeps_the_mean_and_scales_the_spread():
    wider = scaled(DEMAND, 1.5)
    assert torch.allclose(wider.mean, DEMAND.mean)
    assert torch.allclose(wider.std, 1.5 * DEMAND.std)
    assert torch.allclose(scaled(DEMAND, 0.0).std, torch.zeros(2).double(), atol=1e-7)


@pytest.mark.parametrize(
    ("scenarios", "ambiguity_set", "error", "says"),
    [
        ([], metric_ball, InputDataError, "`scenarios` is empty"),
        ([DEMAND.points], metric_ball, InputDataError, "must be ContextSets"),
        (DEMAND, NoAmbiguity(), InputDataError, "has no radius"),
        (shifted(DEMAND, 0.1), KullbackLeibler(0.0), InputDataError, "No Kullback"),
        (
            shifted(DEMAND, 0.1),
            metric_ball(DEMAND.points),
            InputDataError,
            "knows the contexts of one list",
        ),
        (
            ContextSet(UNIT),
            metric_ball,
            BotorchTensorDimensionError,
            "as many context columns",
        ),
    ],
)
def test_refuses_in_the_words_of_the_user(scenarios, ambiguity_set, error, says):
    with pytest.raises(error, match=says):
        from_scenarios(DEMAND, scenarios, ambiguity_set)


def test_refuses_bad_moves():
    with pytest.raises(BotorchTensorDimensionError, match="`by`"):
        shifted(DEMAND, torch.zeros(3))
    with pytest.raises(InputDataError, match="`by`"):
        shifted(DEMAND, float("nan"))
    with pytest.raises(InputDataError, match="`factor`"):
        scaled(DEMAND, -1.0)
    with pytest.raises(BotorchTensorDimensionError, match="`bounds`"):
        scaled(DEMAND, 1.0, UNIT)
