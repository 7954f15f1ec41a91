"""Make the missing runs, enter them into the table, and report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.development.learn import Task
from benchmarks.development.report import report
from benchmarks.development.store import Table, judge
from benchmarks.run.config import ConfigError
from benchmarks.run.display import report_failures, run_with_lines
from benchmarks.run.storage import RunKey, collect_runs, load, rounds_kept
from benchmarks.study.judge import judged

REPORT = "report.md"


def play(
    tasks: Sequence[Task], *, work: Path, out: Path, workers: int, command: str
) -> int:
    """Make what is lacking, then report on all runs of the table.

    Args:
        tasks: Which runs; what the table has is not made again.
        work: The folder of this machine, with a file for each run.
        out: The folder of the table and of the report.
        workers: Processes, each on one thread.
        command: What is being done, for the report.

    Returns:
        The exit status: 1 if a run failed.

    Raises:
        ConfigError: There are no runs.
    """
    table, console = Table(out), Console()
    lacking = [task for task in tasks if table.rounds(task) < task.rounds]
    failures: dict[RunKey, BaseException] = {}
    if lacking:
        failures = run_with_lines(lacking, work, workers=workers, console=console)
        kept = {task.key: rounds_kept(work, task.key) for task in lacking}
        made = {t.key: kept[t.key] for t in lacking if kept[t.key] >= t.rounds}
        if made:
            rows, _ = load(collect_runs(made, work, {}))
            table.add(judged(rows, judge, workers)["runs"])
            table.write()
    if not table.rows():
        raise ConfigError("There are no runs yet: leave out --report.")
    text = report(table.rows(), command)
    (out / REPORT).write_text(text, encoding="utf-8")
    console.print(text, markup=False, soft_wrap=True)
    return report_failures(failures)
