"""Whether the code of today makes the decisions that a committed result recorded.

A run is a chain: the decision of a round follows from the rounds before it, so any
decision can be made again by itself, given the recorded rounds before it. One round of
each run, drawn by lot, is a sample of all decisions of a result.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from benchmarks.experiments import action_sets, bocu, bounds, misspecified
from benchmarks.run.config import ConfigError
from benchmarks.run.engine import Task, one_thread
from benchmarks.run.parallel import in_parallel
from benchmarks.run.provenance import commit, machine
from benchmarks.run.report import Report, Table
from benchmarks.run.runner import recorded_runs
from benchmarks.run.storage import RESULTS, Row, RunKey, collected_runs

TOLERANCE = 1e-6  # of the range within the run
SAME, NEAR, OTHER = "bit for bit", "within rounding", "otherwise"
DECISION = ("position", "x", "c")


def _bocu(seed: int, rounds: int) -> Sequence[Task]:
    return bocu.tasks_of(bocu.PROBLEMS, bocu.SETTINGS, seed + 1, rounds)


# Experiments with a command of their own: the runs of a seed, given the rounds.
EXPERIMENTS: dict[str, Callable[[int, int], Sequence[Task]]] = {
    "action_sets": action_sets.tasks,
    "bocu": _bocu,
    "bocu_long": _bocu,
    "bounds": bounds.tasks,
    "misspecified": misspecified.tasks,
}


@dataclass(frozen=True)
class Sample:
    """One round of a run, to be made again.

    Args:
        task: The run.
        rows: All its recorded rows.
        at: The place of the round among them.
    """

    task: Task
    rows: Sequence[Row]
    at: int

    def compare(self) -> str:
        """``SAME``, ``NEAR`` or ``OTHER``."""
        with one_thread(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.task.key.seed)
            today = next(iter(self.task.play(self.rows[: self.at])))
        return likeness(self.rows, self.at, today)


def likeness(rows: Sequence[Row], at: int, today: Row) -> str:
    """How alike a recorded round and one made again are.

    Args:
        rows: The recorded rounds of the run.
        at: The place of the one among them.
        today: It, made again.
    """
    recorded = rows[at]
    if "regret" in today:  # BOCU's decisions have one for each objective
        largest = max(abs(row["regret"]) for row in rows)
        if not abs(today["regret"] - recorded["regret"]) <= TOLERANCE * largest:
            return OTHER
    if all(today[name] == recorded[name] for name in DECISION if name in today):
        return SAME
    if "position" in today:
        return OTHER
    values = np.array([[*row["x"], *row["c"]] for row in rows])  # T x d
    moved = np.abs([*today["x"], *today["c"]] - values[at])
    return NEAR if (moved <= TOLERANCE * np.ptp(values, axis=0)).all() else OTHER


def samples_of(results: Path, name: str) -> dict[RunKey, Sample]:
    """One round of each run of a result.

    Args:
        results: The folder of all results.
        name: That of the result in it.

    Raises:
        ConfigError: A run that today's code does not know.
    """
    folder = results / name
    if name in EXPERIMENTS:
        runs, _ = collected_runs(folder)
        seeds = {key.seed for key in runs}
        rounds = max(map(len, runs.values()))
        tasks = {
            task.key: task for seed in seeds for task in EXPERIMENTS[name](seed, rounds)
        }
        if unknown := runs.keys() - tasks.keys():
            raise ConfigError(f"{folder} has {min(unknown)}, which nothing makes now.")
        recorded = {key: (tasks[key], rows) for key, rows in runs.items()}
    else:
        recorded, _ = recorded_runs(folder)
    return {
        key: Sample(task, rows, random.Random(f"{name} {key}").randrange(len(rows)))
        for key, (task, rows) in recorded.items()
    }


def reproduced(results: Path, names: Sequence[str], *, workers: int) -> Report:
    """Make one round of each run again, and count how many came out as recorded.

    Args:
        results: The folder of all results.
        names: Of the results in it; all if empty.
        workers: Processes.

    Raises:
        ConfigError: A result that is not there, or whose runs nothing makes now.
    """
    known = sorted(
        str(path.parent.relative_to(results)) for path in results.rglob(RESULTS)
    )
    if missing := set(names) - set(known):
        raise ConfigError(
            f"There is no result {min(missing)!r} in {results}: {', '.join(known)}."
        )
    rows = []
    for name in names or known:
        samples = samples_of(results, name)
        found: dict[str, Counter[str]] = {k: Counter() for k in (SAME, NEAR, OTHER)}
        work = {key: partial(sample.compare) for key, sample in samples.items()}
        for key, outcome in in_parallel(work, workers=workers):
            if isinstance(outcome, BaseException):
                raise outcome
            found[outcome][key.algorithm] += 1
            if outcome == OTHER:
                print(f"{key}, round {samples[key].at}: {OTHER}", flush=True)
        others = ", ".join(f"`{a}` {n}" for a, n in found[OTHER].items())
        counts = [f"{found[kind].total():,}" for kind in (SAME, NEAR)]
        rows.append([f"`{name}`", f"{len(samples):,}", *counts, others or "0"])
        print(*rows[-1], flush=True)
    text = (
        "`python -m benchmarks reproduced`: of each recorded run one round, drawn by "
        "lot, is made again by the code of one commit, from the recorded rounds before "
        f"it. {SAME.capitalize()}: the decision and the context that followed; "
        f"{NEAR}: both by at most {TOLERANCE:g} of their range in the run. The regret "
        f"is the same to that precision in both columns. Commit `{commit()}`; "
        f"{machine()}."
    )
    head = ["results", "runs", SAME, NEAR, OTHER]
    return Report("Decisions made again", [text, Table(head, rows)])
