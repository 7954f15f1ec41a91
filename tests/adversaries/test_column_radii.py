"""A radius by column against linear programs, closed forms and columns scaled by hand.

The programs know the definition alone: mass may go from a context to another one at the
cost ``|| (c - c') / r ||_2``, all of it for one, and nowhere else where ``r`` is zero.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning
from torch import Tensor

from botorch_drbo import Category, Log, NamedOptimizer, RobustOptimizer
from botorch_drbo.adversaries.empirical import AroundContexts
from botorch_drbo.adversaries.wasserstein import WassersteinBall
from botorch_drbo.ambiguity import TotalVariation, Wasserstein
from botorch_drbo.policies.bounds import ConfidenceBound
from botorch_drbo.problem import SearchSpace
from botorch_drbo.problem.round import in_widths, in_words
from botorch_drbo.recipes import RECIPES, RobustRecipe
from botorch_drbo.recommendation.worst_case import worst_case
from botorch_drbo.schedules import SpreadRadius
from botorch_drbo.schedules.radii import RADII, TAKE_COLUMNS, as_radius, deviations
from botorch_drbo.surrogate import FixedHyperparameters
from botorch_drbo.testing.fixtures import state_against
from tests.models import UNIT

NAMES = ("temp", "weather")
KINDS: dict[str, dict[str, Any]] = {
    "numbers": {},
    "a category": {"context_categories": {1: 3}},
}
WEATHERS = ["sun", "rain", "snow"]
SHORT: dict[str, Any] = {"num_restarts": 1, "raw_samples": 16, "max_iterations": 10}
PRIOR = FixedHyperparameters(lengthscale=0.4, noise_variance=1e-3)
SMALL: dict[str, Any] = {**SHORT, "hyperparameters": PRIOR}


def by_program(
    points: Tensor, weights: Tensor, values: Tensor, radii: list[float], category: bool
) -> float:
    """The worst expectation, by its definition."""
    gaps = np.abs(points.numpy()[:, None] - points.numpy()[None])
    if category:
        gaps[..., 1] = gaps[..., 1] > 0
    moving = [j for j, radius in enumerate(radii) if radius > 0]
    cost = np.sqrt(sum((gaps[..., j] / radii[j]) ** 2 for j in moving))
    still = [j for j in range(2) if j not in moving]
    plan = cp.Variable(cost.shape, nonneg=True)
    constraints = [
        cp.sum(plan, axis=1) == weights.numpy(),
        cp.sum(cp.multiply(cost, plan)) <= 1.0,
        cp.multiply(plan, (gaps[..., still] > 0).any(-1).astype(float)) == 0.0,
    ]
    worst = cp.Problem(cp.Minimize(cp.sum(plan, axis=0) @ values.numpy()), constraints)
    worst.solve(solver=cp.CLARABEL)
    assert isinstance(worst.value, float)
    return worst.value


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("radius", "radii"),
    [
        ({"temp": 0.3, "weather": 0.2}, [0.3, 0.2]),
        ({"temp": 0.3}, [0.3, 0.0]),
        ({"weather": 0.1, "temp": 0.0}, [0.0, 0.1]),
        ({"temp": 0.05, "weather": 0.9}, [0.05, 0.9]),
    ],
)
def test_the_search_has_the_ball_of_the_columns_divided_by_their_radii(
    kind: str, radius: dict[str, float], radii: list[float]
) -> None:
    ball = WassersteinBall(radius=radius, num_candidates=16)
    state = state_against(ball, context_names=NAMES, **KINDS[kind])
    found = ball.search_problem(state)
    points = found.contexts.points
    values = torch.sin(7.0 * points[:, 0]) + (points[:, 1] - 0.4).square()
    robust = found.ambiguity_set.worst_case(values, found.contexts.weights)
    category = kind == "a category"
    expected = by_program(points, found.contexts.weights, values, radii, category)
    assert robust.value.item() == pytest.approx(expected, abs=2e-5)
    mean = (found.contexts.weights * values).sum().item()
    assert robust.value.item() < mean - 1e-2  # the adversary has somewhere to go


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_that_is_not_named_keeps_its_distribution(kind: str) -> None:
    ball = WassersteinBall(radius={"temp": 0.3})
    state = state_against(ball, context_names=NAMES, **KINDS[kind])
    made = replace(ball, num_candidates=64)
    found = made.search_problem(state)

    def score(contexts: Tensor) -> Tensor:  # weather would be worth far more
        return contexts[:, 0] + 100.0 * contexts[:, 1]

    listed = found.ambiguity_set.worst_case(
        score(found.contexts.points), found.contexts.weights
    )
    boxed, robust = worst_case(ball.worst_case_problem(state), score, seed=0)
    for points, weights, worst in (
        (found.contexts.points, found.contexts.weights, listed.weights),
        (boxed.points, boxed.weights, robust.weights),
    ):
        for place in points[weights > 0, 1].unique():
            here = (points[:, 1] - place).abs() < 1e-9
            before, after = weights[here].sum(), worst[here].sum()
            assert after.item() == pytest.approx(before.item(), abs=1e-5)


@pytest.mark.parametrize(
    ("radius", "loss"),
    [
        ({"temp": 0.02}, 2.0 * 0.02),  # all of the mass by .02
        ({"weather": 0.1}, 5.0 * 0.1),  # a tenth of it to the next category
        # Mass changes its weather, and moves a little on the way: by Cauchy-Schwarz.
        ({"temp": 0.02, "weather": 0.1}, math.hypot(2.0 * 0.02, 5.0 * 0.1)),
    ],
)
def test_a_recommendation_is_judged_by_what_was_said(
    radius: dict[str, float], loss: float
) -> None:
    ball = WassersteinBall(radius=radius)
    kinds = {"context_names": NAMES, "context_categories": {1: 3}}
    state = state_against(ball, **kinds)
    # In the middle of the box, all of it sun: there is room on each side.
    contexts = torch.tensor([[10.9, 0.0], [11.0, 0.0], [11.1, 0.0]]).double()
    state = replace(state, history=replace(state.history, contexts=contexts))

    def score(c: Tensor) -> Tensor:
        return 2.0 * c[:, 0] - 5.0 * (c[:, 1] == 1.0)

    _, robust = worst_case(ball.worst_case_problem(state), score, seed=0)
    plain = score(contexts).mean().item()
    assert robust.value.item() == pytest.approx(plain - loss, abs=1e-4)


def test_a_shift_of_all_by_the_radius_in_one_column_uses_up_the_ball() -> None:
    ball = WassersteinBall(radius={"temp": 0.25, "weather": 0.5})
    state = state_against(ball, context_names=NAMES)
    seen = state.history.contexts
    n = len(seen)
    for column, by in ((0, 0.25), (1, 0.5)):
        shifted = seen.clone()
        shifted[:, column] += by
        made = ball.worst_case_problem(state).ball(torch.cat([seen, shifted]))
        half = torch.full((n,), 1.0 / n).double()
        before = torch.cat([half, torch.zeros(n).double()])
        assert made.distance(before, before.flip(0)).item() == pytest.approx(1.0)
        assert made.radius.item() == 1.0


def test_contexts_of_a_search_lie_where_the_mass_may_go() -> None:
    ball = WassersteinBall(radius={"temp": 0.3}, num_candidates=32)
    state = state_against(ball, context_names=NAMES)
    seen = state.history.contexts
    points = ball.search_problem(state).contexts.points
    others = points[len(seen) :]
    assert {row.item() for row in others[:, 1]} == {row.item() for row in seen[:, 1]}
    for place in seen[:, 1]:  # each value of the other column has several
        assert len(others[others[:, 1] == place, 0].unique()) >= 8
    without = replace(ball, num_candidates=0).search_problem(state).contexts.points
    assert len(without) >= 9 * len(seen)


def frame(factor: float = 1.0, offset: float = 0.0) -> pd.DataFrame:
    generator = torch.Generator().manual_seed(0)
    stock = 40 * torch.rand(10, generator=generator).double()
    temp = 15 + 5 * torch.randn(10, generator=generator).double()
    rainy = torch.arange(10) % 3 == 0
    profit = -(stock - temp).square() / 20 + 3 * rainy
    return pd.DataFrame(
        {
            "stock": stock.tolist(),
            "temp": (factor * temp + offset).tolist(),
            "weather": ["rain" if wet else "sun" for wet in rainy.tolist()],
            "profit": profit.tolist(),
        }
    )


def optimizer(
    name: str = "wdrbo_exact", factor: float = 1.0, offset: float = 0.0, **options: Any
) -> NamedOptimizer:
    low, high = factor * -10.0 + offset, factor * 40.0 + offset
    return NamedOptimizer.from_dataframe(
        frame(factor, offset),
        decisions={"stock": (0.0, 40.0)},
        contexts={"temp": (low, high), "weather": Category(WEATHERS)},
        outcome="profit",
        algorithm=name,
        **SMALL,
        **options,
    )


@pytest.mark.parametrize("weather", [{}, {"weather": 0.1}])
def test_the_unit_of_a_column_does_not_matter(weather: dict[str, float]) -> None:
    celsius = optimizer(radius={"temp": 6, **weather}).recommend()
    fahrenheit = optimizer(
        factor=1.8, offset=32.0, radius={"temp": 1.8 * 6, **weather}
    ).recommend()
    for name in ("expected_value", "worst_case_value"):
        here, there = getattr(celsius, name), getattr(fahrenheit, name)
        assert here == pytest.approx(there, abs=2e-3)
    here, there = celsius.x["stock"].tolist(), fahrenheit.x["stock"].tolist()
    assert here == pytest.approx(there, abs=2e-2)


def test_a_radius_by_column_is_said_in_its_units() -> None:
    opt = optimizer(radius={"temp": 6, "weather": 0.1})
    best = opt.recommend()
    assert best.searched == (
        "all distributions within 6 of temp or another weather in 10% of cases "
        "(Wasserstein), new contexts included"
    )
    assert "times that radius" in str(best)
    assert " 1 " not in best.searched  # the radius of the ball is no one's concern
    other = opt.recommend(radius={"temp": 3})
    assert "within 3 of temp (Wasserstein)" in other.searched
    plain = opt.recommend(radius=0.1)
    assert (
        "within radius 0.1 (Wasserstein: 5 of temp or another weather in 10% of "
        "cases)" in plain.searched
    )


def test_a_radius_of_one_column_does_less_than_of_two() -> None:
    opt = optimizer()
    one = opt.recommend(radius={"temp": 6}).worst_case_value
    two = opt.recommend(radius={"temp": 6, "weather": 0.4}).worst_case_value
    none = opt.recommend(radius={"temp": 0})
    assert two <= one + 1e-6 and one < none.worst_case_value - 0.1
    assert none.worst_case_value == pytest.approx(none.expected_value, abs=1e-4)


@pytest.mark.parametrize("radius", [{"temp": 0}, {"temp": 0, "weather": 0.0}])
def test_where_no_column_may_move_nothing_is_said_of_multiples(radius: Any) -> None:
    opt = optimizer()
    found = opt.recommend(radius=radius)
    assert found.stability is None and "times that radius" not in str(found)
    assert found.worst_case_value == found.expected_value
    assert "none: the worst case is the reference" in str(found)
    with pytest.raises(InputDataError, match="radius of the set is zero"):
        opt.robustness_profile({"stock": 15.0}, radius=radius)


def test_nothing_may_move_where_the_only_column_of_the_radius_is_known() -> None:
    found = optimizer().recommend(radius={"weather": 0.2}, context={"weather": "sun"})
    assert found.stability is None
    assert found.worst_case_value == pytest.approx(found.expected_value, rel=1e-12)


def test_every_question_takes_it() -> None:
    opt = optimizer()
    radius = {"temp": 6, "weather": 0.1}
    assert len(opt.ask(2, radius=radius)) == 2
    assert len(opt.policy({"weather": ["sun", "rain"]}, radius={"temp": 6})) == 2
    known = opt.recommend(radius=radius, context={"weather": "sun"})
    assert "within 6 of temp (Wasserstein)" in known.searched
    profile = opt.robustness_profile(
        {"stock": 15.0}, radius={"temp": 3}, radii=torch.linspace(0.0, 4.0, 7)
    )
    double = opt.robustness_profile(
        {"stock": 15.0}, radius={"temp": 6}, radii=profile.radii / 2
    )
    assert torch.allclose(profile.values, double.values, atol=2e-3)


def test_the_penalty_takes_the_slope_per_radius() -> None:
    """Of a plane with the slopes 3 and 4 it is the length of (3 r_1, 4 r_2)."""
    box = torch.tensor([[0.0, 0.0], [10.0, 2.0]], dtype=torch.double)
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(40, 1, generator=generator).double()
    C = box[0] + box[1] * torch.rand(40, 2, generator=generator).double()
    Y = 3.0 * C[:, :1] + 4.0 * C[:, 1:]
    for radius, penalty in (
        ({"c1": 0.4}, 1.2),
        ({"c2": 0.2}, 0.8),
        ({"c1": 0.4, "c2": 0.2}, (1.2**2 + 0.8**2) ** 0.5),
    ):
        opt = RobustOptimizer("wdrbo", UNIT, box, radius=radius, **SHORT)
        opt.tell(X, C, Y, closes_pending=False)
        best = opt.recommend()
        assert best.expected_value - best.objective == pytest.approx(penalty, rel=0.1)
        assert best.expected_value - best.worst_case_value == pytest.approx(
            penalty, rel=0.1
        )


@pytest.mark.parametrize("radius", [{"temp": 6, "weather": 0.1}, "sd", {"temp": 6}])
def test_runs_go_on_with_equal_bits(radius: Any, tmp_path: Path) -> None:
    def made(journal: Path | None) -> NamedOptimizer:
        return optimizer(radius=radius, journal=journal)

    def asked(opt: NamedOptimizer) -> list[float]:
        return [
            *opt.ask()["stock"],
            *opt.ask(radius={"temp": 2.5})["stock"],
            *opt.ask(radius="spread")["stock"],
        ]

    whole = made(None)
    expected = [*asked(whole), *asked(whole)]
    path = tmp_path / "run.jsonl"
    first = made(path)
    found = asked(first)
    first.close()
    with NamedOptimizer.resume(path) as again:
        assert again.algorithm.options["radius"] == radius
        assert [*found, *asked(again)] == expected
    state = json.loads(json.dumps(whole.state_dict()))
    restored = NamedOptimizer.from_state_dict(state)
    assert restored.recommend().worst_case_value == whole.recommend().worst_case_value


def test_the_sensitivity_to_a_radius_by_column_is_that_to_its_scale() -> None:
    radii, b, h = [0.1, 0.2], 0.3, 1e-3
    adversary = AroundContexts(
        ambiguity_set=Wasserstein(0.0), radius=dict(zip(NAMES, radii, strict=True))
    )
    recipe = RobustRecipe(
        adversary=adversary, policy=ConfidenceBound(sensitivity_weight=b)
    )
    found = adversary.search_problem(state_against(adversary, context_names=NAMES))
    points, weights = found.contexts.points, found.contexts.weights
    values = torch.sin(7.0 * points[:, 0]) + (points[:, 1] - 0.4).square()
    here, less, more = (
        by_program(points, weights, values, [scale * r for r in radii], False)
        for scale in (1.0, 1.0 - h, 1.0 + h)
    )
    assert isinstance(recipe.policy, ConfidenceBound)
    objective = recipe.policy.objective_over(found)
    slope = (more - less) / (2 * h)
    assert slope < -1e-2
    assert objective(values, weights).item() == pytest.approx(
        here + b * slope, abs=1e-3
    )


def test_a_change_of_the_dictionary_later_does_not_matter() -> None:
    radius = {"temp": 6.0}
    opt = optimizer(radius=radius)
    radius["temp"] = 60.0
    assert opt.algorithm.options["radius"] == {"temp": 6.0}


def test_dro_takes_it_around_a_wasserstein_ball_without_a_cost() -> None:
    radius = {"temp": 6, "weather": 0.1}
    exact = optimizer(radius=radius).recommend()
    around = optimizer("dro", ambiguity_set=Wasserstein(0.0), radius=radius).recommend()
    assert around.worst_case_value == pytest.approx(exact.worst_case_value, abs=1e-6)
    only = optimizer(
        "dro",
        ambiguity_set=Wasserstein(0.0),
        radius=radius,
        contexts_complete=True,
    ).recommend()
    assert exact.worst_case_value < only.worst_case_value
    with pytest.raises(InputDataError, match="no distance between contexts"):
        AroundContexts(ambiguity_set=TotalVariation(0.1), radius={"temp": 1})
    with pytest.raises(InputDataError, match="no distance between contexts"):
        AroundContexts(
            ambiguity_set=Wasserstein(0.1, 1.0 - torch.eye(2)), radius={"temp": 1}
        )


def test_the_default_has_a_name() -> None:
    assert as_radius("spread") == SpreadRadius() == RADII["spread"]
    by_name, by_default = optimizer(radius="spread"), optimizer()
    assert by_name.recommend().worst_case_value == (
        by_default.recommend().worst_case_value
    )


def test_a_standard_deviation_is_that_of_each_column() -> None:
    seen = torch.tensor(frame()["temp"].tolist()).double()
    wet = frame()["weather"].tolist().count("rain") / len(seen)
    opt = optimizer(radius="sd")
    # Of a category: the mean squared distance from the mean, corners one apart.
    share = math.sqrt(wet * (1 - wet) * len(seen) / (len(seen) - 1))
    sd = seen.std().item()
    words = f"within {sd:.3g} of temp or another weather in {100 * share:.3g}% of"
    assert words in opt.recommend().searched
    said = opt.recommend(radius={"temp": sd, "weather": share})
    named = opt.recommend()
    assert named.worst_case_value == pytest.approx(said.worst_case_value, rel=1e-5)
    plain = optimizer("wdrbo_exact")
    sunny = plain.recommend(radius="sd", context={"weather": "sun"})
    assert f"within {sd:.3g} of temp (Wasserstein)" in sunny.searched


def test_deviations_forget_and_know_nothing_of_one_context() -> None:
    seen = torch.tensor([0.1, 0.4, 0.9, 0.3]).double()
    two = torch.stack([seen, seen.flip(0) / 3], -1)
    expected = torch.from_numpy(np.std(two.numpy(), axis=0, ddof=1))
    assert torch.allclose(deviations(two, None, [1, 1]), expected)
    assert deviations(two[:1], None, [1, 1]).tolist() == [0.5, 0.5]
    heavy = torch.tensor([0.7, 0.1, 0.1, 0.1]).double()
    spread = (heavy * (seen - heavy @ seen).square()).sum() / (1 - heavy @ heavy)
    found = deviations(seen[:, None], heavy, [1])
    assert found.item() == pytest.approx(spread.sqrt().item())
    assert deviations(torch.eye(3)[:1].double(), None, [3]).item() == 0.5
    state = state_against(WassersteinBall(radius="sd"))
    empty = replace(state, history=replace(state.history, contexts=two[:0]))
    with pytest.raises(InputDataError, match="them, sd, has no value"):
        empty.column_radii("sd")


def test_the_recipes_that_take_it_are_named() -> None:
    taking = {
        name
        for name, recipe in RECIPES.items()
        if isinstance(recipe, RobustRecipe)
        and isinstance(recipe.adversary, WassersteinBall)
    }
    assert set(TAKE_COLUMNS) == taking
    for name, recipe in RECIPES.items():
        if "radius" not in recipe.options or name in taking:
            continue
        for radius in ({"temp": 6}, "sd"):
            with pytest.raises(InputDataError, match="`wdrbo_exact`"):
                recipe.with_options(radius=radius)


@pytest.mark.parametrize(
    ("radius", "words"),
    [
        ({}, "empty"),
        ({"tmp": 6}, "names `tmp`, which is not a context.*Did you mean `temp`"),
        ({"stock": 6}, "is not a context"),
        ({"temp": -1}, "not negative"),
        ({"temp": float("nan")}, "finite"),
        ({"temp": True}, "must be a number"),
        ({"temp": "6"}, "must be a number"),
        ({1: 6}, "names of context columns as keys"),
        ({"weather": 10}, "at most 1.*0.1 for a tenth"),
        ("Spread", "Did you mean `spread`"),
        ("1.0", "must be a number, one of"),
    ],
)
def test_bad_radii_are_refused_where_they_are_given(radius: Any, words: str) -> None:
    with pytest.raises(InputDataError, match=words):
        optimizer(radius=radius)
    opt = optimizer()
    for question in (opt.ask, opt.recommend):
        with pytest.raises(InputDataError, match=words):
            question(radius=radius)


def test_a_logarithm_takes_a_factor() -> None:
    opt = NamedOptimizer.from_dataframe(
        pd.DataFrame(
            {"x": [0.1, 0.5, 0.8], "dose": [10.0, 20.0, 50.0], "y": [1, 2, 0]}
        ),
        decisions={"x": (0.0, 1.0)},
        contexts={"dose": Log(1.0, 100.0)},
        outcome="y",
        radius={"dose": 2},
        **SMALL,
    )
    assert in_widths({"dose": 2}, opt.space).item() == pytest.approx(
        np.log(2) / np.log(100)
    )
    assert "within a factor 2 of dose" in opt.recommend().searched
    with pytest.raises(InputDataError, match="it is a factor"):
        opt.ask(radius={"dose": 0.5})


def test_a_radius_that_holds_everything_is_named() -> None:
    with pytest.warns(
        InputDataWarning, match="multiples of the radius by column.*every"
    ):
        optimizer(radius={"temp": 51})
    with pytest.warns(InputDataWarning, match="every distribution"):
        optimizer().ask(radius={"temp": 60})


def test_words_leave_out_what_does_not_move() -> None:
    box = torch.tensor([[0.0, 0.0, 0.0], [50.0, 2.0, 1.0]], dtype=torch.double)
    space = SearchSpace(
        UNIT,
        box,
        known_context=torch.tensor([torch.nan, torch.nan, 0.5]).double(),
        context_names=("temp", "weather", "wind"),
        context_categories={1: 3},
    )
    assert in_words([0.1, 0.0, 0.2], space) == "5 of temp"
    assert in_words([0.0, 0.0, 0.2], space) == "0 of every column"
