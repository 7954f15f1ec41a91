"""The bounds of theorems beside the regrets that they bound.

Kernel, noise and norm are known, as the theorems ask: EC-GP-UCB with an error of the
model (Theorem 1 of the third paper), and WDRBO with a reference that is wrong (Theorems
4 and 5 of the first).
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmarks.experiments.bounds import ec_gp_ucb, wdrbo
from benchmarks.run.config import check_counts
from benchmarks.run.display import run_experiment
from benchmarks.run.report import Report


def run_bounds(out: Path, *, seeds: int, iterations: int, workers: int = 1) -> int:
    """Run what is not there yet, then report on it.

    Returns:
        The exit status: 1 if a run failed.

    Raises:
        ConfigError: A count that is not positive.
    """
    check_counts(seeds=seeds, iterations=iterations)
    tasks = [
        task
        for seed in range(seeds)
        for task in (
            *ec_gp_ucb.tasks(seed, iterations),
            *wdrbo.tasks(seed, iterations),
        )
    ]
    return run_experiment(tasks, report, out / "table.md", out=out, workers=workers)


def report(rows: pd.DataFrame) -> Report:
    """How far each bound is above the regret, and pictures."""
    seeds, rounds = rows["seed"].nunique(), rows["iteration"].nunique()
    command = f"`python -m benchmarks bounds --seeds {seeds} --iterations {rounds}`."
    parts = [ec_gp_ucb.report(rows), wdrbo.report(rows)]
    return Report(
        "The bounds of theorems beside the regret",
        [command, *(block for part in parts for block in part.blocks)],
        {name: part.figures[name] for part in parts for name in part.figures},
    )
