"""Suggestions have the digits of their columns, and stay allowed with them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from botorch_drbo.cli.csv_file import CsvFile, as_values, in_digits
from botorch_drbo.space import (
    Category,
    Continuous,
    Integer,
    LinearConstraint,
    Log,
    Ordinal,
    Space,
    Variable,
)


def written(
    tmp_path: Path,
    cells: str,
    value: object,
    kind: Variable | tuple[float, float],
    pending: tuple[float, ...] = (),
    **limits: float,
) -> str:
    path = tmp_path / "data.csv"
    path.write_text("\n".join(["x,c,y", *(f"{cell},1,1" for cell in cells.split())]))
    constraints = [LinearConstraint({"x": 1.0}, **limits)] if limits else []
    space = Space({"x": kind}, {"c": (0, 1)}, outcome="y", constraints=constraints)
    rows = in_digits(
        pd.DataFrame({"x": [value]}),
        pd.DataFrame({"x": list(pending)}),
        CsvFile.read(path),
        space,
    )
    return rows[0]["x"]


@pytest.mark.parametrize(
    ("cells", "value", "kind", "word"),
    [
        ("20.5 30", 37.304182, (10, 90), "37.3"),
        ("20.50 30", 37.304182, (10, 90), "37.30"),
        ("2e-3 30", 37.304182, (10, 90), "37.304"),
        ("", 37.304182, (10, 90), "37.304"),  # 80 / 10,000 and finer
        ("20 30", 37.304182, (0, 100), "37"),
        ("20 30", 37.304182, (10, 90), "37.3"),  # one is more than a hundredth of 80
        ("0 1", 0.304182, (0, 1), "0.30"),
        ("20 30", 89.97, (10, 89.99), "89.9"),  # 90.0 is out of bounds
        ("20 30", -0.04, (-50, 40), "0.0"),
        ("1000000", 1234567.89, (0, 1e7), "1234568"),
        ("1e-999999 3", 37.304182, (0, 100), "37"),  # not a million digits
        ("1e-99999999999999999999 3", 37.304182, (0, 100), "37"),
        ("0e-999999 3", 37.304182, (0, 100), "37"),
        (f"1.{50 * '0'} 3", 37.25, (0, 100), f"37.25{12 * '0'}"),
        (f"1.{50 * '1'} 3", 37.25, Log(1, 100), f"37.25{13 * '0'}"),
        (f"3.{50 * '0'}", 5, Integer(0, 40), f"5.{17 * '0'}"),
        ("3 7", 5, Integer(0, 40), "5"),
        ("3.0 7.0", 5, Integer(0, 40), "5.0"),
        ("40", 40.0, Ordinal([2.5, 40]), "40"),
        ("40", 2.5, Ordinal([2.5, 40]), "2.5"),
        ("A", "B", Category(["A", "B"]), "B"),
        ("0.5 0.001", 0.00123456, Log(1e-3, 1.0), "0.00123"),
        ("0.1234 0.5", 0.00123456, Log(1e-3, 1.0), "0.001235"),
        ("0.5", 123.456, Log(1e-3, 1e3), "123"),
        ("0.5", 12345.6, Log(1e-3, 1e5), "12346"),
    ],
)
def test_the_digits_are_those_of_the_column(
    tmp_path: Path,
    cells: str,
    value: object,
    kind: Variable | tuple[float, float],
    word: str,
) -> None:
    assert written(tmp_path, cells, value, kind) == word


def test_rounding_goes_to_the_side_that_is_allowed(tmp_path: Path) -> None:
    assert written(tmp_path, "1.0", 33.37, (0, 90), upper=33.37) == "33.3"
    assert written(tmp_path, "1.0", 33.33, (0, 90), lower=33.33) == "33.4"
    # Neither of 33.3 and 33.4.
    assert written(tmp_path, "1.0", 33.35, (0, 90), lower=33.34, upper=33.36) == "33.35"


def test_rounding_keeps_apart_from_what_is_pending(tmp_path: Path) -> None:
    assert written(tmp_path, "1.0", 33.31, (0, 90), (33.3,)) == "33.4"
    assert written(tmp_path, "1.0", 33.31, (0, 90), (33.3, 33.4)) == "33.31"


def test_rows_of_a_batch_are_not_rounded_to_the_same(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,c,y\n1.0,1,1\n")
    space = Space({"a": (0, 90)}, {"c": (0, 1)}, outcome="y")
    x = pd.DataFrame({"a": [4.02, 3.98, 4.01, 3.99]})
    rows = in_digits(x, x.iloc[:0], CsvFile.read(path), space)
    # All four are 4.0, then 3.9, then 4.1; the last one has no digits left to choose.
    assert [row["a"] for row in rows] == ["4.0", "3.9", "4.1", "3.99"]


def test_a_batch_keeps_apart_too(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b,c,y\n1.0,1,1,1\n")
    limit = LinearConstraint({"a": 1.0, "b": 1.0}, upper=10.0)
    space = Space(
        {"a": (0, 90), "b": Integer(0, 9)},
        {"c": (0, 1)},
        outcome="y",
        constraints=[limit],
    )
    x = pd.DataFrame({"a": [4.02, 3.98, 4.0], "b": [6, 6, 6]})
    # 4.02 becomes neither 4.0, which is the third one, nor 4.1, which is too much.
    rows = in_digits(x, x.iloc[:0], CsvFile.read(path), space)
    assert [row["a"] for row in rows] == ["4.02", "3.9", "4.0"]


def test_the_last_resort_is_every_digit_even_of_what_is_pending(tmp_path: Path) -> None:
    pending = (33.3, 33.4, 33.31)
    assert written(tmp_path, "1.0", 33.31, (0, 90), pending) == "33.31"


@pytest.mark.parametrize("num_columns", [10, 11])
def test_at_most_ten_columns_have_a_second_choice(
    tmp_path: Path, num_columns: int
) -> None:
    names = [f"a{j}" for j in range(num_columns)]
    path = tmp_path / "data.csv"
    row = ",".join(["1.0"] * num_columns)
    path.write_text(f"{','.join(names)},c,y\n{row},1,1\n")
    space = Space(dict.fromkeys(names, (0, 90)), {"c": (0, 1)}, outcome="y")
    x = pd.DataFrame({name: [4.02] for name in names})
    pending = pd.DataFrame({name: [4.0] for name in names})
    (cells,) = in_digits(x, pending, CsvFile.read(path), space)
    # One moves to its other side where there is a choice; else all digits stay.
    words = ["4.0"] * 9 + ["4.1"] if num_columns == 10 else ["4.02"] * 11
    assert list(cells.values()) == words


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("4.0", 4),
        ("4.5", 4.5),
        ("9007199254740991", 2**53 - 1),
        ("9007199254740992", 2.0**53),  # not every whole number from here on
    ],
)
def test_json_has_whole_numbers_that_are_exact(word: str, value: float) -> None:
    found = as_values(
        {"x": word, "k": "7"}, {"x": Continuous(0, 1e16), "k": Category(["7", "8"])}
    )
    assert found == {"x": value, "k": "7"}
    assert type(found["x"]) is type(value)
