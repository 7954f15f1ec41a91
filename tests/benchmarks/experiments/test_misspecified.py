"""The experiment on functions that no model of the kernel is right about."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.experiments import misspecified
from benchmarks.experiments.misspecified import EPSILONS, METHODS, Task
from benchmarks.run.config import ConfigError


def test_without_an_error_the_variants_are_one_run():
    runs = {Task.of(m, "bumps", 0.0, 1) for m in METHODS}
    assert {task.method for task in runs} == set(METHODS) - set(misspecified.SHARES)
    assert {task.kind for task in runs} == {"waves"}
    assert Task.of("ec_gp_ucb, half", "bumps", 0.1, 1).method == "ec_gp_ucb, half"


@pytest.mark.parametrize("method", ["ec_gp_ucb, half", "phased_gp_us"])
def test_a_killed_run_goes_on_as_it_would_have(method: str, tmp_path: Path):
    task = Task(method, "bumps", 0.3, 0)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert misspecified.run_task(task, whole, 8) == 8
    assert misspecified.run_task(task, killed, 5) == 5
    assert misspecified.run_task(task, killed, 8) == 3
    assert misspecified.run_task(task, killed, 8) == 0
    positions = [
        [d.position for d in misspecified.load(task, p)] for p in (whole, killed)
    ]
    assert positions[0] == positions[1]


def test_known_error_reaches_the_recipe_in_its_share():
    values = torch.tensor([-1.0, 2.0])
    for method, share in misspecified.SHARES.items():
        name, options = Task(method, "waves", 0.3, 0).options(values, 10)
        assert name == "ec_gp_ucb"
        assert options["misspecification"] == pytest.approx(share * 0.3)
    assert (
        Task("gp_ucb", "waves", 0.3, 0).options(values, 10)[1]["misspecification"] == 0
    )
    _, options = Task("regret_balancing", "waves", 0.3, 0).options(values, 10)
    assert options["reward_range"] == (-1.5, 2.5)


@pytest.mark.slow
def test_command_reports_regrets(tmp_path: Path):
    line = ["misspecified", "--seeds", "2", "--iterations", "3", "--workers", "1"]
    assert main([*line, "--out", str(tmp_path)]) == 0
    found = misspecified.collect(tmp_path, 2, 3, misspecified.KINDS)
    assert len(found) == 2 * len(EPSILONS)
    for by_method in found.values():
        assert list(by_method) == list(METHODS)
        for regret in by_method.values():
            assert regret.shape == (2, 3) and bool((regret >= 0).all())
    text = (tmp_path / "table.md").read_text()
    assert text.count("| random |") == 2
    assert (tmp_path / "regret.png").stat().st_size > 1000


def test_counts_must_be_positive(tmp_path: Path):
    with pytest.raises(ConfigError, match="seeds"):
        misspecified.run_misspecified(tmp_path, seeds=0, iterations=1)
