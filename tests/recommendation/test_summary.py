"""How a recommendation prints."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from botorch_drbo import ContextSet
from botorch_drbo.ambiguity import FullSimplex, KullbackLeibler, SolverStatus
from botorch_drbo.problem import ConstraintData, History, Round, SearchSpace
from botorch_drbo.recipes import make_recipe
from botorch_drbo.recommendation import Recommendation
from tests.models import UNIT, uniform


def recommendation(num: int = 4) -> Recommendation:
    points = torch.tensor([[0.1], [0.4], [0.4], [0.9]], dtype=torch.double)[:num]
    worst = torch.tensor([0.0, 0.3, 0.4, 0.3], dtype=torch.double)
    return Recommendation(
        x=torch.tensor([12.345678, 3.0], dtype=torch.double),
        objective=1.0,
        expected_value=2.71828,
        worst_case_value=-1.5,
        worst_case_weights=worst,
        context_set=ContextSet(points),
        worst_case_box=None,
        worst_case_status=SolverStatus.EXACT,
    )


def test_a_report_is_a_few_lines() -> None:
    lines = str(recommendation()).splitlines()
    assert lines == [
        "decision            x1 = 12.35, x2 = 3",
        "expected value      2.718 (no interval: the recipe states none)",
        "worst-case value    -1.5",
        "contexts that hurt  c1 = 0.4: weight 0.700, 0.500 in the reference",
        "                    c1 = 0.9: weight 0.300, 0.250 in the reference",
    ]


def lines_of(**changes: object) -> dict[str, str]:
    """The report by the first words of its lines."""
    text = str(replace(recommendation(), **changes))
    return {line[:20].strip(): line[20:] for line in text.splitlines()}


def test_a_solver_that_stopped_early_is_no_secret() -> None:
    lines = lines_of(worst_case_status=SolverStatus.LOWER_BOUND)
    expected = "-1.5 (a bound: the solver did not converge)"
    assert lines["worst-case value"] == expected


def test_a_report_says_that_a_model_of_few_outcomes_knows_nearly_nothing() -> None:
    one = lines_of(num_outcomes=1)["model"]
    assert one == "knows nearly nothing: it has 1 outcome"
    assert lines_of(num_outcomes=9)["model"].endswith("it has 9 outcomes")
    several = lines_of(num_outcomes=10)["model"]
    assert several == "10 outcomes; unchecked: `check` says why"
    assert "model" not in lines_of()


def test_a_report_says_how_often_constraints_held() -> None:
    X, C = torch.zeros(5, 1).double(), torch.zeros(5, 1).double()
    G = torch.tensor([[-1.0], [0.0], [2.0], [-0.1], [-3.0]]).double()
    held = ConstraintData(X, C, G).held()
    lines = lines_of(feasibility=0.951, feasible=True, held=held)
    assert lines["feasible"] == "with probability 0.951; held in 2 of 5 trials told"
    two = torch.cat([G, G.flip(0) + 2.5], dim=-1)  # -0.5, 2.4, 4.5, 2.5, 1.5
    lines = lines_of(
        feasibility=0.3, feasible=False, held=ConstraintData(X, C, two).held()
    )
    assert lines["feasible"] == (
        "with probability 0.300, TOO LITTLE: nothing better was found; all held in 2 "
        "of 5 trials told, one by one in 2, 4"
    )


def test_no_probability_reads_as_certainty() -> None:
    shown = lines_of(feasibility=0.99951, feasible=True)["feasible"]
    assert shown == "with probability above 0.999"
    shown = lines_of(feasibility=0.99949, feasible=True)["feasible"]
    assert shown == "with probability 0.999"


SMALL = {"num_restarts": 1, "raw_samples": 8, "max_iterations": 5}


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        (
            "wdrbo_exact",
            {"radius": 0.125},
            "all distributions within radius 0.125 (Wasserstein), new contexts "
            "included",
        ),
        (
            "drbo_kde",
            {"radius": 0.25},
            "all distributions within radius 0.25 (TotalVariation), new contexts "
            "included",
        ),
        (
            "dro",
            {"ambiguity_set": KullbackLeibler(0.5)},
            "all distributions within radius 0.5 (KullbackLeibler) on the listed "
            "contexts",
        ),
        (
            "dro",
            {"ambiguity_set": FullSimplex()},
            "all distributions (FullSimplex) on the listed contexts",
        ),
        (
            "stable_opt",
            {},
            "all distributions (FullSimplex), new contexts of a part of the box "
            "included",
        ),
        ("erbo", {}, "the reference alone"),
        ("gp_ucb", {}, "the reference alone"),
    ],
)
def test_a_report_says_what_was_searched(
    name: str, options: dict[str, Any], words: str
) -> None:
    X, C = uniform(4, 1), 0.3 + 0.2 * uniform(4, 1, seed=1)
    made = make_recipe(name, **SMALL | options)
    data = History(X=X, C=C, Y=X * C, contexts=C)
    best = made.recommend(data, SearchSpace(UNIT, UNIT))
    assert best.searched == words
    lines = str(best).splitlines()
    assert f"worst case over     {best.searched}" in lines
    assert "model               knows nearly nothing: it has 4 outcomes" in lines
    assert not any("exact" in line for line in lines)


def test_the_expected_value_is_that_of_the_weighted_reference() -> None:
    X, C = uniform(8, 1), uniform(8, 1, seed=1)
    data = History(X=X, C=C, Y=(X - C).square(), contexts=C)
    forecast = ContextSet(
        torch.tensor([[0.1], [0.9]]).double(), torch.tensor([0.9, 0.1]).double()
    )
    options = {"radius": 0.2, "surrogate": "botorch", **SMALL}
    made = make_recipe("dro", reference=forecast, **options)
    space = SearchSpace(UNIT, UNIT)
    best = made.recommend(data, space)
    rows = torch.cat([best.x.expand(2, 1), forecast.points], dim=-1)
    low, high = made.fitted_model(data, space).posterior(rows).mean.flatten().tolist()
    assert best.expected_value == pytest.approx(0.9 * low + 0.1 * high)
    assert abs(low - high) > 0.05


def test_it_says_which_contexts_a_forecast_leaves() -> None:
    X, C = uniform(4, 1), uniform(4, 2, seed=1)
    data = History(X=X, C=C, Y=X * C[:, :1], contexts=C)
    best = make_recipe("dro", radius=0.2, **SMALL).recommend(
        data,
        SearchSpace(UNIT, UNIT.expand(2, 2)),
        this_round=Round(known_context=torch.tensor([0.5, torch.nan]).double()),
    )
    assert best.searched.endswith(
        "(TotalVariation), new contexts with the known values included"
    )


def test_the_repr_is_short() -> None:
    assert repr(recommendation()) == (
        "Recommendation(x=[12.345678, 3.0], expected_value=2.71828, "
        "worst_case_value=-1.5, worst_case_status=EXACT)"
    )
