"""The profile of a decision under today's forecast, and in a context that is known."""

from __future__ import annotations

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError

from botorch_drbo import ContextSet
from botorch_drbo.ambiguity import TotalVariation
from tests.optimizer.test_robustness_profile import observed_run

RADII = torch.tensor([0.0, 0.1, 0.3], dtype=torch.double)
FORECAST = ContextSet(torch.tensor([[2.0], [3.0]], dtype=torch.double))
X = torch.tensor([0.4, 0.1], dtype=torch.double)


@pytest.mark.parametrize("algorithm", ["wdrbo", "dro"])
def test_a_forecast_moves_the_whole_curve_as_it_moves_the_recommendation(
    toy, algorithm
):
    opt = observed_run(toy, algorithm, radius=0.2)
    best = opt.recommend(context_set=FORECAST, radius=0.1)
    profile = opt.robustness_profile(best.x, radii=RADII, context_set=FORECAST)
    assert profile.expected_value == pytest.approx(best.expected_value, rel=1e-6)
    span = abs(best.worst_case_value)
    assert profile.values[1].item() == pytest.approx(
        best.worst_case_value, abs=1e-4 * span
    )


def test_a_radius_of_the_round_says_how_far_to_look(toy):
    opt = observed_run(toy, "dro", radius=0.2)
    profile = opt.robustness_profile(X, context_set=FORECAST, radius=0.05)
    assert profile.radii[-1].item() == pytest.approx(0.2)


def test_a_forecast_for_a_recipe_that_is_told_a_set(toy):
    opt = observed_run(toy, "erbo")
    profile = opt.robustness_profile(
        X, context_set=FORECAST, ambiguity_set=TotalVariation(0.2), radii=RADII
    )
    Z = torch.cat([X.expand(2, 2), FORECAST.points], -1)
    mean = opt.predict(Z[:, :2], Z[:, 2:])[0].mean().item()
    assert profile.expected_value == pytest.approx(mean, rel=1e-6)


def test_where_the_context_is_known_nothing_is_left_to_lose(toy):
    opt = observed_run(toy, "dro", radius=0.2)
    known = torch.tensor([4.0], dtype=torch.double)
    profile = opt.robustness_profile(X, radii=RADII, context=known)
    value = opt.predict(X, known)[0].item()
    assert profile.values.tolist() == pytest.approx(3 * [value], rel=1e-6)


def test_refuses_what_the_recipe_cannot_use(toy):
    opt = observed_run(toy, "erbo")
    with pytest.raises(UnsupportedError, match="no radius"):
        opt.robustness_profile(X, radius=0.1, ambiguity_set=TotalVariation(0.2))
    with pytest.raises(InputDataError, match="context_set"):
        opt.robustness_profile(X, context_set=ContextSet(FORECAST.points + 20))
