"""Do parallel decisions with a minimum distance have less regret?

The same confidence bound on three problems, always with the same number of outcomes:
decision by decision, and in batches whose decisions see the earlier ones as pending.
For these the variance shrinks (*hallucinated*, the rule of version 0.1.0), and now they
also repel each other where it does not (*repelled*).
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmarks.experiments.batches import (
    BY_LABEL,
    INITIAL,
    MEASURES,
    ONE_BY_ONE,
    REPELLED,
    Task,
    by_seed,
)
from benchmarks.run.config import check_counts
from benchmarks.run.display import run_experiment
from benchmarks.run.report import Report, Table, estimate

PROBLEMS = ("branin_2_2", "ackley_2_1", "newsvendor")
HALLUCINATED = BY_LABEL["UCB, hallucinated"]


def run_pending(out: Path, *, seeds: int, rounds: int, q: int, workers: int = 1) -> int:
    """Run all seeds; the runs are kept in a folder beside the page.

    Returns:
        The exit status: 1 if a run failed.
    """
    check_counts(seeds=seeds, rounds=rounds, q=q)
    tasks = [
        Task(problem, method.label, seed, rounds * q // k, k)
        for seed in range(seeds)
        for problem in PROBLEMS
        for method, k in ((ONE_BY_ONE, 1), (HALLUCINATED, q), (REPELLED, q))
    ]

    def made(rows: pd.DataFrame) -> Report:
        return report(rows, q)

    return run_experiment(tasks, made, out, out=out.with_suffix(""), workers=workers)


def report(rows: pd.DataFrame, q: int) -> Report:
    """The table."""
    # Compared after equal numbers of outcomes: each round of one by one is a q-th.
    alone = rows.algorithm == ONE_BY_ONE.label
    rounds = int(rows.iteration[~alone].max()) + 1
    compared = rows.assign(
        regret=rows.regret.where(~alone | (rows.iteration % q == q - 1))
    )
    table, differences = [], []
    for problem, group in compared.groupby("problem", sort=False):
        for label, own in group.groupby("algorithm", sort=False):
            found = by_seed(group, str(label))
            gap = "" if label == ONE_BY_ONE.label else f"{own.gap.median():.2g}"
            table.append([str(problem), str(label), *_cells(found), gap])
        new, old = (by_seed(group, m.label) for m in (REPELLED, HALLUCINATED))
        cells = [str(problem), "repelled - hallucinated", *_cells(new - old), ""]
        differences.append(cells)
    head = ["problem", "method", "regret at the end", "mean over rounds"]
    head += ["regret of the decisions", "nearest two, in sides"]
    seeds = rows.seed.nunique()
    return Report(
        "Pending decisions",
        [
            f"`python -m benchmarks batches --pending --seeds {seeds} --rounds "
            f"{rounds} --q {q}`",
            f"{INITIAL} random decisions, then {rounds * q} in batches of {q} or one "
            f"by one; {seeds} seeds, paired. Mean ± standard error.",
            Table(head, [*table, *differences], left=2),
        ],
    )


def _cells(frame: pd.DataFrame) -> list[str]:
    return [str(estimate(frame[name].tolist())) for name in MEASURES]
