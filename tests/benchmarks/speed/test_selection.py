"""Both sides of the selection benchmark choose alike, and are timed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.speed import selection
from benchmarks.speed.selection import (
    NOISE,
    QUICK,
    choose_from_scratch,
    measure_episode,
    measure_maximum_gain,
)
from botorch_drbo.confidence.information_gain import GreedyVariance


def test_from_scratch_is_the_greedy_choice() -> None:
    candidates = selection._uniform(50, 2)
    greedy = GreedyVariance(selection._kernel(), candidates, NOISE)
    expected = candidates[greedy.extend(12)]
    actual = choose_from_scratch(selection._kernel(), candidates, 12, NOISE)
    assert torch.equal(actual, expected)


@pytest.mark.parametrize("measure", [measure_maximum_gain, measure_episode])
def test_measured_and_judged(measure, monkeypatch: pytest.MonkeyPatch) -> None:
    line = measure(QUICK, 1)
    assert "times as fast" in line.result and line.target.endswith("met")
    monkeypatch.setattr(selection, "LIMIT", 0.0)
    assert measure(QUICK, 1).target == "under 0 s: missed"


def test_different_choices_stop_the_measurement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        selection,
        "choose_from_scratch",
        lambda kernel, rows, num, noise: rows[:1],
    )
    with pytest.raises(AssertionError, match="not close"):
        measure_maximum_gain(QUICK, 1)


def test_command_writes_its_report(tmp_path: Path) -> None:
    out = tmp_path / "folder" / "selection.md"
    line = ["speed", "selection", "--quick", "--repeats", "1", "--out", str(out)]
    assert main(line) == 0
    assert out.read_text().count("times as fast") == 2
