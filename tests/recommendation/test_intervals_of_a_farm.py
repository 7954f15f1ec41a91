"""Intervals of a farm with mixed variables, whose truth is known."""

from __future__ import annotations

import statistics
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from botorch_drbo import Category, Integer, NamedOptimizer, Space

SPACE = Space(
    {
        "nitrogen": (0.0, 200.0),
        "irrigations": Integer(0, 6),
        "variety": Category(["early", "late", "hardy"]),
        "fungicide": Category(["no", "yes"]),
    },
    {"rain": (0.0, 600.0), "soil": Category(["sand", "loam", "clay"])},
    outcome="profit",
)
BUDGET = {"num_restarts": 2, "raw_samples": 64, "max_iterations": 20}
NOISE = 25.0
NUM_ROWS, NUM_DATA_SETS = 40, 10


def profit(x: Tensor, c: Tensor) -> Tensor:
    """The true mean profit of decisions ``n x 4`` in contexts ``n x 2``."""
    nitrogen, irrigations, variety, fungicide = x.unbind(-1)
    rain, soil = c.unbind(-1)
    kind, ground = variety.long(), soil.long()
    held = torch.tensor([0.6, 0.9, 1.1]).double()[ground]  # water that stays
    water = rain * held + 60.0 * irrigations
    wanted = torch.tensor([300.0, 450.0, 260.0]).double()[kind]
    most = torch.tensor([520.0, 640.0, 430.0]).double()[kind]
    short = ((wanted - water) / wanted).clamp_min(0.0)
    wet = ((water - wanted) / 300.0).clamp_min(0.0)
    fed = 1.0 - (-(nitrogen + 20.0) / 70.0).exp()
    rot = 90.0 * wet * (1.0 - 0.8 * fungicide)
    costs = 0.7 * nitrogen + 18.0 * irrigations + 25.0 * fungicide
    return most * fed * (1.0 - 0.8 * short) - rot - costs


def rows(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Random decisions, contexts as they come, noisy profits."""
    generator = torch.Generator().manual_seed(seed)
    u = torch.rand(NUM_ROWS, 5, generator=generator, dtype=torch.double)
    counts = torch.tensor([7, 3, 2]).double()
    x = torch.cat([200.0 * u[:, :1], (counts * u[:, 1:4]).floor()], dim=-1)
    normal = torch.randn(NUM_ROWS, 2, generator=generator, dtype=torch.double)
    rain = (300.0 + 90.0 * normal[:, :1]).clamp(0.0, 600.0)
    soil = (u[:, 4:] > 0.5).double() + (u[:, 4:] > 0.85).double()
    c = torch.cat([rain, soil], dim=-1)
    return x, c, (profit(x, c) + NOISE * normal[:, 1]).unsqueeze(-1)


class Interval(NamedTuple):
    """What was promised and what is true, in 10 to 90% spreads of the outcomes."""

    low: float
    high: float
    truth: float


def intervals(surrogate: str, seed: int) -> tuple[Interval, Interval]:
    """Of the expectation and of the worst case, of one data set."""
    opt = NamedOptimizer("wdrbo_exact", SPACE, seed=seed, surrogate=surrogate, **BUDGET)
    x, c, y = rows(seed)
    opt.tell(x, c, y, closes_pending=False)
    best = opt.tensors.recommend()
    points = best.context_set.points
    values = profit(best.x.expand(len(points), -1), points)
    spread = (y.quantile(0.9) - y.quantile(0.1)).item()

    def scaled(weights: Tensor, interval: tuple[float, float] | None) -> Interval:
        assert interval is not None
        truth = (weights @ values).item()
        return Interval(*(value / spread for value in (*interval, truth)))

    return (
        scaled(best.context_set.weights, best.expected_interval),
        scaled(best.worst_case_weights, best.worst_case_interval),
    )


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", ["botorch", "ensemble"])
def test_eight_of_ten_hold_the_truth(surrogate: str) -> None:
    found = [intervals(surrogate, seed) for seed in range(NUM_DATA_SETS)]
    for promised in zip(*found, strict=True):  # the expectation, the worst case
        assert sum(low <= truth <= high for low, high, truth in promised) >= 8
        assert statistics.median(high - low for low, high, _ in promised) < 1.0
