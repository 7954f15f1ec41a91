"""Runs on a finite list of decisions, kept on the disk line by line."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.run.config import ConfigError
from benchmarks.run.display import Clock
from benchmarks.run.parallel import in_parallel
from benchmarks.run.runner import one_thread

_HEAD = ["decision", "seconds"]


@dataclass(frozen=True)
class Decision:
    """A position among the candidates, and the seconds it took to choose it."""

    position: int
    seconds: float


def read_decisions(path: Path) -> list[Decision]:
    """The decisions on the disk; a line without its end is none."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    rows = csv.reader(lines[1:])
    return [Decision(int(position), float(seconds)) for position, seconds in rows]


def run_decisions(
    path: Path,
    iterations: int,
    *,
    choose: Callable[[int], int],
    learn: Callable[[int, int], None],
) -> int:
    """Run or extend one run, on one thread.

    Args:
        path: Its file.
        iterations: How many decisions it shall have.
        choose: The position of the decision of a step.
        learn: Makes the outcome of a step known, given its position; called for the
            decisions on the disk, too.

    Returns:
        How many decisions were made now.
    """
    done = read_decisions(path)
    if len(done) >= iterations:
        return 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with one_thread(), path.open("w", newline="", encoding="utf-8") as file:
        # Written again, so that a line torn by a kill is gone.
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_HEAD)
        for step in range(iterations):
            if step < len(done):
                decision = done[step]
            else:
                start = time.perf_counter()
                position = choose(step)
                decision = Decision(position, time.perf_counter() - start)
            writer.writerow([decision.position, f"{decision.seconds:.4g}"])
            file.flush()
            learn(step, decision.position)
    return iterations - len(done)


def run_all(
    work: Mapping[str, Callable[[], int]], workers: int, console: Console
) -> None:
    """Do all the work, and tell of each piece that is done, and of what is left.

    Args:
        work: Name -> what to do; must be picklable.
        workers: How many processes; 1 for this one.
        console: Where to tell.

    Raises:
        ConfigError: ``workers`` is not positive, or pieces of the work failed; the
            others are done then.
    """
    failures = {}
    clock = Clock(len(work))
    for name, outcome in in_parallel(work, workers=workers):
        failed = isinstance(outcome, BaseException)
        if failed:
            failures[name] = outcome
        text = f"failed: {outcome!r}" if failed else "done"
        console.print(f"{clock.tick()} {name}: {text}", markup=False, soft_wrap=True)
    if failures:
        raise ConfigError(
            f"{len(failures)} of {len(work)} runs failed, the first with "
            f"{next(iter(failures.values()))!r}. The others are kept: the same command "
            "tries these again."
        )
