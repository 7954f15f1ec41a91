"""Runs a benchmark: each (algorithm, seed) on its own, in any order, on any number of
processes.

A run drives ``RobustOptimizer.ask`` and ``tell`` with a journal. A killed benchmark is
started again with the same command: finished runs are skipped, half runs resume where
they were.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from benchmarks.run.config import AlgorithmConfig, BenchmarkConfig, ConfigError
from benchmarks.run.problems import World, make_problem
from benchmarks.run.storage import Record, RunFiles, run_files, run_header
from botorch_drbo.algorithms import Algorithm, make_algorithm
from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.schedules import schedule_from_dict
from botorch_drbo.test_functions.base import RobustTestFunction


@dataclass(frozen=True)
class Progress:
    """One run has ``done`` iterations on the disk."""

    label: str
    seed: int
    done: int


@dataclass(frozen=True)
class Failure:
    """A run that raised; the others went on."""

    label: str
    seed: int
    error: BaseException


@dataclass(frozen=True)
class Asked:
    """A decision ``1 x d_x``; seconds and warnings of ``ask``, if it was asked now."""

    x: Tensor
    seconds: float | None = None
    warnings: list[str] = field(default_factory=list)


OnProgress = Callable[[Progress], None]


def build_algorithm(config: AlgorithmConfig, problem: RobustTestFunction) -> Algorithm:
    """Turn a config's plain options into an algorithm.

    Raises:
        ConfigError: Unknown algorithm, options it does not take, or the problem has no
            reference distribution.
    """
    options = {
        key: _option(key, value, problem) for key, value in config.options.items()
    }
    try:
        return make_algorithm(config.name, **options)
    except (InputDataError, TypeError) as error:
        raise ConfigError(f"Algorithm {config.label!r}: {error}") from error


def run_one(
    config: BenchmarkConfig,
    algorithm: AlgorithmConfig,
    seed: int,
    out: Path,
    on_progress: OnProgress,
) -> None:
    """Run, resume or skip one (algorithm, seed), on one thread."""
    header = run_header(config, algorithm, seed)
    files = run_files(out, algorithm, seed)
    records = files.load(header)
    on_progress(Progress(algorithm.label, seed, min(len(records), config.iterations)))
    if len(records) >= config.iterations:
        return
    problem = make_problem(config)
    world = World(problem, config.problem, seed)
    recipe = build_algorithm(algorithm, problem)
    with one_thread(), _open(files, header, recipe, problem, seed) as optimizer:
        _catch_up(config, optimizer, problem, files, records)
        for step in range(optimizer.history.t, config.initial + config.iterations):
            asked = _decide(config, optimizer, world, step)
            x = asked.x
            c = world.context(step)
            y = world.outcome(step, x, c)
            optimizer.tell(x, c, y, closes_pending=step >= config.initial)
            if step >= config.initial:
                iteration = step - config.initial
                records.append(_record(problem, records, iteration, asked, c, y))
                files.append(records[-1])
                on_progress(Progress(algorithm.label, seed, len(records)))


def run_benchmark(
    config: BenchmarkConfig,
    out: Path,
    *,
    jobs: int = 1,
    on_progress: OnProgress = lambda progress: None,
) -> list[Failure]:
    """Run what is not finished yet.

    Args:
        config: The benchmark.
        out: Its results folder.
        jobs: Processes, each on one thread. With 1 everything runs in this process, and
            the first error is raised.
        on_progress: Called in this process, from one thread at a time.

    Returns:
        The runs that failed; empty if all is well.

    Raises:
        ConfigError: An unknown problem or algorithm, options that do not fit, or a
            results folder that holds another benchmark. Nothing has run then.
    """
    if jobs < 1:
        raise ConfigError(f"`jobs` must be at least 1, got {jobs}.")
    problem = make_problem(config)
    for algorithm in config.algorithms:
        build_algorithm(algorithm, problem)
        for seed in config.seeds:
            run_files(out, algorithm, seed).load(run_header(config, algorithm, seed))
    # Seed by seed, so that a benchmark stopped half way has whole paired seeds.
    tasks = [
        (algorithm, seed) for seed in config.seeds for algorithm in config.algorithms
    ]
    if jobs == 1:
        for algorithm, seed in tasks:
            run_one(config, algorithm, seed, out, on_progress)
        return []
    failures = []
    # Spawned, not forked: a fork of a process that has used torch's threads can hang.
    context = multiprocessing.get_context("spawn")
    queue: Queue[Progress | None] = context.Queue()
    listener = threading.Thread(target=_listen, args=(queue, on_progress))
    listener.start()
    try:
        with ProcessPoolExecutor(
            min(jobs, len(tasks)), context, initializer=_start_worker, initargs=(queue,)
        ) as pool:
            futures = {
                pool.submit(_run_in_worker, config, algorithm, seed, out): (
                    algorithm,
                    seed,
                )
                for algorithm, seed in tasks
            }
            for future in as_completed(futures):
                error = future.exception()
                if error is not None:
                    algorithm, seed = futures[future]
                    failures.append(Failure(algorithm.label, seed, error))
    finally:
        queue.put(None)
        listener.join()
    return failures


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread: times compare, and results do not depend on the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _option(key: str, value: Any, problem: RobustTestFunction) -> Any:
    if key == "reference" and value == "problem":
        if problem.reference is None:
            raise ConfigError(
                f'`reference = "problem"`: the problem {type(problem).__name__} tells '
                "no reference distribution. Leave the option out (data-driven setting)."
            )
        return problem.reference
    if isinstance(value, Mapping) and "schedule" in value:
        return schedule_from_dict(dict(value))
    return value


def _open(
    files: RunFiles,
    header: Mapping[str, Any],
    algorithm: Algorithm,
    problem: RobustTestFunction,
    seed: int,
) -> RobustOptimizer:
    """A new optimizer, or the one that the journal holds."""
    if not files.journal_begun:
        files.journal.unlink(missing_ok=True)  # killed while its first line was written
        files.start(header)
        return RobustOptimizer(
            algorithm,
            problem.bounds,
            problem.context_bounds,
            seed=seed,
            journal=files.journal,
            num_initial=0,  # the world gives the initial decisions, to all the same
        )
    if not files.records.exists():
        raise ConfigError(
            f"{files.journal} has no records beside it: it may be of another run. "
            "Delete it to run afresh."
        )
    # First the journal, whose lock keeps a second benchmark out, then the records.
    optimizer = RobustOptimizer.resume(
        files.journal, bounds=problem.bounds, context_bounds=problem.context_bounds
    )
    if optimizer.algorithm.to_dict() != algorithm.to_dict():
        optimizer.close()
        raise ConfigError(
            f"{files.journal} was begun by {optimizer.algorithm}, now it is "
            f"{algorithm}: defaults have changed. Delete it to run afresh."
        )
    files.start(header)
    return optimizer


def _catch_up(
    config: BenchmarkConfig,
    optimizer: RobustOptimizer,
    problem: RobustTestFunction,
    files: RunFiles,
    records: list[Record],
) -> None:
    """Write the records that a kill between ``tell`` and the record has lost."""
    history = optimizer.history
    for row in range(config.initial + len(records), history.t):
        x, c, y = (part[row : row + 1] for part in (history.X, history.C, history.Y))
        iteration = row - config.initial
        records.append(_record(problem, records, iteration, Asked(x), c, y))
        files.append(records[-1])


def _decide(
    config: BenchmarkConfig, optimizer: RobustOptimizer, world: World, step: int
) -> Asked:
    """The next decision."""
    if step < config.initial:
        return Asked(world.initial_decision(step))
    if len(optimizer.pending) > 0:
        # Asked before the kill, never told: the same decision, not a second one.
        return Asked(optimizer.pending[:1])
    # Kept with the record: on the terminal they would tear the progress bars.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        x = optimizer.ask(q=1)
        seconds = time.perf_counter() - start
    texts = [f"{w.category.__name__}: {w.message}".splitlines()[0] for w in caught]
    return Asked(x, seconds, sorted(set(texts)))


def _record(
    problem: RobustTestFunction,
    records: list[Record],
    iteration: int,
    asked: Asked,
    c: Tensor,
    y: Tensor,
) -> Record:
    expected = problem.expected_value(asked.x).item()
    regret = float(problem.optimal_value) - expected
    before = records[-1].cumulative if records else 0.0
    return Record(
        iteration=iteration,
        x=asked.x.flatten().tolist(),
        c=c.flatten().tolist(),
        y=y.item(),
        expected=expected,
        regret=regret,
        cumulative=before + regret,
        seconds=asked.seconds,
        warnings=asked.warnings,
    )


def _listen(queue: Queue[Progress | None], on_progress: OnProgress) -> None:
    while (progress := queue.get()) is not None:
        on_progress(progress)


_QUEUE: list[
    Queue[Progress | None]
] = []  # of a worker process: a queue cannot be pickled


def _start_worker(queue: Queue[Progress | None]) -> None:
    torch.set_num_threads(1)
    _QUEUE.append(queue)


def _run_in_worker(
    config: BenchmarkConfig, algorithm: AlgorithmConfig, seed: int, out: Path
) -> None:
    run_one(config, algorithm, seed, out, _QUEUE[0].put)
