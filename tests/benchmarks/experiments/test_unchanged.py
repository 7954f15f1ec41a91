"""Which recorded answers have changed since a result was made."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path

import pytest

from benchmarks.experiments import unchanged
from benchmarks.experiments.unchanged import TOLERANCE, _cells, changes

RESULTS = Path(unchanged.__file__).parents[1] / "results"


def hexadecimal(*numbers: float) -> list[str]:
    return [number.hex() for number in numbers]


def test_an_answer_that_moved_by_more_than_rounding_has_changed() -> None:
    then = {
        "a": {
            "same": hexadecimal(1.0, 2.0),
            "near": hexadecimal(1.0),
            "new words": "x",
        },
        "b": {"moved": hexadecimal(1.0, 2.0), "longer": hexadecimal(1.0), "gone": "x"},
    }
    today = {
        "a": {
            "same": hexadecimal(1.0, 2.0),
            "near": hexadecimal(1.0 + TOLERANCE / 2),
            "new words": "y",
        },
        "b": {"moved": hexadecimal(1.5, 2.25), "longer": hexadecimal(1.0, 1.0)},
        "c": {"new": "x"},
    }
    compared, changed = changes(then, today)
    assert compared == 5
    assert list(changed) == ["a", "b"]
    assert [math.isnan(each) for each in changed["a"]] == [True]
    assert changed["b"][0] == 0.5
    assert math.isnan(changed["b"][1])
    assert _cells(then, today) == [
        "5 of 6",
        "`a` 1 of 3, in words or number, `b` 2 of 3, in words or number",
    ]
    moved = {"b": {"moved": hexadecimal(1.5, 2.0)}}
    assert _cells({"b": then["b"]}, moved) == ["1 of 3", "`b` 1 of 3, by up to 0.5"]
    assert _cells(then, then) == ["6", "none"]


def test_every_committed_result_is_in_the_table() -> None:
    table = (RESULTS / "unchanged.md").read_text(encoding="utf-8")
    names = [name for name, _ in unchanged._commits(RESULTS)]
    assert len(names) == 14 + 6
    for name in names:
        assert f"`{name}`" in table


def test_a_commit_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def failed(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], 128, "", "fatal")

    monkeypatch.setattr(subprocess, "run", failed)
    with pytest.raises(unchanged.ConfigError, match="needs a whole clone"):
        unchanged._date_of("abc")
