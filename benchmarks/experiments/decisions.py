"""Runs on a finite list of decisions, kept on the disk line by line."""

from __future__ import annotations

import csv
import multiprocessing
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.run.config import ConfigError
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


def run_all(work: Mapping[str, Callable[[], int]], jobs: int, console: Console) -> None:
    """Do all the work, in ``jobs`` processes, and tell of each piece that is done.

    Args:
        work: Name -> what to do; must be picklable.
        jobs: How many processes; 1 for this one.
        console: Where to tell.

    Raises:
        ConfigError: ``jobs`` is not positive.
    """
    if jobs < 1:
        raise ConfigError(f"`jobs` must be at least 1, got {jobs}.")
    if jobs == 1:
        for number, (name, do) in enumerate(work.items(), start=1):
            do()
            console.print(f"{number} of {len(work)} runs: {name}")
        return
    context = multiprocessing.get_context("spawn")  # torch does not survive a fork
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        futures = {pool.submit(do): name for name, do in work.items()}
        for number, future in enumerate(as_completed(futures), start=1):
            future.result()
            console.print(f"{number} of {len(work)} runs: {futures[future]}")
