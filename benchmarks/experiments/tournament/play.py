"""Run the tournament: make the missing runs, evaluate, and report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from benchmarks.experiments.small_tables import write_study
from benchmarks.experiments.tournament.cases import CASES, METHODS, SIZES
from benchmarks.experiments.tournament.judge import judge
from benchmarks.experiments.tournament.learn import tasks_of
from benchmarks.experiments.tournament.report import make_report
from benchmarks.run.config import ConfigError
from benchmarks.run.display import report_failures, run_with_lines, show
from benchmarks.run.storage import RunKey, collect_runs, load, runs_of
from benchmarks.study.cases import check_names
from benchmarks.study.judge import judged


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
    check_names(
        "The tournament knows", (methods, METHODS), (only, CASES), ([size], SIZES)
    )
    plan, console = SIZES[size], Console()
    if only:
        plan = plan.of(tuple(only))
    tasks = tasks_of(plan, tuple(methods) or tuple(METHODS))
    failures: dict[RunKey, BaseException] = {}
    if not report_only:
        failures = run_with_lines(tasks, out, workers=workers, console=console)
    rows, about = load(collect_runs({t.key: t.rounds for t in tasks}, out, {}))
    there = runs_of(rows)
    partly = {(t.case, t.seed) for t in tasks if t.key not in there}
    blocks = zip(rows["problem"], rows["seed"], strict=True)
    whole: Any = rows[[block not in partly for block in blocks]]
    if whole.empty:
        raise ConfigError(
            f"There is no seed in {out} that all methods have finished: run the same "
            "command without --report."
        )
    tables = {k: pd.DataFrame(v) for k, v in judged(whole, judge, workers).items()}
    for name, table in tables.items():
        table.attrs["commit"] = about["commit"]
        table.to_parquet(out / f"{name}.parquet", index=False)
    write_study(out)
    command = f"python -m benchmarks tournament --size {size}"
    show(make_report(**tables, command=command), out / "report.md", console)
    return report_failures(failures)
