"""What a decision costs by surrogate."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.speed import asks
from benchmarks.speed.asks import ENSEMBLE, MEMBERS, QUICK, RECIPES, measure, section


def test_command_writes_its_report(tmp_path: Path) -> None:
    out = tmp_path / "cost.md"
    arguments = ["speed", "surrogates", "--quick", "--repeats", "1", "--out", str(out)]
    assert main(arguments) == 0
    rows = [row for row in out.read_text().splitlines() if " t = " in row]
    assert len(rows) == len(RECIPES) * len(QUICK.outcomes) * len(QUICK.surrogates)


def test_each_repeat_is_timed_once_and_the_first_call_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ticks = iter(range(1000))
    monkeypatch.setattr(asks.time, "process_time", lambda: float(next(ticks)))
    times = measure("erbo", 4, QUICK, repeats=2)
    assert times == {name: [1.0, 1.0] for name in QUICK.surrogates}


def test_the_ensemble_is_judged_by_its_worst_median_ratio() -> None:
    members = {key: [1.0, 2.0, 1.0] for key in MEMBERS}
    cheap = {**members, ENSEMBLE: [2.0, 4.0, 9.0]}
    dear = {**{key: [1.0] for key in MEMBERS}, "matern": [99.0], ENSEMBLE: [5.0]}
    (note,) = section({("erbo", 15): cheap}).notes
    assert "it costs 2 to 2 times: met." in note
    assert note.endswith("it costs 0.5 to 0.5 times that.")  # the median history
    found = section({("erbo", 15): cheap, ("erbo", 100): dear})
    assert "it costs 2 to 5 times: **missed**." in found.notes[0]
    assert found.notes[0].endswith("it costs 0.049 to 0.5 times that.")
    assert found.rows[-1] == [f"erbo, t = 100, {ENSEMBLE}", "5 s", "5"]
