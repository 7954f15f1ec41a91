"""Make the missing runs, evaluate all of them, and report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pyarrow import parquet
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
    run_file,
)

LOSSES, REPORT = "claims.parquet", "claims.md"
_ATTRS = ("commit", "machine", "versions")  # what made the runs of a table


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
        rows, about = load(collect_runs(_lengths(tasks, work), work, {}))
        table = judged(rows, workers)
        table.attrs = {name: about[name] for name in _ATTRS}
        if (out / LOSSES).exists():
            table = with_the_others(table, pd.read_parquet(out / LOSSES))
        table.to_parquet(out / LOSSES, index=False)
        write_study(out)
    table = pd.read_parquet(out / LOSSES)
    show(make_report(table), out / REPORT, console)
    return report_failures(failures)


def with_the_others(table: pd.DataFrame, before: pd.DataFrame) -> pd.DataFrame:
    """The losses of these runs, and others that were there before.

    These are of other runs, or of more outcomes of the same runs.

    Args:
        table: Of ``judged``.
        before: The same of an earlier call, perhaps of other learners or cases.

    Returns:
        By case and seed; its ``attrs`` have each commit, machine and version once.
    """
    run = ["case", "seed", "learner", "told"]
    made = table.set_index(run).index
    others: Any = before[~before.set_index(run).index.isin(made)]
    found: Any = pd.concat([others, table])
    places = {name: place for place, name in enumerate([*CASES, *LEARNERS])}
    found = found.sort_values(
        run, key=lambda column: column.replace(places), kind="stable"
    )
    earlier = before.attrs if len(others) else {}
    found.attrs = {
        name: [*(old := earlier.get(name, [])), *(e for e in new if e not in old)]
        for name, new in table.attrs.items()
    }
    return found.reset_index(drop=True)


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
