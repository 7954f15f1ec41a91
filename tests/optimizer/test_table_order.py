"""Tables: rows are told in their order, and the default recipe takes every context."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from botorch.exceptions.errors import InputDataError

from botorch_drbo import Category, MeanShift, NamedOptimizer
from botorch_drbo.adversaries.wasserstein import WassersteinBall
from tests.products import robust_set


@pytest.mark.parametrize("last", [False, True])
def test_contexts_are_as_old_as_their_rows(last: bool) -> None:
    """A row whose outcome is out is no newer than the rows below it."""
    df = pd.DataFrame(
        {
            "price": [10.0, 20.0, 30.0, 40.0, 50.0, 60.0],
            "demand": [1.0, 2.0, 3.0, None, 5.0, 6.0],
            "profit": [None, 1.0, 2.0, None, 3.0, None if last else 4.0],
        }
    )
    opt = NamedOptimizer.from_dataframe(
        df,
        decisions={"price": (10, 90)},
        contexts={"demand": (0, 10)},
        outcome="profit",
        algorithm="dro",
        half_life=1.5,
    )
    shown = [1.0, 2.0, 3.0, 5.0, 6.0]
    assert opt._run.ledger.history.contexts.flatten().tolist() == shown
    assert opt.history.index.tolist() == [0, 1, 2, 4, 5]  # trial k is row k
    assert opt.pending.price.tolist() == [10.0, 40.0] + [60.0] * last
    raw = [2.0 ** (-age / 1.5) for age in (4, 3, 2, 1, 0)]
    weights = dict(zip(shown, [w / sum(raw) for w in raw], strict=True))
    best = opt.recommend(radius=0.0)
    found = dict(zip(best.contexts.demand, best.contexts.reference_weight, strict=True))
    assert found == pytest.approx(weights)


@pytest.mark.parametrize("half_life", [None, 1.0])
def test_a_radius_rule_sees_the_contexts_of_a_table_in_their_order(
    half_life: float | None,
) -> None:
    """``SpreadRadius`` of a table as of the same rows told one by one."""
    demand = [9.0, 1.0, 2.0, 1.5]
    profit = [None, 1.0, 2.0, 3.0]  # the farthest context is the oldest one
    df = pd.DataFrame(
        {"price": [10.0, 20.0, 30.0, 40.0], "demand": demand, "profit": profit}
    )
    opt = NamedOptimizer.from_dataframe(
        df,
        decisions={"price": (10, 90)},
        contexts={"demand": (0, 10)},
        outcome="profit",
        algorithm="wdrbo_exact",
        half_life=half_life,
    )
    raw = [1.0] * 4 if half_life is None else [0.125, 0.25, 0.5, 1.0]
    w = [v / sum(raw) for v in raw]
    scaled = [d / 10 for d in demand]  # in units of the box
    mean = sum(v * c for v, c in zip(w, scaled, strict=True))
    biased = sum(v * (c - mean) ** 2 for v, c in zip(w, scaled, strict=True))
    squares = sum(v**2 for v in w)
    by_hand = 1.25 * math.sqrt(biased / (1 - squares) * squares)
    history = opt._run.ledger.history
    model = opt.algorithm.fitted_model(history, opt.space)
    ball = robust_set(opt.algorithm, model, history, opt.space, 0)[1]
    assert ball.radius.item() == pytest.approx(by_hand)


def test_the_default_recipe_takes_every_kind_of_context() -> None:
    df = pd.DataFrame({"x": [1.0, 2.0, 3.0], "w": ["a", "b", "a"], "y": [1, 2, 1.5]})
    opt = NamedOptimizer.from_dataframe(
        df,
        decisions={"x": (0, 9)},
        contexts={"w": Category(["a", "b"])},
        outcome="y",
        num_initial=0,
    )
    assert 0 <= opt.ask().x.iloc[0] <= 9
    best = opt.recommend()
    assert best.worst_case_value <= best.expected_value + 1e-9


def test_a_table_is_learnt_for_the_mean_and_decided_within_a_price() -> None:
    df = pd.DataFrame({"x": [1.0, 2.0], "c": [0.5, 0.7], "y": [1.0, 2.0]})

    def recipe(**options: object) -> tuple[str, str, object]:
        opt = NamedOptimizer.from_dataframe(
            df,
            decisions={"x": (0, 9)},
            contexts={"c": (0, 1)},
            outcome="y",
            **options,
        )
        found = opt.algorithm.options
        return opt.algorithm.name, repr(found["against"]), found["give_up"]

    ball, danger = repr(WassersteinBall(radius="sd")), MeanShift(1.0)
    assert recipe() == ("erbo", ball, 0.1)
    assert recipe(give_up={"y": 0.2}) == ("erbo", ball, {"y": 0.2})
    assert recipe(against=danger, give_up=None) == ("erbo", repr(danger), None)
    assert recipe(algorithm="erbo") == ("erbo", "None", None)
    # Who names a radius or a set asks for a recipe that has one.
    assert recipe(radius={"c": 0.1}) == ("wdrbo_exact", "None", None)
    assert recipe(radius=0.1, give_up=0.05) == ("wdrbo_exact", "None", 0.05)
    assert recipe(adversary="mmd")[0] == "wdrbo_exact"


@pytest.mark.parametrize("name", ["x", "c", "y"])
def test_a_column_that_is_there_twice_is_refused(name: str) -> None:
    df = pd.DataFrame({"x": [1.0], "c": [0.5], "y": [1.0]})
    with pytest.raises(InputDataError, match=f"column `{name}` more than once"):
        NamedOptimizer.from_dataframe(
            pd.concat([df, df[[name]]], axis=1),
            decisions={"x": (0, 9)},
            contexts={"c": (0, 1)},
            outcome="y",
        )


def test_an_empty_decision_is_named_by_the_words_of_the_index() -> None:
    df = pd.DataFrame(
        {"x": [1.0, None], "c": [0.5, 0.5], "y": [1.0, 2.0]},
        index=pd.Index(["mon", "tue"], name="day"),
    )
    with pytest.raises(InputDataError, match="`df`, day tue, column `x`: is empty"):
        NamedOptimizer.from_dataframe(
            df, decisions={"x": (0, 9)}, contexts={"c": (0, 1)}, outcome="y"
        )


def test_rows_with_gaps_in_their_contexts_can_be_left_out() -> None:
    df = pd.DataFrame(
        {
            "x": [1.0, 2.0, 3.0, 4.0],
            "c": [None, 0.5, 0.2, 0.1],
            "weather": ["sun", None, "rain", None],
            "y": [1.0, None, 2.0, 3.0],
            "status": ["", "", "", ""],
        },
        index=pd.Index(["mon", "tue", "wed", "thu"], name="day"),
    )
    shared = {
        "decisions": {"x": (0, 9)},
        "contexts": {"c": (0, 1), "weather": Category(["sun", "rain"])},
        "outcome": "y",
        "status": "status",
    }
    with pytest.raises(
        InputDataError, match=r"day mon, column `c`.*withdrawn.* 2 more"
    ):
        NamedOptimizer.from_dataframe(df, **shared)
    df.loc[["mon", "tue", "thu"], "status"] = "withdrawn"
    opt = NamedOptimizer.from_dataframe(df, **shared)
    assert opt.history["y"].tolist() == [2.0]
