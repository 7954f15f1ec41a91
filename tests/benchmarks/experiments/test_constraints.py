"""The experiment on outcome constraints: its judgement, its table, one short run."""

from __future__ import annotations

import pytest
import torch

from benchmarks.experiments import constraints
from benchmarks.experiments.constraints import LEVEL, METHODS, RADIUS, Outcome
from benchmarks.problems import Reservoir


def test_a_decision_is_judged_by_the_closed_forms() -> None:
    function = Reservoir(noise_std=0.1)
    best = function.constrained_optimum(LEVEL, RADIUS)
    found = constraints.judged(function, torch.tensor(best.decision).double(), 0.5)
    assert found.robust == pytest.approx(LEVEL, abs=1e-6)
    # Room for .9: nine tenths of the uniform inflows, and no flood.
    assert found.true == pytest.approx(0.81, abs=2e-3)
    assert found.value == pytest.approx(best.value, abs=1e-3) and found.met == 0.5


def test_the_table_counts_what_reaches_the_level() -> None:
    outcomes = [Outcome(0.80, 0.81, 0.5, 1.0), Outcome(0.7, 0.81, 0.6, 0.9)]
    text = str(constraints.report(dict.fromkeys(METHODS, outcomes), 10))
    assert "| robust | 0.750 ± 0.050 | 0.81 | 0.550 ± 0.050 | 1 of 2 |" in text
    assert "`python -m benchmarks constraints --seeds 2 --rounds 10`" in text


@pytest.mark.slow
def test_a_short_run(tmp_path) -> None:
    out = tmp_path / "new" / "constraints.md"
    assert constraints.run_constraints(out, seeds=1, rounds=1) == 0
    rows = out.read_text().splitlines()
    assert sum(row.startswith(f"| {m} |") for m in METHODS for row in rows) == 3
