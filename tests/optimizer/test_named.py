"""The loop in the names and units of a problem: tables in, tables out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from torch import Tensor

from botorch_drbo import (
    Category,
    Integer,
    LinearConstraint,
    Log,
    NamedOptimizer,
    Ordinal,
    RobustOptimizer,
    Space,
)
from botorch_drbo.ambiguity import SolverStatus
from botorch_drbo.problem.feasible import feasible
from botorch_drbo.space.table import to_tensor

BUDGET = {"num_initial": 3, "num_restarts": 2, "raw_samples": 32}
CONTEXTS = {"demand": (0.0, 100.0), "weather": Category(["sun", "rain", "snow"])}
SEEN = [(40.0, "sun"), (80.0, "rain"), (55.0, "sun"), (20.0, "rain"), (60.0, "sun")]


def weak(columns: dict[str, Tensor]) -> Tensor:
    return 60.0 - columns["price"] * columns["dose"]


def problem(*constraints: Any) -> Space:
    return Space(
        decisions={
            "price": (10.0, 90.0),
            "stock": Integer(0, 40),
            "supplier": Category(["A", "B"]),
            "size": Ordinal([1, 2, 5]),
            "dose": Log(1e-3, 1.0),
        },
        contexts=CONTEXTS,
        outcome="profit",
        constraints=[
            LinearConstraint({"price": 1, "stock": 2}, upper=100),
            *constraints,
        ],
    )


def rounds(opt: NamedOptimizer, first: int, last: int) -> list[dict[str, Any]]:
    asked = []
    for demand, weather in SEEN[first:last]:
        x = opt.ask()
        asked += x.to_dict("records")
        profit = x.stock - (x.price - 50).abs() / 10 + x.dose + (x.supplier == "A")
        opt.tell(
            x, {"demand": demand, "weather": weather}, profit - (weather == "rain")
        )
    return asked


def test_a_run_speaks_in_tables_and_survives_resume(tmp_path: Path) -> None:
    path, space = tmp_path / "run.jsonl", problem()
    with NamedOptimizer("dro", space, journal=path, **BUDGET) as opt:
        asked = rounds(opt, 0, 4)
        pending = opt.ask()
        history = opt.history
    resumed = NamedOptimizer.resume(path, space=space)
    pd.testing.assert_frame_equal(resumed.pending, pending)
    pd.testing.assert_frame_equal(resumed.history, history)
    columns = ["price", "stock", "supplier", "size", "dose"]
    assert history.columns.tolist() == [*columns, "demand", "weather", "profit"]
    assert history[columns].to_dict("records") == asked
    assert list(zip(history.demand, history.weather, strict=True)) == SEEN[:4]
    x = to_tensor(history, space.decisions, "x")
    assert feasible(space.search_space, x).all()
    resumed.close()
    with NamedOptimizer.resume(path) as opt:  # the journal knows its variables
        pd.testing.assert_frame_equal(opt.history, history)
        best = opt.recommend()
    assert best.x.columns.tolist() == columns and len(best.x) == 1
    assert best.worst_case_value <= best.expected_value
    assert best.contexts.worst_case_weight.sum() == pytest.approx(1.0)
    assert str(best).startswith("decision            price = ")
    assert "worst-case profit" in str(best) and "a bound" not in str(best)
    bound = replace(best, worst_case_status=SolverStatus.LOWER_BOUND)
    assert "(a bound: the solver did not converge)" in str(bound)


def test_the_resumed_run_asks_what_the_first_would_have_asked(tmp_path: Path) -> None:
    whole = NamedOptimizer("ucb_so", problem(), **BUDGET)
    asked = rounds(whole, 0, 5)
    path = tmp_path / "run.jsonl"
    with NamedOptimizer("ucb_so", problem(), journal=path, **BUDGET) as opt:
        rounds(opt, 0, 2)
    with NamedOptimizer.resume(path) as opt:
        assert rounds(opt, 2, 5) == asked[2:]


def test_a_function_is_given_again_at_resume(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with NamedOptimizer("random", problem(weak), journal=path) as opt:
        x = opt.ask(3)
        assert (x.price * x.dose <= 60.001).all()
    with pytest.raises(InputDataError, match=r"weak.*space=space"):
        NamedOptimizer.resume(path)
    with pytest.raises(InputDataError, match="another problem: its constraints"):
        NamedOptimizer.resume(path, space=problem())
    with NamedOptimizer.resume(path, space=problem(weak)) as opt:
        pd.testing.assert_frame_equal(opt.pending, x)


def test_tensors_and_dictionaries_say_the_same() -> None:
    decisions = [
        {"price": [20.0], "stock": [3], "supplier": ["B"], "size": [5], "dose": [0.1]},
        {"price": 20.0, "stock": 3, "supplier": "B", "size": 5, "dose": 0.1},
        torch.tensor([[20.0, 3.0, 1.0, 5.0, 0.1]], dtype=torch.double),
    ]
    c = torch.tensor([30.0, 2.0], dtype=torch.double)
    tables = []
    for x in decisions:
        opt = NamedOptimizer("dro", problem())
        opt.tell(x, c, [2.0], closes_pending=False)
        tables.append(opt.history)
    assert tables[0].weather.tolist() == ["snow"]
    for table in tables[1:]:
        pd.testing.assert_frame_equal(table, tables[0])


def test_candidates_have_names_too() -> None:
    opt = NamedOptimizer("random", problem())
    one = {"price": 20.0, "stock": 3, "supplier": "B", "size": 5, "dose": 1.0}
    assert opt.ask(candidates=one).to_dict("records") == [one]
    listed = pd.DataFrame([{**one, "stock": 4}, {**one, "stock": 40, "price": 90.0}])
    with pytest.raises(InputDataError, match="violate the constraints: rows"):
        opt.ask(candidates=listed)


def test_a_late_outcome_is_missing_in_the_history() -> None:
    opt = NamedOptimizer("random", problem())
    x = opt.ask()
    opt.tell(x, {"demand": 3.0, "weather": "sun"})
    assert opt.history.profit.isna().tolist() == [True]
    assert len(opt.pending) == 1


X = {"price": 20.0, "stock": 3, "supplier": "B", "size": 5, "dose": 0.1}
C = {"demand": 30.0, "weather": "sun"}


@pytest.mark.parametrize(
    ("x", "c", "y", "words"),
    [
        ({**X, "stock": 2.5}, C, 1.0, "row 0, column `stock`: must be a whole"),
        ({**X, "supplier": "C"}, C, 1.0, "column `supplier`"),
        ({**X, "dose": 2.0}, C, 1.0, "column `dose`: must lie between"),
        ({**X, "cost": 2.0}, C, 1.0, "no column `cost`"),
        (X, {"demand": 30.0}, 1.0, "no column `weather`"),
        (X, {**C, "demand": float("nan")}, 1.0, "`c`, row 0, column `demand`"),
        (X, C, "much", "`y`, row 0, column `profit`"),
        (X, C, {"cost": 1.0}, "no column `profit`"),
    ],
)
def test_a_wrong_cell_is_named_and_nothing_is_recorded(
    tmp_path: Path, x: Any, c: Any, y: Any, words: str
) -> None:
    path = tmp_path / "run.jsonl"
    with NamedOptimizer("dro", problem(), journal=path) as opt:
        before = path.read_bytes()
        with pytest.raises(InputDataError) as caught:
            opt.tell(x, c, y)
        assert words in str(caught.value)
        assert path.read_bytes() == before and not opt.trials


def test_a_recipe_that_cannot_is_refused_before_there_is_a_journal(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.jsonl"
    with pytest.raises(UnsupportedError, match="wdrbo_exact"):
        NamedOptimizer("wdrbo", problem(), journal=path)
    with pytest.raises(InputDataError, match=r"NamedOptimizer\(algorithm, space\)"):
        RobustOptimizer("dro", problem(), journal=path)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputDataError, match="`context_bounds` is missing"):
        RobustOptimizer("dro", torch.tensor([[0.0], [1.0]]), journal=path)
    with pytest.raises(InputDataError, match="there is RobustOptimizer"):
        NamedOptimizer("dro", torch.tensor([[0.0], [1.0]]), journal=path)  # pyright: ignore[reportArgumentType]
    assert not path.exists()


def test_the_two_optimizers_go_on_with_runs_of_their_own(tmp_path: Path) -> None:
    named, boxes = tmp_path / "named.jsonl", tmp_path / "boxes.jsonl"
    unit = torch.tensor([[0.0], [1.0]]).double()
    with NamedOptimizer("random", problem(), journal=named) as opt:
        opt.ask()
        of_names = opt.state_dict()
    with RobustOptimizer("random", unit, unit, journal=boxes) as other:
        of_boxes = other.state_dict()
    contents = named.read_bytes(), boxes.read_bytes()
    with pytest.raises(InputDataError, match=r"`NamedOptimizer\.resume\(path\)`"):
        RobustOptimizer.resume(named)
    with pytest.raises(InputDataError, match=r"`RobustOptimizer\.resume\(path\)`"):
        NamedOptimizer.resume(boxes)
    with pytest.raises(InputDataError, match=r"NamedOptimizer.from_state_dict"):
        RobustOptimizer.from_state_dict(of_names)
    with pytest.raises(InputDataError, match=r"RobustOptimizer.from_state_dict"):
        NamedOptimizer.from_state_dict(of_boxes)
    assert (named.read_bytes(), boxes.read_bytes()) == contents
    NamedOptimizer.resume(named).close()  # unlocked after the refusal
    RobustOptimizer.resume(boxes).close()


def test_the_tensors_of_a_named_run_are_the_same_run() -> None:
    opt = NamedOptimizer("random", problem(), num_initial=2)
    x = opt.tensors.ask()
    assert x.shape == (1, len(opt.named_space.decisions))
    assert len(opt.pending) == 1
    opt.tell(opt.pending, C, [3.0])
    assert opt.tensors.history.Y.tolist() == [[3.0]]
    assert opt.state_dict() == opt.tensors.state_dict()


def test_a_space_is_not_for_the_journal_of_boxes(tmp_path: Path) -> None:
    path, unit = tmp_path / "run.jsonl", torch.tensor([[0.0], [1.0]]).double()
    RobustOptimizer("random", unit, unit, journal=path).close()
    with pytest.raises(InputDataError, match="no named variables"):
        NamedOptimizer.resume(path, space=problem())


def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "day": [1, 2, 3, 4],
            "price": [20.0, 30.0, 40.0, 50.0],
            "weather": ["sun", "rain", "sun", None],
            "profit": [1.0, 3.0, None, None],
        },
        index=["mon", "tue", "wed", "thu"],
    )


def from_table(df: pd.DataFrame, **changes: Any) -> NamedOptimizer:
    settings: dict[str, Any] = {
        "decisions": {"price": (10, 90)},
        "contexts": {"weather": Category(["sun", "rain"])},
        "outcome": "profit",
        "algorithm": "dro",
    }
    return NamedOptimizer.from_dataframe(df, **{**settings, **changes})


def test_rows_without_an_outcome_are_pending(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with from_table(table(), journal=path, maximize=False) as opt:
        assert opt.pending.price.tolist() == [40.0, 50.0]
        assert opt.history.weather.tolist() == ["sun", "rain", "sun"]
        assert opt.history.profit.dropna().tolist() == [1.0, 3.0]
        history = opt.history
    with NamedOptimizer.resume(path) as opt:
        pd.testing.assert_frame_equal(opt.history, history)
        assert opt.pending.price.tolist() == [40.0, 50.0]
    assert not from_table(table().iloc[:0]).trials


@pytest.mark.parametrize(
    ("row", "column", "value", "words"),
    [
        ("tue", "price", 95.0, "row tue, column `price`: must lie between"),
        ("tue", "price", None, "row tue, column `price`"),
        ("mon", "weather", "hail", "row mon, column `weather`"),
        ("tue", "weather", None, "row tue, column `weather`: is empty"),
        ("tue", "profit", "much", "row tue, column `profit`"),
    ],
)
def test_a_table_is_refused_with_the_row_and_the_column(
    tmp_path: Path, row: str, column: str, value: Any, words: str
) -> None:
    path, df = tmp_path / "run.jsonl", table().astype(object)
    df.loc[row, column] = value
    with pytest.raises(InputDataError) as caught:
        from_table(df, journal=path)
    assert words in str(caught.value)
    assert not path.exists()
    with pytest.raises(InputDataError, match="no column `cost`"):
        from_table(df, outcome="cost")
    df = table()
    df.loc[["mon", "tue"], "weather"] = None
    with pytest.raises(InputDataError, match=r"row mon, .*So is a cell of 1 more row"):
        from_table(df)
