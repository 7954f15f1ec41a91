"""What a person sees while a benchmark runs, and at its end."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from rich.console import Console

from benchmarks.run.config import BenchmarkConfig
from benchmarks.run.page import write_report
from benchmarks.run.report import print_tables
from benchmarks.run.runner import Finished, run_benchmark
from benchmarks.run.storage import RESULTS, RunKey, collect


class Clock:
    """Counts what is done, and guesses when the rest will be.

    Args:
        total: How many there are.
    """

    def __init__(self, total: int) -> None:
        self.total, self.done = total, 0
        self._start = time.perf_counter()

    def tick(self) -> str:
        """One more is done: ``[12/64, 3 min left]``."""
        self.done += 1
        spent = time.perf_counter() - self._start
        left = spent / self.done * (self.total - self.done)
        return f"[{self.done}/{self.total}, {duration(left)} left]"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, as one says it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def run_and_report(
    config: BenchmarkConfig, out: Path, *, workers: int, dask: str | None = None
) -> int:
    """Run a benchmark, print its tables, say where the files are.

    Returns:
        The exit status: 1 if a run failed.
    """
    console = Console()
    failures = run_with_lines(config, out, workers=workers, dask=dask, console=console)
    if any((out / "runs").glob("*/*/*.parquet")):  # else there is no table
        collect(config, out)
        print_tables(out, console)
        page = write_report([out], out)
        console.print(f"Report: {page}; all rounds: {out / RESULTS}", soft_wrap=True)
    return report_failures(failures)


def run_with_lines(
    config: BenchmarkConfig,
    out: Path,
    *,
    workers: int,
    console: Console,
    dask: str | None = None,
) -> dict[RunKey, BaseException]:
    """Run a benchmark, with one line for each run that ends."""
    start = time.perf_counter()
    clock: list[Clock] = []

    def on_finished(finished: Finished) -> None:
        if not clock:
            clock.append(Clock(finished.total))
        text = f"{clock[0].tick()} {finished.key}: "
        if finished.run is not None:
            seconds = sum(row["seconds"] for row in finished.run.rows)
            text += f"regret {finished.run.cumulative:.4g}, {duration(seconds)}"
        if finished.error is not None:
            text += f" FAILED: {type(finished.error).__name__}: {finished.error}"
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    failures = run_benchmark(
        config, out, workers=workers, dask=dask, on_finished=on_finished
    )
    total = len(config.problems) * len(config.algorithms) * len(config.seeds)
    made = clock[0].done if clock else 0
    console.print(
        f"{made} of {total} runs were not there yet; "
        f"{duration(time.perf_counter() - start)}."
    )
    return failures


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
