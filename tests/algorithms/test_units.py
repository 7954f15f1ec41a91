"""Decisions do not depend on the units in which x, c and y are measured."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import pytest
import torch
from torch import Tensor

from botorch_drbo.algorithms import (
    ALGORITHMS,
    Algorithm,
    History,
    Recommendation,
    SearchSpace,
    make_algorithm,
)

SMALL = {"num_restarts": 2, "raw_samples": 16, "max_iterations": 30}


@dataclass(frozen=True)
class Units:
    """Sides of the boxes, the unit of y, and how far zero is from the lower bounds."""

    x: tuple[float, float] = (1.0, 1.0)
    c: tuple[float, float] = (1.0, 1.0)
    y: float = 1.0
    shift: float = 0.0  # in sides, and in units of y

    def bounds(self, sides: tuple[float, ...]) -> Tensor:
        lower = torch.tensor(sides, dtype=torch.double)
        return torch.stack([self.shift * lower, (self.shift + 1.0) * lower])


PLAIN = Units()
OTHERS = {
    "x": Units(x=(1e-6, 1e6), shift=-3.0),
    "c": Units(c=(1e6, 1e-6), shift=2.0),
    "small y": Units(y=1e-8, shift=5.0),
    "large y": Units(y=1e8, shift=-5.0),
    "all": Units(x=(1e4, 1e-5), c=(1e-6, 1e3), y=1e-6, shift=1.0),
}


def problem(units: Units, d_c: int, t: int = 12) -> tuple[History, SearchSpace]:
    """A hill whose best decision depends on the context."""
    generator = torch.Generator().manual_seed(d_c)
    X = torch.rand(t, 2, generator=generator, dtype=torch.double)
    C = torch.rand(t, d_c, generator=generator, dtype=torch.double)
    target = 0.2 + 0.6 * C.mean(-1, keepdim=True)
    Y = (-4.0 * (X - target).square().sum(-1, keepdim=True)).exp() + 0.3 * C[:, :1]
    space = SearchSpace(units.bounds(units.x), units.bounds(units.c[:d_c]))
    X, C = (
        low + unit * (high - low)
        for unit, (low, high) in ((X, space.bounds), (C, space.context_bounds))
    )
    return History(X=X, C=C, Y=units.y * (Y + units.shift), contexts=C), space


def recipe(name: str, units: Units, **options: object) -> Algorithm:
    """The recipe with what it is told in units of y in these units."""
    of_y = {
        "regret_balancing": {
            "reward_range": tuple(units.y * (y + units.shift) for y in (-1.0, 3.0))
        },
        "ec_gp_ucb": {"misspecification": 0.1 * units.y},
        "ec_wdrbo": {"misspecification": 0.1 * units.y},
    }
    return make_algorithm(name, **{**SMALL, **of_y.get(name, {}), **options})


def answer(name: str, units: Units, d_c: int) -> tuple[Tensor, Recommendation]:
    """Two decisions in sides, and a recommendation in sides and in units of y."""
    history, space = problem(units, d_c)
    algorithm = recipe(name, units)
    lower, side = space.bounds[0], space.bounds[1] - space.bounds[0]
    x = algorithm.propose(history, space, seed=1)
    best = algorithm.recommend(history, space, seed=1)
    return (torch.cat([x, best.x.unsqueeze(0)]) - lower) / side, best


known = cache(answer)


@pytest.mark.parametrize("units", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_every_recipe_in_other_units(name: str, units: Units) -> None:
    check(name, units, d_c=1)


def check(name: str, units: Units, d_c: int) -> None:
    decisions, best = known(name, PLAIN, d_c)
    same, found = answer(name, units, d_c)
    assert (same - decisions).abs().max() <= 1e-4
    for kind in ("objective", "expected_value", "worst_case_value"):
        value = getattr(found, kind) / units.y - units.shift
        assert value == pytest.approx(getattr(best, kind), abs=1e-4)
