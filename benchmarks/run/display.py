"""The output of an experiment while it runs and at its end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pandas as pd
from rich.console import Console

from benchmarks.run.config import BenchmarkConfig, ConfigError, check_counts
from benchmarks.run.engine import Finished, Task, run_tasks
from benchmarks.run.page import SUMMARY, make_report
from benchmarks.run.parallel import in_parallel
from benchmarks.run.report import Report
from benchmarks.run.runner import tasks_of
from benchmarks.run.storage import (
    RunKey,
    collect,
    collect_runs,
    load,
    refuse_to_lose,
)


class Clock:
    """Counts what is done from now on, and guesses when the rest will be."""

    def __init__(self) -> None:
        self.done = 0
        self._start = time.perf_counter()

    @property
    def spent(self) -> float:
        """The seconds since it was made."""
        return time.perf_counter() - self._start

    def tick(self, total: int) -> str:
        """One more of so many is done: ``[12/64, 3 min left]``."""
        self.done += 1
        left = self.spent / self.done * (total - self.done)
        return f"[{self.done}/{total}, {duration(left)} left]"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, as one says it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def run_config(
    config: BenchmarkConfig, out: Path, *, workers: int, dask: str | None = None
) -> int:
    """Run a benchmark and report on what has finished.

    Returns:
        The exit status: 1 if a run failed.
    """
    console, tasks = Console(), tasks_of(config, out)
    failures = run_with_lines(tasks, out, workers=workers, dask=dask, console=console)
    if len(failures) < len(tasks):
        collect(config, out)
        show(make_report([out]), out / SUMMARY, console)
    return report_failures(failures)


def run_seeds(
    tasks: Callable[[int, int], Sequence[Task]],
    report: Callable[[pd.DataFrame], Report],
    out: Path,
    *,
    seeds: int,
    iterations: int,
    workers: int = 1,
) -> int:
    """Run what is not there yet, seed by seed, then report on it in ``table.md``.

    Args:
        tasks: The runs of a seed, given it and how many rounds they have.
        report: What is made of their rows.
        out: The results folder.
        seeds: How many, from 0 on.
        iterations: The rounds of a run.
        workers: Processes, each on one thread.

    Returns:
        The exit status: 1 if a run failed.

    Raises:
        ConfigError: A count that is not positive.
    """
    check_counts(seeds=seeds, iterations=iterations)
    every = [task for seed in range(seeds) for task in tasks(seed, iterations)]
    return run_experiment(every, report, out / "table.md", out=out, workers=workers)


def run_experiment(
    tasks: Sequence[Task],
    report: Callable[[pd.DataFrame], Report],
    page: Path,
    *,
    out: Path,
    workers: int,
) -> int:
    """Run an experiment and report on the seeds of which all runs have finished.

    Args:
        tasks: All runs.
        report: What is made of their rows.
        page: Where it is written.
        out: The results folder.
        workers: Processes, each on one thread.

    Returns:
        The exit status: 1 if a run failed.
    """
    console = Console()
    failures = run_with_lines(tasks, out, workers=workers, console=console)
    failed = {key.seed for key in failures}
    whole = {t.key: t.rounds for t in tasks if t.key.seed not in failed}
    if whole:
        rows, _ = load(collect_runs(whole, out, {}))
        show(report(rows), page, console)
    return report_failures(failures)


def show(report: Report, page: Path, console: Console) -> None:
    """Write a report, print it, and say where it is."""
    report.write(page)
    console.print(str(report), markup=False, highlight=False, soft_wrap=True)
    console.print(f"Report: {page}", soft_wrap=True)


def run_with_lines(
    tasks: Sequence[Task],
    out: Path,
    *,
    workers: int,
    console: Console,
    dask: str | None = None,
) -> dict[RunKey, BaseException]:
    """Run what is not kept yet, with one line for each run that ends.

    Raises:
        ConfigError: Rounds were collected there that no run has any more.
    """
    refuse_to_lose(out)
    clock = Clock()

    def on_finished(finished: Finished) -> None:
        text = f"{clock.tick(finished.total)} {finished.key}: "
        if finished.run is not None:
            rows = finished.run.rows
            if "regret" in rows[0]:
                text += f"regret {sum(row['regret'] for row in rows):.4g}, "
            text += duration(sum(row["seconds"] for row in rows))
        if finished.error is not None:
            text += f" FAILED: {type(finished.error).__name__}: {finished.error}"
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    failures = run_tasks(
        tasks, out, workers=workers, dask=dask, on_finished=on_finished
    )
    total = len({task.key for task in tasks})
    console.print(
        f"{clock.done} of {total} runs were not there yet; {duration(clock.spent)}."
    )
    return failures


def run_all(
    work: Mapping[str, Callable[[], object]], workers: int, console: Console
) -> None:
    """Do work that keeps its own results, with one line for each piece that ends.

    Args:
        work: Name -> what to do; must be picklable.
        workers: How many processes; 1 for this one.
        console: Where to tell.

    Raises:
        ConfigError: ``workers`` is not positive, or pieces of the work failed; the
            others are done then.
    """
    failures, clock = {}, Clock()
    for name, outcome in in_parallel(work, workers=workers):
        failed = isinstance(outcome, BaseException)
        if failed:
            failures[name] = outcome
        text = f"failed: {outcome!r}" if failed else "done"
        console.print(
            f"{clock.tick(len(work))} {name}: {text}", markup=False, soft_wrap=True
        )
    if failures:
        raise ConfigError(
            f"{len(failures)} of {len(work)} runs failed, the first with "
            f"{next(iter(failures.values()))!r}. The others are kept: the same command "
            "tries these again."
        )


def report_failures(failures: Mapping[RunKey, BaseException]) -> int:
    """Print what failed; the exit status."""
    for key, error in failures.items():
        print(f"error: {key}: {type(error).__name__}: {error}", file=sys.stderr)
    if failures:
        print(
            "The other runs are kept. Run the same command to try these again.",
            file=sys.stderr,
        )
    return int(bool(failures))


def working(console: Console, what: str) -> AbstractContextManager[object]:
    """Say what is being done while it is: a spinner, or a line without a terminal."""
    if console.is_terminal:
        return console.status(what)
    console.print(f"{what} ...", soft_wrap=True)
    return nullcontext()
