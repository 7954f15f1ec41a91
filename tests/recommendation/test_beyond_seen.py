"""How far a worst case leaves the contexts seen, in their units."""

from __future__ import annotations

import pytest
import torch

from botorch_drbo import Category, ContextSet, Log, NamedOptimizer, Space
from botorch_drbo.recommendation.model_check import beyond_seen

SPACE = Space(
    {"x": (0.0, 1.0)},
    {
        "temp": (-10.0, 40.0),
        "dose": Log(0.1, 100.0),
        "sky": Category(["sun", "rain", "fog"]),
    },
).search_space
SEEN = torch.tensor([[5.0, 1.0, 0.0], [20.0, 10.0, 2.0]]).double()
SEEN[:, 1] = SEEN[:, 1].log()


def words(rows: list[list[float]], weights: list[float]) -> str:
    points = torch.tensor(rows).double()
    points[:, 1] = points[:, 1].log()
    return beyond_seen(ContextSet(points, torch.tensor(weights).double()), SEEN, SPACE)


def test_each_column_is_said_with_its_end_its_reach_and_its_share() -> None:
    inside = [10.0, 2.0, 0.0]
    found = words(
        [inside, [26.0, 2.0, 0.0], [23.0, 40.0, 0.0], [2.0, 2.0, 0.0], [9.0, 2.0, 1.0]],
        [0.5, 0.2, 0.1, 0.12, 0.08],
    )
    assert found == (
        "50% of its weight: temp up to 3 below the lowest, 5 (12%); "
        "temp up to 6 above the highest, 20 (30%); "
        "dose up to 30 above the highest, 10 (10%); a sky never seen (8%)"
    )


@pytest.mark.parametrize("weight", [0.0, 0.04])
def test_what_stays_inside_or_nearly_says_nothing(weight: float) -> None:
    assert words([[5.0, 1.0, 2.0], [30.0, 1.0, 0.0]], [1.0 - weight, weight]) == ""


def test_a_recommendation_says_it_in_units_and_its_check_need_not() -> None:
    opt = NamedOptimizer(
        "wdrbo_exact",
        Space({"x": (0.0, 1.0)}, {"temp": (0.0, 40.0)}),
        radius={"temp": 6},
        surrogate="rbf",
        num_restarts=1,
        raw_samples=16,
    )
    x = torch.linspace(0.0, 1.0, 12).tolist()
    temp = [18.0 + (7 * i) % 12 / 3 for i in range(12)]
    outcomes = [a + 0.3 * t for a, t in zip(x, temp, strict=True)]
    opt.tell({"x": x}, {"temp": temp}, outcomes)
    best = opt.recommend()
    highest, lowest = max(temp), min(temp)
    worst, weights = (
        torch.tensor(best.contexts[name].tolist())
        for name in ("temp", "worst_case_weight")
    )
    out = (worst < lowest) | (worst > highest)
    share = weights[out].sum().item()
    assert share > 0.05
    line = next(t for t in str(best).splitlines() if t.startswith("beyond those seen"))
    reach = f"{lowest - worst[out & (weights > 0)].min().item():.4g}"
    assert line[20:] == (
        f"{100 * share:.0f}% of its weight: temp up to {reach} below the lowest, "
        f"{lowest:.4g}"
    )
    assert "all inside those seen" in str(opt.check())
