"""Make the missing runs, evaluate all of them, and report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from pyarrow import parquet
from rich.console import Console

from benchmarks.experiments.claims.judge import judged
from benchmarks.experiments.claims.learn import CHECKPOINTS, Task
from benchmarks.experiments.claims.report import make_report
from benchmarks.run.display import report_failures, run_with_lines, show
from benchmarks.run.storage import RunKey, collect_runs, load, run_file

LOSSES, REPORT = "claims.parquet", "claims.md"


def play(
    tasks: Sequence[Task], *, work: Path, out: Path, workers: int, report_only: bool
) -> int:
    """Run what is not there yet, then judge and report on all that is.

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
    if not report_only:
        failures = run_with_lines(tasks, work, workers=workers, console=console)
        rows, about = load(collect_runs(_lengths(tasks, work), work, {}))
        table = judged(rows, workers)
        table.attrs = {name: about[name] for name in ("commit", "machine", "versions")}
        table.to_parquet(out / LOSSES, index=False)
    table = pd.read_parquet(out / LOSSES)
    show(make_report(table), out / REPORT, console)
    return report_failures(failures)


def _lengths(tasks: Sequence[Task], work: Path) -> dict[RunKey, int]:
    """The runs that have a recommendation, and how many outcomes they have."""
    found = {}
    for task in tasks:
        path = run_file(work, task.key)
        if path.exists():
            number = parquet.read_metadata(path).num_rows
            if number >= CHECKPOINTS[0]:
                found[task.key] = number
    return found
