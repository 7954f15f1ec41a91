"""Tables of the user: which of them are read, and how what is wrong is named."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import InputDataError

from botorch_drbo import Category, Integer, LinearConstraint, Ordinal, Space
from botorch_drbo.space.table import as_columns, to_frame, to_tensor

SPACE = Space(
    {"stock": Integer(0, 40), "price": (0.0, 9.0)},
    {"demand": (0.0, 100.0), "weather": Category(["sun", "rain", "snow"])},
)
ROWS = {"demand": [10.0, 20.0], "weather": ["rain", "sun"]}


def read(table: Any) -> list[list[float]]:
    return to_tensor(table, SPACE.contexts, "c").tolist()


@pytest.mark.parametrize(
    "table",
    [
        ROWS,
        pd.DataFrame(ROWS),
        pd.DataFrame(ROWS, index=["b", "a"])[["weather", "demand"]],
        pd.DataFrame(ROWS).astype({"demand": "Int64", "weather": "category"}),
        {"demand": np.array([10.0, 20.0]), "weather": np.array(["rain", "sun"])},
        {"demand": torch.tensor([[10.0], [20.0]]), "weather": ("rain", "sun")},
        torch.tensor([[10.0, 1.0], [20.0, 0.0]]),
    ],
    ids=["lists", "frame", "order", "extension", "numpy", "tensors", "tensor"],
)
def test_a_table_is_read_in_each_form(table: Any) -> None:
    assert read(table) == [[10.0, 1.0], [20.0, 0.0]]


@pytest.mark.parametrize("ten", [10, np.float64(10), np.array(10), torch.tensor(10)])
def test_one_value_is_a_column_of_one_row(ten: Any) -> None:
    assert read({"demand": ten, "weather": "rain"}) == [[10.0, 1.0]]


@pytest.mark.parametrize("empty", [None, math.nan, pd.NA, np.nan])
@pytest.mark.parametrize(
    ("index", "row"),
    [
        (None, "row 1"),
        (["mon", "tue"], "row tue"),
        (pd.Index([7, 8], name="day"), "day 8"),
    ],
)
def test_an_empty_cell_is_named_by_its_label(empty: Any, index: Any, row: str) -> None:
    table = pd.DataFrame(
        {"demand": pd.Series([10.0, empty], dtype=object).tolist(), "weather": "sun"},
        index=index,
    )
    with pytest.raises(InputDataError, match=f"`c`, {row}, column `demand`: is empty"):
        read(table)


def test_a_dictionary_has_rows_by_their_number() -> None:
    with pytest.raises(InputDataError, match="`c`, row 0, column `demand`: is empty"):
        read({"demand": [None, 1.0], "weather": ["sun", "sun"]})


def test_what_is_known_in_part_is_read_in_part() -> None:
    part = as_columns({"weather": ["sun"]}, SPACE.contexts, "c", partly=True)
    assert part == {"weather": ["sun"]}
    with pytest.raises(InputDataError, match="`c` names no context"):
        as_columns({}, SPACE.contexts, "c", partly=True)
    with pytest.raises(InputDataError, match="no column `demand`, which the problem"):
        as_columns({}, SPACE.contexts, "c")


@pytest.mark.parametrize("make", [dict, pd.DataFrame])
def test_weights_are_a_column_by_its_name(make: Any) -> None:
    known = SPACE.context_set(make({**ROWS, "days": [3, 1]}), "days")
    assert known.weights.tolist() == [0.75, 0.25]
    assert known.points.tolist() == [[10.0, 1.0], [20.0, 0.0]]


@pytest.mark.parametrize(
    ("days", "words"),
    [
        ([3, -1], r"`contexts`, column `days`: weights must not be negative"),
        ([0, 0], r"not all zero, got \[0.0, 0.0\]"),
        ([3, None], r"`contexts`, row 1, column `days`: is empty"),
        (["a", 1], r"row 0, column `days`: must be a finite number, got 'a'"),
    ],
)
def test_wrong_weights_are_refused(days: list[Any], words: str) -> None:
    with pytest.raises(InputDataError, match=words):
        SPACE.context_set({**ROWS, "days": days}, "days")


@pytest.mark.parametrize("table", [ROWS, pd.DataFrame(ROWS), torch.zeros(2, 2)])
def test_a_column_of_weights_must_be_there(table: Any) -> None:
    with pytest.raises(InputDataError, match="no column `days` with weights"):
        SPACE.context_set(table, "days")


def test_a_weight_may_be_zero() -> None:
    known = SPACE.context_set({**ROWS, "days": [0, 2]}, "days")
    assert known.weights.tolist() == [0.0, 1.0]


def test_tables_have_the_types_of_their_variables() -> None:
    X = torch.tensor([[3.0, 0.5], [4.0, 1.0]], dtype=torch.double)
    whole = to_frame(X, SPACE.decisions)
    assert whole.dtypes.astype(str).tolist() == ["int64", "float64"]
    X[0, 0] = math.nan
    stock = to_frame(X, SPACE.decisions)["stock"]
    assert stock.dtype == "float64" and stock.isna().tolist() == [True, False]
    C = torch.tensor([[5.0, 2.0], [6.0, math.nan]], dtype=torch.double)
    assert to_frame(C, SPACE.contexts)["weather"].tolist() == ["snow", None]


def test_an_index_of_a_category_is_a_whole_number_of_the_list() -> None:
    for index in (-1.0, 3.0, 0.5):
        with pytest.raises(InputDataError, match="row 1, column `weather`: a tensor"):
            read(torch.tensor([[1.0, 2.0], [1.0, index]]))


def test_a_space_prints_its_names() -> None:
    words = "Space(decisions=['stock', 'price'], contexts=['demand', 'weather'], "
    assert repr(SPACE) == words + "outcome='outcome')"


def test_an_ordinal_is_itself_up_to_a_millionth_of_its_smallest_step() -> None:
    # The smallest step is .001, the first or the last of them.
    for choices, own in (([0.001, 0.002, 0.5], 0.002), ([0.001, 0.5, 0.501], 0.501)):
        grams = {"grams": Ordinal(choices)}
        row = torch.tensor([[own + 5e-10]], dtype=torch.double)
        assert to_tensor(row, grams, "x").tolist() == [[own]]
        for between in (own - 0.0005, own + 1.5e-9):
            with pytest.raises(InputDataError, match="one of"):
                to_tensor({"grams": [choices[0], between]}, grams, "x")


def test_both_sides_of_a_constraint_may_be_equal() -> None:
    assert LinearConstraint({"price": 1}, lower=2.0, upper=2.0).lower == 2.0
