"""Make the missing runs, store them, and write the report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from benchmarks.development.cases import CASES, HALVES, half_of
from benchmarks.development.learn import METHODS, Row, Task, learn
from benchmarks.development.report import report
from benchmarks.development.store import Runs, keep
from benchmarks.development.surrogates import CANDIDATES
from benchmarks.run.config import ConfigError
from benchmarks.run.display import run_all
from botorch_drbo._validation import did_you_mean

REPORT = "report.md"


def tasks_of(
    *,
    halves: Sequence[str],
    cases: Sequence[str],
    methods: Sequence[str],
    surrogates: Sequence[str],
    seeds: int,
) -> list[Task]:
    """All runs that are asked for; seed by seed, so that what is there is paired.

    Args:
        halves: Of ``HALVES``.
        cases: Keys of ``CASES``; those of the halves if empty.
        methods: Of ``METHODS``.
        surrogates: Keys of ``CANDIDATES``; all if empty.
        seeds: How many: 0, 1, ...

    Raises:
        ConfigError: Unknown names.
    """
    for names, known in (
        (halves, HALVES),
        (cases, CASES),
        (methods, METHODS),
        (surrogates, CANDIDATES),
    ):
        for name in set(names) - set(known):
            raise ConfigError(
                f"The development set knows no {name!r}.{did_you_mean(name, known)} "
                f"The choices are {', '.join(known)}."
            )
    return [
        Task(case, method, surrogate, seed)
        for seed in range(seeds)
        for case in cases or CASES
        if half_of(case) in halves
        for method in methods
        for surrogate in surrogates or CANDIDATES
    ]


def play(
    tasks: Sequence[Task],
    rounds: int,
    *,
    work: Path,
    out: Path,
    workers: int,
    command: str,
) -> int:
    """Make what is lacking, then collect all runs and report on them.

    Args:
        tasks: Which runs.
        rounds: How many outcomes each is to have at least.
        work: The folder of this machine, with a file for each run.
        out: The folder of the table and of the report.
        workers: Processes, each on one thread.
        command: What is being done, for the report.

    Returns:
        The exit status.

    Raises:
        ConfigError: Runs failed; the others are kept then.
    """
    runs, console, lacking = Runs(work, out), Console(), {}
    for task in tasks:
        before = runs.find(task)
        if before is None or before["rounds"] < rounds:
            lacking[str(task)] = partial(_make, task, rounds, before, work)
    run_all(lacking, workers, console)
    rows = runs.collect()
    if not rows:
        raise ConfigError("There are no runs yet: leave out --report.")
    text = report(rows, command)
    (out / REPORT).write_text(text, encoding="utf-8")
    console.print(text, markup=False, soft_wrap=True)
    return 0


def _make(task: Task, rounds: int, before: Row | None, work: Path) -> int:
    keep(learn(task, rounds, before), work)
    return rounds
