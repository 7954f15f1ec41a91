"""A table with many problems: each group is its own, and fails by itself."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pandas as pd
import pytest
from botorch.exceptions.errors import InputDataError

from botorch_drbo import MeanShift, NamedOptimizer
from botorch_drbo.optimizer.groups import Groups

FEW: dict[str, Any] = {"num_restarts": 1, "raw_samples": 8, "surrogate": "botorch"}
COLUMNS: dict[str, Any] = {
    "decisions": {"price": (0, 10)},
    "contexts": {"demand": (0, 100)},
    "outcome": "profit",
}


def rows(name: object, best: float, num: int = 6) -> pd.DataFrame:
    price = [(7 * i + 1) % 10 for i in range(num)]
    return pd.DataFrame(
        {
            "sku": name,
            "price": [float(p) for p in price],
            "demand": [10.0 * i for i in range(num)],
            "profit": [-((p - best) ** 2) for p in price],
        },
        dtype=object,
    )


def mixed(*tables: pd.DataFrame) -> pd.DataFrame:
    """The rows of several groups in turn."""
    joined = pd.concat(tables).sort_index(kind="stable")
    return joined.reset_index(drop=True)


def groups(df: pd.DataFrame, **further: Any) -> Groups[NamedOptimizer]:
    given = {**COLUMNS, **FEW, **further}
    return NamedOptimizer.from_dataframe(df, group="sku", **given)


@pytest.mark.parametrize("parallel", [1, 2])
def test_each_group_gets_what_its_own_rows_give(parallel: int) -> None:
    tables = {"B": rows("B", 2.0), "A": rows("A", 8.0), 7: rows(7, 5.0)}
    found = groups(mixed(*tables.values())).ask(2, parallel=parallel)
    assert not found.failures
    assert found.table["sku"].tolist() == ["B", "B", "A", "A", 7, 7]
    for name, table in tables.items():
        alone = NamedOptimizer.from_dataframe(table, **COLUMNS, **FEW).ask(2)
        own = found.table[found.table["sku"] == name]
        assert own["price"].tolist() == alone["price"].tolist()


def test_recommendations_have_their_values() -> None:
    made = groups(mixed(rows("A", 2.0), rows("B", 8.0)))
    with ThreadPoolExecutor(2) as executor:
        found = made.recommend(executor=executor, parallel=2)
    best = made["B"].recommend()
    row = found.table.set_index("sku").loc["B"]
    assert row["price"] == best.x["price"].item()
    assert row["expected_value"] == best.expected_value
    assert row["worst_case_value"] == best.worst_case_value
    assert list(made) == ["A", "B"] and len(made) == 2


def test_a_group_fails_by_itself() -> None:
    bad = rows("bad", 2.0)
    bad.loc[3, "price"] = 50.0
    df = mixed(rows("A", 2.0), bad, rows("one", 1.0, 1), rows("two", 3.0, 2))
    pending = rows("none", 1.0, 2).assign(profit=None, demand=None)
    df = pd.concat([df, pending], ignore_index=True)
    df["sku"] = pd.Categorical(df["sku"], [*df["sku"].unique(), "empty"])
    ended: list[object] = []
    found = groups(df).ask(callback=ended.append)
    assert found.table["sku"].tolist() == ["A", "two"]
    assert list(found.failures) == ["bad", "one", "none", "empty"]
    assert "column `price`" in found.failures["bad"]
    assert "1 row and 1 outcome:" in found.failures["one"]
    assert "2 rows and no outcomes:" in found.failures["none"]
    assert "no row and no outcomes:" in found.failures["empty"]
    assert set(ended) == {"A", "bad", "one", "two", "none", "empty"}


def test_only_failures_leave_an_empty_table() -> None:
    found = groups(rows("one", 1.0, 1)).ask()
    assert found.table.empty and list(found.failures) == ["one"]


@pytest.mark.parametrize(
    ("df", "further", "message"),
    [
        (rows("A", 1.0).drop(columns="sku"), {}, "no column `sku`, which `group` nam"),
        (rows(None, 1.0), {}, "row 0, column `sku`: is empty"),
        (rows("A", 1.0)[:0], {}, "no row, and so no group"),
        (rows("A", 1.0), {"journal": "x.jsonl"}, "Got `journal` and `group`"),
        (rows("A", 1.0), {"outcome": "prof"}, "no column `prof`"),
        (rows("A", 1.0), {"algorithm": "wdrb"}, "wdrb"),
        ([1, 2], {}, "must be a DataFrame"),
    ],
)
def test_what_is_wrong_with_all_is_said_at_once(
    df: Any, further: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputDataError, match=message):
        groups(df, **further)


def test_a_group_that_is_not_there_is_named() -> None:
    with pytest.raises(InputDataError, match=r"no group 'SKU-1'.*Did you mean `SKU-2`"):
        groups(rows("SKU-2", 1.0))["SKU-1"]


@pytest.mark.parametrize("column", ["price", "demand", "profit", "runoff", "state"])
def test_a_column_of_the_problem_is_no_group(column: str) -> None:
    table = rows("A", 2.0).assign(runoff=1.0, state=None)
    with pytest.raises(InputDataError, match=f"`{column}` of `group` is a decision"):
        NamedOptimizer.from_dataframe(
            table,
            **COLUMNS,
            group=column,
            outcome_constraints={"runoff": (None, 9)},
            status="state",
        )


def test_dangers_prices_and_objectives_are_those_of_each_group() -> None:
    made = groups(mixed(rows("A", 2.0), rows("B", 8.0)), algorithm="erbo")
    asked = {"against": MeanShift(1.0, clip=1.0), "give_up": 0.2}
    for options in (asked, {"objective": "worst fifth"}):
        found = made.recommend(**options).table.set_index("sku")
        best = made["B"].recommend(**options)
        assert found.loc["B", "price"] == best.x["price"].item()
    # Against nothing there is nothing to pay for, and each group says so.
    failed = made.recommend(give_up=0.2).failures
    assert set(failed) == {"A", "B"} and "Say against what" in failed["A"]


def test_contexts_are_chosen_in_each_group() -> None:
    scope = {"demand": [10.0, 30.0, 50.0]}
    made = groups(mixed(rows("A", 2.0), rows("B", 8.0)), scope=scope)
    found = made.ask(4, choose_context=True, contexts_per_decision=2).table
    assert found["sku"].tolist() == ["A"] * 4 + ["B"] * 4
    x, c = made["A"].ask(4, choose_context=True, contexts_per_decision=2)
    own = found[found["sku"] == "A"]
    assert own["price"].tolist() == x["price"].tolist()
    assert own[list(c)].to_numpy().tolist() == c.to_numpy().tolist()
