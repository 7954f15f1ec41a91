"""Both sides of each goal answer; what they cost is no matter of a test."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from benchmarks.__main__ import main
from benchmarks.speed.contexts import Question
from benchmarks.speed.goals import GOALS, exponent


def test_the_exponent_is_that_of_a_power() -> None:
    assert exponent(2.0 * 10.0**1.5, 2.0) == pytest.approx(1.5)


def test_contexts_are_as_many_and_of_such_kinds_as_is_said() -> None:
    history, space = Question("ask", 7, d_c=2, levels=4).data(0)
    assert history.contexts.shape == (7, 3)
    assert space.context_categories == {2: 4}


@pytest.mark.filterwarnings("ignore")  # BoTorch's and Optuna's own
def test_the_table_has_a_line_for_each_goal(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    out = tmp_path / "goals.md"
    line = ["speed", "goals", "--quick", "--repeats", "1", "--out", str(out)]
    assert main(line) == 0
    table, text = pd.read_csv(out.with_suffix(".csv")), out.read_text()
    assert table["what"].tolist() == [goal.what for goal in GOALS]
    assert table[["seconds", "against"]].to_numpy().min() > 0.0
    met = table["ratio"].to_numpy() <= table["at_most"].to_numpy()
    assert table["met"].tolist() == met.tolist()
    assert text.count('<span style="color: red">missed</span>') == (~met).sum()
