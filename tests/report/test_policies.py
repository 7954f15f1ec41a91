"""Which values of a context a table of decisions is made for."""

from __future__ import annotations

import pytest
import torch

from botorch_drbo.report.findings import looked_up
from botorch_drbo.space import Category, Continuous, Integer, Log, Ordinal


def test_lists_are_looked_up_whole() -> None:
    anything = torch.zeros(3)
    assert looked_up(Category(["dry", "wet"]), anything) == ["dry", "wet"]
    levels = [f"substrate {i}" for i in range(11)]
    assert looked_up(Category(levels), anything) == levels
    assert looked_up(Integer(2, 5), anything) == [2, 3, 4, 5]
    assert looked_up(Ordinal([1, 2.5, 4]), anything) == [1.0, 2.5, 4.0]


def test_numbers_lie_between_those_expected_and_are_rounded() -> None:
    expected = torch.tensor([7.31849, 11.9012, 10.0], dtype=torch.double)
    found = looked_up(Continuous(0, 30), expected)
    assert found == pytest.approx([7.32, 8.46, 9.61, 10.76, 11.9], abs=1e-9)
    whole = looked_up(Integer(0, 1000), torch.tensor([10.0, 500.0]))
    assert whole[0] == 10 and whole[-1] == 500 and len(whole) == 5
    logs = torch.tensor([0.01, 1.0], dtype=torch.double).log()
    steps = looked_up(Log(0.001, 10.0), logs)
    assert steps == pytest.approx([0.01, 10**-1.5, 0.1, 10**-0.5, 1.0])
    assert looked_up(Continuous(0, 30), torch.full((4,), 7.5)) == [7.5]
