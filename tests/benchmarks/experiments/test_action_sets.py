"""The experiment in which each round offers other decisions."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.experiments.action_sets import METHODS, NUM_DESIGN, Task
from benchmarks.experiments.misspecified import collect
from benchmarks.run.engine import make_run
from benchmarks.run.storage import load


def test_regret_is_against_the_best_of_the_round() -> None:
    task = Task("random", "waves", 0.3, 2, 6)
    function = task.bandit.function
    positions = [3, 0, 19, 7, 7, 1]
    by_hand = []
    for step, position in enumerate(positions):
        values = [
            function.expected_value(row.unsqueeze(0)).item()
            for row in task.actions[NUM_DESIGN + step]
        ]
        by_hand.append(max(values) - values[position])
    assert task.regret(positions).tolist() == pytest.approx(by_hand, abs=1e-12)
    total = task.bandit.regret(task.history(positions).X[4:], task.actions[4:])
    assert total[-1].item() == pytest.approx(sum(by_hand), abs=1e-12)


def test_all_methods_meet_the_same_world() -> None:
    first, second = (Task(m, "bumps", 0.1, 1, 5) for m in ("random", "gp_ucb"))
    assert torch.equal(first.actions, second.actions)
    same = first.history([4, 4]).Y, second.history([4, 9]).Y
    assert torch.equal(same[0][:-1], same[1][:-1])  # also the noise, round by round


def test_a_killed_run_goes_on_as_it_would_have() -> None:
    task = Task("regret_balancing, own guesses", "bumps", 0.3, 0, 9)
    whole = make_run(task).rows
    rest = make_run(task, whole[:4]).rows
    positions = [row["position"] for row in whole]
    assert [row["position"] for row in rest] == positions
    assert [row["regret"] for row in rest] == task.regret(positions).tolist()


def test_without_an_error_the_one_that_knows_it_is_gp_ucb() -> None:
    assert Task.of("ec_gp_ucb", "bumps", 0.0, 1, 5) == Task(
        "gp_ucb", "waves", 0.0, 1, 5
    )


@pytest.mark.slow
def test_command_reports_regrets_and_plays(tmp_path: Path) -> None:
    line = ["action_sets", "--size", "smoke", "--workers", "1", "--out", str(tmp_path)]
    assert main(line) == 0
    rows, _ = load(tmp_path)
    found = collect(rows, METHODS, lambda *run: Task.of(*run, 5).key)
    for by_method in found.values():
        assert list(by_method) == list(METHODS)
        for regret in by_method.values():
            assert regret.shape == (1, 5) and bool((regret >= 0).all())
    text = (tmp_path / "table.md").read_text()
    assert "| own guesses | waves | 0.3: 20%, 0.1: 20%, 0.03: 20%, 0: 40% |" in text
    assert (tmp_path / "regret.png").stat().st_size > 1000
