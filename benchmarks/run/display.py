"""What a person sees while a benchmark runs, and at its end."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from benchmarks.run.config import BenchmarkConfig
from benchmarks.run.report import rich_table, warning_notes, write_report
from benchmarks.run.runner import Failure, OnProgress, Progress, run_benchmark
from benchmarks.run.storage import load_runs


def run_and_report(config: BenchmarkConfig, out: Path, *, jobs: int) -> int:
    """Run a benchmark under a progress bar, print its table, say where the files are.

    Returns:
        The exit status: 1 if a run failed.
    """
    console = Console()
    failures = run_with_bars(config, out, jobs=jobs, console=console)
    if len(failures) < len(config.algorithms) * len(config.seeds):  # else no table
        console.print(rich_table(config, write_report(config, out)))
        for note in warning_notes(load_runs(config, out)):
            console.print(note, style="dim")
        console.print(f"Table, numbers and plot: {out}")
    return report_failures(failures)


def run_with_bars(
    config: BenchmarkConfig, out: Path, *, jobs: int, console: Console
) -> list[Failure]:
    """Run a benchmark under one progress bar per algorithm.

    Without a terminal (a pipe, a file) a bar would be drawn at its end only: there each
    tenth of the work is a line.
    """
    start = time.perf_counter()
    show = _bars if console.is_terminal else _lines
    with show(config, console) as on_progress:
        failures = run_benchmark(config, out, jobs=jobs, on_progress=on_progress)
    console.print(f"{time.perf_counter() - start:.0f} s on {jobs} processes.")
    return failures


def report_failures(failures: list[Failure]) -> int:
    """Print what failed; the exit status."""
    for failure in failures:
        print(
            f"error: {failure.label}, seed {failure.seed}: "
            f"{type(failure.error).__name__}: {failure.error}",
            file=sys.stderr,
        )
    if failures:
        print(
            "The other runs are finished. Run the same command to try these again.",
            file=sys.stderr,
        )
    return int(bool(failures))


def working(console: Console, what: str) -> AbstractContextManager[object]:
    """Say what is being done while it is: a spinner, or a line without a terminal."""
    if console.is_terminal:
        return console.status(what)
    console.print(f"{what} ...", soft_wrap=True)
    return nullcontext()


@contextmanager
def _lines(config: BenchmarkConfig, console: Console) -> Iterator[OnProgress]:
    start, total = time.perf_counter(), config.iterations * len(config.seeds)
    done: dict[tuple[str, int], int] = {}
    tenths = {algorithm.label: 0 for algorithm in config.algorithms}

    def on_progress(progress: Progress) -> None:
        completed = _completed(done, progress)
        if 10 * completed // total > tenths[progress.label]:
            tenths[progress.label] = 10 * completed // total
            seconds = time.perf_counter() - start
            console.print(
                f"{progress.label}: {completed} of {total} decisions, {seconds:.0f} s",
                soft_wrap=True,
            )

    yield on_progress


def _completed(done: dict[tuple[str, int], int], progress: Progress) -> int:
    """Enter a run's progress; the decisions of its algorithm so far."""
    done[progress.label, progress.seed] = progress.done
    return sum(n for (label, _), n in done.items() if label == progress.label)


@contextmanager
def _bars(config: BenchmarkConfig, console: Console) -> Iterator[OnProgress]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=console) as bars:
        total = config.iterations * len(config.seeds)
        tasks = {
            a.label: bars.add_task(a.label, total=total) for a in config.algorithms
        }
        done: dict[tuple[str, int], int] = {}

        def on_progress(progress: Progress) -> None:
            completed = _completed(done, progress)
            bars.update(tasks[progress.label], completed=completed)

        yield on_progress
