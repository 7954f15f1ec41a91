"""Whether the code of today makes the decisions that a committed result recorded.

A run is a chain: the decision of a round follows from the rounds before it, so any
decision can be made again by itself, given the recorded rounds before it. One round of
each run, drawn by lot, is a sample of all decisions of a result.
"""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from benchmarks.experiments import action_sets, bocu, bounds, misspecified
from benchmarks.run.config import ConfigError
from benchmarks.run.engine import Task, one_thread
from benchmarks.run.parallel import in_parallel
from benchmarks.run.provenance import commit, load, machine
from benchmarks.run.report import Report, Table
from benchmarks.run.runner import recorded_runs
from benchmarks.run.storage import Row, RunKey, collected_runs
from benchmarks.run.tables import RUNS

DECISION = ("position", "x", "c")
FURTHER = "further"
# How far a decision moved, as a share of the range within the run: the columns.
STEPS = {"bit for bit": 0.0, "up to 1e-6": 1e-6, "up to 1e-3": 1e-3, FURTHER: math.inf}


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
class Again:
    """A round that was made again.

    Args:
        moved: How far its decision is from the recorded one; see ``moved``.
        seconds: What it took to decide.
    """

    moved: float
    seconds: float

    @property
    def step(self) -> str:
        """The first of ``STEPS`` that is not exceeded."""
        within = (name for name, most in STEPS.items() if self.moved <= most)
        return next(within, FURTHER)  # not a number is further than any


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

    def again(self) -> Again:
        """Make it again, given the rounds before it."""
        with one_thread(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.task.key.seed)
            row = next(iter(self.task.play(self.rows[: self.at])))
        return Again(moved(self.rows, self.at, row), row["seconds"])


def moved(rows: Sequence[Row], at: int, today: Row) -> float:
    """How far a round that is made again is from the recorded one.

    Args:
        rows: The recorded rounds of the run.
        at: The place of the one among them.
        today: It, made again.

    Returns:
        The largest move of a coordinate of decision and context, by the range of that
        coordinate in the run; infinite if it is another of a list, or if the same
        decision has another regret now.
    """
    recorded = rows[at]
    if all(today[name] == recorded[name] for name in DECISION if name in today):
        if "regret" not in today:  # BOCU's decisions have one for each objective
            return 0.0
        largest = max(abs(row["regret"]) for row in rows)
        # The same sum in another order differs in its last digits.
        near = abs(today["regret"] - recorded["regret"]) <= 1e-9 * largest
        return 0.0 if near else math.inf
    if "position" in today:
        return math.inf
    values = np.array([[*row["x"], *row["c"]] for row in rows])  # T x d
    moves = np.abs([*today["x"], *today["c"]] - values[at])
    still = moves == 0
    with np.errstate(divide="ignore"):  # where the run never moved: infinitely far
        shares = moves[~still] / np.ptp(values, axis=0)[~still]
    return float(shares.max())


def tasks_of_runs(name: str, rounds: Mapping[RunKey, int]) -> dict[RunKey, Task]:
    """What makes the runs of an experiment with a command of its own.

    Args:
        name: Of ``EXPERIMENTS``.
        rounds: The runs, and how many rounds each has.

    Raises:
        ConfigError: A run that today's code does not know.
    """
    most, seeds = max(rounds.values()), {key.seed for key in rounds}
    tasks = {task.key: task for seed in seeds for task in EXPERIMENTS[name](seed, most)}
    if unknown := rounds.keys() - tasks.keys():
        raise ConfigError(f"{name} has {min(unknown)}, which nothing makes now.")
    return {key: tasks[key] for key in rounds}


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
        tasks = tasks_of_runs(name, {key: len(rows) for key, rows in runs.items()})
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
        str(path.parent.relative_to(results)) for path in results.rglob(RUNS)
    )
    if missing := set(names) - set(known):
        raise ConfigError(
            f"There is no result {min(missing)!r} in {results}: {', '.join(known)}."
        )
    rows, times, far = [], [], []
    for name in names or known:
        samples = samples_of(results, name)
        found = _made_again(samples, workers)
        steps = Counter(again.step for again in found.values())
        finite = [a.moved for a in found.values() if math.isfinite(a.moved)]
        counts = [f"{steps[step]:,}" for step in STEPS]
        rows.append(
            [
                f"`{name}`",
                f"{len(found):,}",
                *counts,
                f"{max(finite, default=math.inf):.1g}",
            ]
        )
        seconds: dict[str, list[float]] = {}
        for key, again in found.items():
            # What follows a comma is a setting of the method.
            seconds.setdefault(key.algorithm.split(",")[0], []).append(again.seconds)
            if again.step == FURTHER:
                run = f"{key}, round {samples[key].at}"
                far.append([f"`{name}`", run, f"{again.moved:.1g}"])
        cells = (f"`{m}` {statistics.median(s):.2g}" for m, s in seconds.items())
        times.append([f"`{name}`", ", ".join(cells)])
        print(*rows[-1], flush=True)
    text = (
        "`python -m benchmarks reproduced`: of each recorded run one round, drawn by "
        "lot, is made again by the code of one commit, from the recorded rounds before "
        "it. How far the decision and its context are from the recorded ones, as a "
        "share of their range in the run, and the largest such move (another item of a "
        f"list is *{FURTHER}*). Commit `{commit()}`; {machine()}."
    )
    head = ["results", "runs", *STEPS, "largest move"]
    words = (
        "Median seconds of such a decision, over the seeds, problems and rounds: "
        f"{workers} process{'es' if workers > 1 else ''} of one thread, and at the end "
        f"{load():.1f} that wanted a core, by the cores."
    )
    of_seconds = Table(["results", "seconds"], times, left=2)
    blocks = [text, Table(head, rows), words, of_seconds]
    if far:
        head = ["results", "run and round", "move"]
        title = "Those that moved further (*inf*: another of a list or another regret):"
        blocks.append(Table(head, far, title, left=2))
    return Report("Decisions made again", blocks)


def _made_again(samples: Mapping[RunKey, Sample], workers: int) -> dict[RunKey, Again]:
    """All of a result; an error of one is raised."""
    found: dict[RunKey, Again] = {}
    work = {key: sample.again for key, sample in samples.items()}
    for key, outcome in in_parallel(work, workers=workers):
        if isinstance(outcome, BaseException):
            raise outcome
        found[key] = outcome
    return found
