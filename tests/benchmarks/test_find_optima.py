"""Every stored optimum against a search of all faces and edges of the box.

The search and its expectations share nothing with the search that the library has:
other points, another climb, a quadrature of the law in place of Sobol contexts. The
full search is `python -m benchmarks.find_optima`; the efforts here are smaller.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch import Tensor

from benchmarks.find_optima import (
    SEARCHES,
    Effort,
    Search,
    expectation,
    expectation_rule,
    faces,
    points_of,
    search,
)
from benchmarks.problems import PROBLEMS, make
from botorch_drbo.test_functions import RobustTestFunction
from botorch_drbo.test_functions.base import find_optimum, normal_law
from botorch_drbo.test_functions.closed_form import unit_bounds
from tests.data import FILES, needs

# Relative; four contexts are summed over Sobol points, the portfolios by fewer nodes.
TOLERANCE = 1e-4
QUICK = {
    "ackley_2_4": Effort(points=64, climbs=2, fine=32),
    "covid_testing": Effort(points=64, climbs=2, coarse=8, fine=12),
    "hartmann_5_1": Effort(points=64, climbs=3, fine=16),
    "complicated_hartmann": Effort(points=64, climbs=3, fine=16),
    "portfolio_normal": Effort(points=128, climbs=3, coarse=4, fine=12),
    "portfolio_uniform": Effort(points=128, climbs=3, coarse=4, fine=16),
}


def parameter(each: Search) -> Any:
    marks = [needs(FILES[each.name])] if each.name in FILES else []
    if each.name.startswith("portfolio"):
        marks.append(pytest.mark.slow)
    options = ", ".join(map(str, each.options.values()))
    return pytest.param(each, marks=marks, id=f"{each.name}({options})")


@pytest.mark.parametrize("each", [parameter(each) for each in SEARCHES])
def test_no_face_has_a_better_decision_than_the_stored_one(each: Search) -> None:
    function = make(each.name, **each.options)
    assert function._known_optimum is not None
    effort = QUICK.get(each.name, replace(each.effort, points=128, climbs=4))
    slack = TOLERANCE * max(1.0, abs(function.optimal_value))
    own = expectation(function, effort.fine)(function.optimal_decision.unsqueeze(0))
    assert own.item() == pytest.approx(function.optimal_value, abs=slack)
    found, decision = search(function, effort, seed=17)
    assert found <= function.optimal_value + slack, decision


def test_every_stored_optimum_is_searched_for() -> None:
    seeded = {"misspecified_waves", "misspecified_bumps"}  # a function for each seed
    assert {each.name for each in SEARCHES} == PROBLEMS.keys() - seeded


class TwoPeaks(RobustTestFunction):
    """A narrow peak of height 1 and a wide one of .9, both on one edge of the cube."""

    def __init__(self) -> None:
        super().__init__(
            "two_peaks",
            bounds=unit_bounds(3),
            context_bounds=unit_bounds(1),
            context_law=normal_law(0.5, 0.2, 1),
        )

    def _evaluate(self, x: Tensor, c: Tensor) -> Tensor:
        along, down, left = x.unbind(-1)
        narrow = (-((along - 0.46) / 0.03).square()).exp()
        wide = 0.9 * (-((along - 0.8) / 0.1).square()).exp()
        return narrow + wide - 5 * (down + 1 - left) + c.squeeze(-1) - 0.5


def test_both_searches_find_the_narrow_peak_of_an_edge() -> None:
    """The library's search looked at the inside alone: it took the wide peak."""
    function = TwoPeaks()
    best = (0.46, 0.0, 1.0)
    found, decision = search(function, Effort(points=64, climbs=3, fine=16))
    assert found == pytest.approx(1.0, abs=1e-4)
    np.testing.assert_allclose(decision, best, atol=1e-3)
    for seed in (0, 6):
        optimum = find_optimum(function, num_contexts=64, num_screening=16, seed=seed)
        np.testing.assert_allclose(optimum.decision, best, atol=1e-3)


def test_the_faces_of_a_cube_and_their_points() -> None:
    assert len(list(faces(3))) == 27 == len(set(faces(3)))
    points = points_of((None, 0.0, 1.0), 16, seed=3)
    assert points.shape == (17, 3)
    assert set(points[:, 1]) == {0.0} and set(points[:, 2]) == {1.0}
    assert len(set(points[:, 0])) == 17
    assert points_of((1.0, 1.0, 0.0), 16, seed=3).tolist() == [[1.0, 1.0, 0.0]]


@pytest.mark.parametrize("nodes", [None, 12])
def test_the_quadrature_against_scipy(nodes: int | None) -> None:
    """A normal law clipped to an interval: a density and an atom at each end."""
    function = make("branin_2_2")  # N(.5, .2^2) twice
    contexts, weights = expectation_rule(function, nodes or 40)
    law = stats.norm(0.5, 0.2)

    def smooth(c: float) -> float:
        return float(np.exp(1.5 * c))

    density = stats.norm.pdf
    inner, _ = integrate.quad(lambda c: smooth(c) * density(c, 0.5, 0.2), 0, 1)
    one = inner + law.cdf(0) * smooth(0) + law.sf(1) * smooth(1)
    value = (weights * (1.5 * contexts.sum(-1)).exp()).sum().item()
    assert value == pytest.approx(one**2, rel=1e-9)
    assert weights.sum().item() == pytest.approx(1.0)
    assert torch.all(weights > 0)
