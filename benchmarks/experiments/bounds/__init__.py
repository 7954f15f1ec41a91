"""The bounds of theorems beside the regrets that they bound.

Kernel, noise and norm are known, as the theorems ask: EC-GP-UCB with an error of the
model (Theorem 1 of the third paper), and WDRBO with a reference that is wrong (Theorems
4 and 5 of the first).
"""

from __future__ import annotations

import pandas as pd

from benchmarks.experiments.bounds import ec_gp_ucb, wdrbo
from benchmarks.run.engine import Task
from benchmarks.run.report import Report


def tasks(seed: int, rounds: int) -> list[Task]:
    """The runs of a seed."""
    return [*ec_gp_ucb.tasks(seed, rounds), *wdrbo.tasks(seed, rounds)]


def report(rows: pd.DataFrame) -> Report:
    """How far each bound is above the regret, and pictures."""
    seeds, rounds = rows["seed"].nunique(), rows["iteration"].nunique()
    command = f"`python -m benchmarks bounds --seeds {seeds} --iterations {rounds}`."
    parts = [ec_gp_ucb.report(rows), wdrbo.report(rows)]
    return Report(
        "The bounds of theorems beside the regret",
        [command, *(block for part in parts for block in part.blocks)],
        {name: part.figures[name] for part in parts for name in part.figures},
        {wdrbo.THEOREMS: wdrbo.theorems(rows)},
    )
