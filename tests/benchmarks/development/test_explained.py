"""What is said of a model's share, against what it is told and not told."""

from __future__ import annotations

import pandas as pd
import pytest
import torch

from benchmarks.development.explained import explained_report, said_and_true
from benchmarks.development.explained_data import SIZES, data_set


def test_thirty_data_sets_of_fifteen_to_a_hundred_rows() -> None:
    assert len(SIZES) == 15
    assert all(15 <= rows <= 100 for _, rows in SIZES)


@pytest.mark.parametrize(("name", "rows", "total"), [("amidation", 15, 960)])
def test_what_is_told_of_a_table_is_not_asked_for(
    name: str, rows: int, total: int
) -> None:
    try:
        found = data_set(name, rows, 3)
    except FileNotFoundError:
        pytest.skip("the tables are not part of the package")
    told = torch.cat([found.told.X, found.told.C], dim=-1)
    assert len(told) == rows and len(found.inputs) == total - rows
    assert len(torch.cat([told, found.inputs]).unique(dim=0)) == total


def test_a_function_of_numbers_is_said_and_known() -> None:
    found = said_and_true("newsvendor_2_1", 30, 2)
    assert found["low"] < found["said"] < found["high"] <= 1.0
    assert 0.2 < found["true"] < 0.8  # a fifth of the variance is noise
    text = explained_report(pd.DataFrame([found]), [2])
    true, said = found["true"], found["said"]
    assert f"| newsvendor_2_1 | 30 | 2 | {true:.2f} | {said:.2f} |" in text
    assert f"| all, by folds | 1 | {said - true:+.3f} |" in text
