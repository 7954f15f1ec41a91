"""Make the missing runs, evaluate all of them, and report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console

from benchmarks.experiments.claims.cases import CASES
from benchmarks.experiments.claims.judge import judged
from benchmarks.experiments.claims.learn import CHECKPOINTS, LEARNERS, Task
from benchmarks.experiments.claims.report import make_report
from benchmarks.experiments.small_tables import write_study
from benchmarks.run.display import report_failures, run_with_lines, show
from benchmarks.run.storage import (
    RunKey,
    collect_runs,
    load,
    refuse_without,
    rounds_kept,
)
from benchmarks.study.judge import with_the_others

LOSSES, REPORT = "claims.parquet", "claims.md"
_ATTRS = ("commit", "machine", "versions")  # what made the runs of a table
RUN = ["case", "seed", "learner", "told"]
ORDER = [*CASES, *LEARNERS]


def play(
    tasks: Sequence[Task], *, work: Path, out: Path, workers: int, report_only: bool
) -> int:
    """Run what is not there yet, then judge and report on all that is.

    Losses in ``out`` that are of other runs stay.

    Args:
        tasks: Which runs.
        work: The folder of this machine, with a file for each run.
        out: The folder of the table and of the report.
        workers: Processes, each on one thread.
        report_only: Run nothing, and report on the table that is there.

    Returns:
        The exit status: 1 if a run failed.
    """
    console = Console()
    failures: dict[RunKey, BaseException] = {}
    refuse_without(out / LOSSES, out / REPORT)
    if not report_only:
        failures = run_with_lines(tasks, work, workers=workers, console=console)
        kept = {task.key: rounds_kept(work, task.key) for task in tasks}
        kept = {key: n for key, n in kept.items() if n >= CHECKPOINTS[0]}
        rows, about = load(collect_runs(kept, work, {}))
        table = judged(rows, workers)
        table.attrs = {name: about[name] for name in _ATTRS}
        if (out / LOSSES).exists():
            before = pd.read_parquet(out / LOSSES)
            table = with_the_others(table, before, RUN, ORDER)
        table.to_parquet(out / LOSSES, index=False)
        write_study(out)
    table = pd.read_parquet(out / LOSSES)
    show(make_report(table), out / REPORT, console)
    return report_failures(failures)
