"""Run the tournament: make the missing runs, evaluate, and report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pandas as pd
from rich.console import Console

from benchmarks.experiments.small_tables import write_study
from benchmarks.experiments.tournament.cases import CASES, METHODS, SIZES
from benchmarks.experiments.tournament.judge import judged_seed
from benchmarks.experiments.tournament.learn import Task, tasks_of
from benchmarks.experiments.tournament.report import make_report
from benchmarks.run.config import ConfigError
from benchmarks.run.display import report_failures, run_with_lines, show
from benchmarks.run.parallel import in_parallel
from benchmarks.run.storage import RunKey, collect_runs, load, runs_of
from botorch_drbo._validation import did_you_mean


def play(
    out: Path,
    *,
    size: str,
    workers: int,
    methods: Sequence[str] = (),
    only: Sequence[str] = (),
    report_only: bool = False,
) -> int:
    """Learn what is not there yet, then judge and report.

    Args:
        out: The results folder. A finished run is one file in it, and is not run again.
        size: A key of ``SIZES``.
        workers: Processes, each on one thread.
        methods: Keys of ``METHODS``; all if empty.
        only: Keys of ``CASES``; all of the size if empty.
        report_only: Learn nothing; report on the seeds that all methods have finished.

    Returns:
        The exit status: 1 if a run failed.

    Raises:
        ConfigError: Unknown names, or there is no seed that all have finished.
    """
    for names, known in ((methods, METHODS), (only, CASES), ([size], SIZES)):
        for name in set(names) - set(known):
            raise ConfigError(
                f"The tournament knows no {name!r}.{did_you_mean(name, known)} The "
                f"choices are {sorted(known)}."
            )
    plan, console = SIZES[size], Console()
    if only:
        plan = plan.of(tuple(only))
    tasks = tasks_of(plan, tuple(methods) or tuple(METHODS))
    failures: dict[RunKey, BaseException] = {}
    if not report_only:
        failures = run_with_lines(tasks, out, workers=workers, console=console)
    rows, about = load(collect_runs({t.key: t.rounds for t in tasks}, out, {}))
    losses, steps = _judge_all(tasks, rows, workers)
    if losses.empty:
        raise ConfigError(
            f"There is no seed in {out} that all methods have finished: run the same "
            "command without --report."
        )
    for name, table in (("losses", losses), ("steps", steps)):
        table.attrs["commit"] = about["commit"]
        table.to_parquet(out / f"{name}.parquet", index=False)
    write_study(out)
    command = f"python -m benchmarks tournament --size {size}"
    show(make_report(losses, steps, command), out / "report.md", console)
    return report_failures(failures)


def _judge_all(
    tasks: Sequence[Task], rows: pd.DataFrame, workers: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The losses and the steps of the seeds that are whole, in the order of tasks."""
    runs = runs_of(rows)
    groups: dict[tuple[str, int], list[Task]] = {}
    for task in tasks:
        groups.setdefault((task.case, task.seed), []).append(task)
    work = {
        key: partial(judged_seed, *key, {t.method: runs[t.key] for t in members})
        for key, members in groups.items()
        if all(task.key in runs for task in members)
    }
    found = dict(in_parallel(work, workers=workers))
    losses, steps = [], []
    for key in work:
        outcome = found[key]
        if isinstance(outcome, BaseException):
            raise outcome
        losses += outcome[0]
        steps += outcome[1]
    return pd.DataFrame(losses), pd.DataFrame(steps)
