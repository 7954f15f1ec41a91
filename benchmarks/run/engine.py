"""From tasks to rows: runs what is not kept yet, in any order, in any process.

An experiment is a list of tasks and a function from their rows to a report. A task's
rows depend on nothing but the task. They come back from whichever process made them and
are then kept; an experiment that was killed is started again with the same command, and
does what is not there yet.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol

import torch
from threadpoolctl import threadpool_limits

from benchmarks.run.config import ConfigError
from benchmarks.run.parallel import LOCAL_CLUSTER, in_parallel
from benchmarks.run.provenance import commit, load, machine, versions
from benchmarks.run.storage import (
    FORMAT,
    Row,
    Run,
    RunKey,
    differences,
    rounds_kept,
    run_file,
    save,
    stored_rows,
    with_earlier,
)

KEEP_SECONDS = 1.0  # between two times that an unfinished run is kept


class Task(Protocol):
    """One run to be made; frozen and picklable, as it travels to the process that does.

    Example:
        >>> from benchmarks.experiments.misspecified import Task
        >>> str(Task("gp_ucb", "waves", 0.1, seed=0, rounds=3).key)
        'gp_ucb on waves 0.1, seed 0'
    """

    resumable: ClassVar[bool]  # whether `play` goes on after any round, or begins anew

    @property
    def key(self) -> RunKey:
        """What is played on, by whom, under which seed: where the rows are kept."""
        ...

    @property
    def rounds(self) -> int:
        """How many rows."""
        ...

    def header(self) -> dict[str, Any]:
        """What makes these rows these rows, in JSON's types, beside the versions.

        Not the number of rounds where the first ones are those of a shorter run.
        """
        ...

    def play(self, done: Sequence[Row]) -> Iterator[Row]:
        """The rows that follow those that are done; none are, if not resumable."""
        ...


@dataclass(frozen=True)
class Finished:
    """News of one run: it is kept, or ``error`` says why not.

    Args:
        key: The run.
        done: How many of the runs of this call have ended, this one included.
        total: How many there are.
        run: The run, if it was made.
        error: What went wrong.
    """

    key: RunKey
    done: int
    total: int
    run: Run | None = None
    error: BaseException | None = None


def run_tasks(
    tasks: Iterable[Task],
    out: Path,
    *,
    workers: int = 1,
    dask: str | None = None,
    on_finished: Callable[[Finished], None] = lambda finished: None,
) -> dict[RunKey, BaseException]:
    """Run what is not kept yet.

    A run that cannot be written (the disk is full) stays in memory and is tried again
    whenever another has ended.

    Args:
        tasks: What there is to do, and in which order; of equal keys one is done.
        out: The results folder.
        workers: Processes, each on one thread; with 1 everything runs in this process.
        dask: The address of a dask scheduler, or ``"local"``.
        on_finished: Called after each run.

    Returns:
        The runs that failed and why; empty if all is well.

    Raises:
        ConfigError: A task cannot be done, or the results folder holds another run of
            its name. Nothing has run then.
    """
    work: dict[RunKey, Callable[[], Run]] = {}
    for task in {task.key: task for task in tasks}.values():
        header = full_header(task)
        file = run_file(out, task.key)
        done = stored_rows(file, header)
        if len(done) < task.rounds:
            # The workers of a cluster elsewhere need not share a disk.
            shared = dask in (None, LOCAL_CLUSTER)
            kept = file if task.resumable and shared else None
            done = done if task.resumable else []
            work[task.key] = partial(make_run, task, done, kept, header)
    failures: dict[RunKey, BaseException] = {}
    unsaved: dict[RunKey, Run] = {}
    outcomes = in_parallel(
        work, workers=workers, dask=dask, reached=partial(rounds_kept, out)
    )
    for number, (key, outcome) in enumerate(outcomes, start=1):
        run = None
        if isinstance(outcome, BaseException):
            failures[key] = outcome
        else:
            run = unsaved[key] = outcome
        for other in list(unsaved):
            try:
                save(unsaved[other], run_file(out, other))
            except OSError as error:
                failures[other] = error
            else:
                del unsaved[other]
                failures.pop(other, None)
        on_finished(Finished(key, number, len(work), run, failures.get(key)))
    return failures


def full_header(task: Task) -> dict[str, Any]:
    """What makes a run this run, and with what it was made."""
    return {"format": FORMAT, "versions": versions(), **task.header()}


def make_run(
    task: Task,
    done: Sequence[Row] = (),
    kept: Path | None = None,
    asked: Mapping[str, Any] | None = None,
) -> Run:
    """Make the rest of one run, on one thread.

    Args:
        task: The run.
        done: Its rows so far.
        kept: Where the rows are kept meanwhile, from time to time; None for nowhere. A
            process that died may have left more of them there.
        asked: The header of the run that is asked for; None for that of this process.

    Raises:
        ConfigError: This process has another version. Nothing is kept then.
    """
    header = full_header(task)
    if asked is not None and (different := differences(header, asked)):
        raise ConfigError(
            "The process that makes it has another version or config: "
            + "; ".join(different)
        )
    made = {"commit": commit(), "machine": machine(), "load": load()}
    if kept is not None:
        done = max(done, stored_rows(kept, header), key=len)
        made = with_earlier(made, kept)
    run = Run(list(done), header, made)
    last = time.perf_counter()
    with one_thread(), torch.random.fork_rng(devices=[]):
        # BoTorch draws starting points with the generator of the process.
        torch.manual_seed(task.key.seed)
        for row in task.play(done):
            run.rows.append(row)
            if kept is not None and time.perf_counter() - last >= KEEP_SECONDS:
                with suppress(
                    OSError
                ):  # a full disk: `run_tasks` reports it at the end
                    save(run, kept)
                last = time.perf_counter()
    return Run(run.rows, header, {**made, "load": max(made["load"], load())})


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch and SciPy's BLAS on one thread: results do not depend on the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)
