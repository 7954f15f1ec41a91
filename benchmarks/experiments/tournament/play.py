"""Plays the tournament: learns what is missing, judges, and reports."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pandas as pd
from rich.console import Console

from benchmarks.experiments.decisions import run_all
from benchmarks.experiments.tournament.cases import CASES, METHODS, SIZES
from benchmarks.experiments.tournament.judge import judged_seed
from benchmarks.experiments.tournament.learn import Run, learn, runs_of
from benchmarks.experiments.tournament.report import write_report
from benchmarks.run.config import ConfigError
from benchmarks.run.parallel import in_parallel
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
        The exit status.

    Raises:
        ConfigError: Unknown names, or runs failed; the others are done then.
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
    runs = runs_of(plan, tuple(methods) or tuple(METHODS))
    if not report_only:
        work = {str(run): partial(learn, run, plan, out) for run in runs}
        run_all(work, workers, console)
    losses, steps = _judge_all(runs, out, workers)
    if losses.empty:
        raise ConfigError(
            f"There is no seed in {out} that all methods have finished: run the same "
            "command without --report."
        )
    losses.to_parquet(out / "losses.parquet", index=False)
    steps.to_parquet(out / "steps.parquet", index=False)
    command = f"python -m benchmarks tournament --size {size}"
    text = write_report(losses, steps, out, command)
    console.print(text, markup=False, soft_wrap=True)
    return 0


def _judge_all(
    runs: Sequence[Run], out: Path, workers: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The losses and the steps of the seeds that are whole, in the order of runs."""
    groups: dict[tuple[str, int], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.case, run.seed), []).append(run)
    work = {
        key: partial(judged_seed, members, out)
        for key, members in groups.items()
        if all(run.file(out).exists() for run in members)
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
