"""The experiment on functions that no model of the kernel is right about."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.experiments import misspecified
from benchmarks.experiments.misspecified import EPSILONS, METHODS, Task
from benchmarks.run.config import ConfigError
from benchmarks.run.display import run_seeds
from benchmarks.run.engine import make_run
from benchmarks.run.storage import load


def test_without_an_error_the_variants_are_one_run():
    runs = {Task.of(m, "bumps", 0.0, 1, 5) for m in METHODS}
    assert {task.method for task in runs} == set(METHODS) - set(misspecified.SHARES)
    assert {task.kind for task in runs} == {"waves"}
    assert Task.of("ec_gp_ucb, half", "bumps", 0.1, 1, 5).method == "ec_gp_ucb, half"


@pytest.mark.parametrize("method", ["ec_gp_ucb, half", "phased_gp_us"])
def test_a_killed_run_goes_on_as_it_would_have(method: str):
    task = Task(method, "bumps", 0.3, 0, 8)
    whole = make_run(task).rows
    rest = make_run(task, whole[:5]).rows
    assert [row["position"] for row in rest] == [row["position"] for row in whole]
    assert [row["regret"] for row in rest] == [row["regret"] for row in whole]


def test_regret_is_that_to_the_best_of_the_grid():
    task = Task("random", "waves", 0.3, 2, 3)
    values = task.function().expected_value(misspecified.grid())
    for row in make_run(task).rows:
        assert row["regret"] == (values.max() - values[row["position"]]).item()


def test_a_recipe_that_is_told_the_horizon_has_another_run_for_another():
    headers = [
        [Task(m, "waves", 0.1, 0, n).header() for n in (5, 6)]
        for m in ("regret_balancing", "gp_ucb")
    ]
    assert [short == long for short, long in headers] == [False, True]


def test_known_error_reaches_the_recipe_in_its_share():
    values = torch.tensor([-1.0, 2.0])
    for method, share in misspecified.SHARES.items():
        name, options = Task(method, "waves", 0.3, 0, 10).options(values)
        assert name == "ec_gp_ucb"
        assert options["misspecification"] == pytest.approx(share * 0.3)
    assert (
        Task("gp_ucb", "waves", 0.3, 0, 10).options(values)[1]["misspecification"] == 0
    )
    _, options = Task("regret_balancing", "waves", 0.3, 0, 10).options(values)
    assert options["reward_range"] == (-1.5, 2.5)
    own = "regret_balancing, own guesses"
    name, other = Task(own, "waves", 0.3, 0, 10).options(values)
    assert name == "regret_balancing"
    assert other == options | {"misspecifications": misspecified.OWN_GUESSES}


@pytest.mark.slow
def test_command_reports_regrets(tmp_path: Path):
    line = ["misspecified", "--seeds", "2", "--iterations", "3", "--workers", "1"]
    assert main([*line, "--out", str(tmp_path)]) == 0
    rows, _ = load(tmp_path)
    found = misspecified.collect(rows, METHODS, lambda *run: Task.of(*run, 3).key)
    assert len(found) == 2 * len(EPSILONS)
    for by_method in found.values():
        assert list(by_method) == list(METHODS)
        for regret in by_method.values():
            assert regret.shape == (2, 3) and bool((regret >= 0).all())
    text = (tmp_path / "table.md").read_text()
    assert text.count("| random |") == 2
    assert (tmp_path / "regret.png").stat().st_size > 1000


@pytest.mark.parametrize(("seeds", "iterations"), [(0, 1), (1, 0)])
def test_counts_must_be_positive(tmp_path: Path, seeds: int, iterations: int):
    with pytest.raises(ConfigError, match="iterations" if seeds else "seeds"):
        run_seeds(
            misspecified.tasks,
            misspecified.report,
            tmp_path,
            seeds=seeds,
            iterations=iterations,
        )
