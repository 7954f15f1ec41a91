"""Runs a benchmark: each (problem, algorithm, seed) on its own, in any order, in any
process.

A run is a function of its config and seed alone. It comes back whole from whichever
process made it and is then kept; a benchmark that was killed is started again with the
same command, and does what is not there yet.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError

from benchmarks.run.config import (
    AlgorithmConfig,
    BenchmarkConfig,
    ConfigError,
    ProblemConfig,
    did_you_mean,
)
from benchmarks.run.extensions import import_all
from benchmarks.run.parallel import in_parallel
from benchmarks.run.provenance import commit, machine, versions
from benchmarks.run.stopwatch import stopwatch
from benchmarks.run.storage import FORMAT, Run, RunKey, differences, missing, run_file
from benchmarks.run.storage import save as save_run
from benchmarks.run.world import World, make_problem
from botorch_drbo.codec import decode
from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.recipes import RECIPES, Recipe, make_recipe
from botorch_drbo.schedules.base import Rule
from botorch_drbo.test_functions.base import RobustTestFunction


@dataclass(frozen=True)
class Task:
    """One run to be made; it travels to whichever process makes it."""

    config: BenchmarkConfig
    problem: ProblemConfig
    algorithm: AlgorithmConfig
    seed: int

    @property
    def key(self) -> RunKey:
        """Its name."""
        return RunKey(self.problem.label, self.algorithm.label, self.seed)


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


def run_benchmark(
    config: BenchmarkConfig,
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
        config: The benchmark.
        out: Its results folder.
        workers: Processes, each on one thread; with 1 everything runs in this process.
        dask: The address of a dask scheduler, or ``"local"``.
        on_finished: Called after each run.

    Returns:
        The runs that failed and why; empty if all is well.

    Raises:
        ConfigError: An unknown problem or algorithm, options that do not fit, or a
            results folder that holds another benchmark. Nothing has run then.
    """
    import_all(config.imports)
    headers = headers_of(config)
    lacking = set(missing(headers, out))
    # Seed by seed, so that a benchmark stopped half way has whole paired seeds.
    tasks = {t.key: partial(run_one, t) for t in tasks_of(config) if t.key in lacking}
    failures: dict[RunKey, BaseException] = {}
    unsaved: dict[RunKey, Run] = {}
    outcomes = in_parallel(tasks, workers=workers, dask=dask)
    for done, (key, outcome) in enumerate(outcomes, start=1):
        run = None
        if isinstance(outcome, BaseException):
            failures[key] = outcome
        else:
            run = unsaved[key] = outcome
        for other in list(unsaved):
            try:
                _keep(unsaved[other], headers[other], run_file(out, other))
            except (OSError, ConfigError) as error:
                failures[other] = error
            else:
                del unsaved[other]
                failures.pop(other, None)
        on_finished(Finished(key, done, len(tasks), run, failures.get(key)))
    return failures


def tasks_of(config: BenchmarkConfig) -> list[Task]:
    """All runs of a benchmark, seed by seed."""
    return [
        Task(config, problem, algorithm, seed)
        for seed in config.seeds
        for problem in config.problems
        for algorithm in config.algorithms
    ]


def headers_of(config: BenchmarkConfig) -> dict[RunKey, dict[str, Any]]:
    """What makes each run of a benchmark that run and no other.

    Raises:
        ConfigError: A problem or an algorithm cannot be built.
    """
    _check_options(config)
    headers = {}
    for problem_config in config.problems:
        problem = make_problem(problem_config)
        for algorithm in config.algorithms:
            recipe = build_algorithm(algorithm, problem, config.options)
            for seed in config.seeds:
                task = Task(config, problem_config, algorithm, seed)
                headers[task.key] = header_of(task, recipe)
    return headers


def header_of(task: Task, recipe: Recipe) -> dict[str, Any]:
    """What makes a run this run, in JSON's types; ``recipe`` with all its defaults."""
    return {
        "format": FORMAT,
        "versions": versions(),
        "problem": task.problem.name,
        "problem_options": dict(task.problem.options),
        "algorithm": recipe.to_dict(),
        "seed": task.seed,
        "initial": task.config.initial,
        "initial_design": task.config.initial_design,
        "iterations": task.config.iterations,
    }


def run_one(task: Task) -> Run:
    """Make one run from its beginning to its end, on one thread."""
    config = task.config
    import_all(config.imports)
    problem = make_problem(task.problem)
    recipe = build_algorithm(task.algorithm, problem, config.options)
    world = World(problem, task.problem.name, task.seed, config.initial_design)
    optimal = float(problem.optimal_value)
    rows = []
    with one_thread(), stopwatch() as watch:
        optimizer = RobustOptimizer(
            recipe,
            problem.bounds,
            problem.context_bounds,
            seed=task.seed,
            num_initial=0,  # the world gives the initial decisions, to all the same
        )
        for step in range(config.initial):
            x, c = world.initial(step)
            optimizer.tell(x, c, world.outcome(step, x, c), closes_pending=False)
        for iteration in range(config.iterations):
            step = config.initial + iteration
            # Kept with the run: on the terminal they would tear the lines of progress.
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                watch.read()
                start = time.perf_counter()
                x = optimizer.ask(q=1)
                seconds = time.perf_counter() - start
            parts = watch.read()
            c = world.context(step)
            y = world.outcome(step, x, c)
            optimizer.tell(x, c, y)
            expected = problem.expected_value(x).item()
            rows.append(
                {
                    "iteration": iteration,
                    "x": x.flatten().tolist(),
                    "c": c.flatten().tolist(),
                    "y": y.item(),
                    "expected": expected,
                    "regret": optimal - expected,
                    "seconds": seconds,
                    "fit_seconds": parts["fit"],
                    "inner_seconds": parts["inner"],
                    "warnings": sorted({_first_line(w) for w in caught}),
                }
            )
        recommended = optimizer.recommend().x.reshape(1, -1)
    made = {
        "commit": commit(),
        "machine": machine(),
        "recommended": {
            "x": recommended.flatten().tolist(),
            "regret": optimal - problem.expected_value(recommended).item(),
        },
    }
    return Run(rows, header_of(task, recipe), made)


def build_algorithm(
    config: AlgorithmConfig,
    problem: RobustTestFunction,
    shared: Mapping[str, Any] | None = None,
) -> Recipe:
    """Turn a config's plain options into an algorithm.

    Args:
        config: The algorithm, with its own options.
        problem: What it plays on.
        shared: Options of all algorithms that have them, where it says nothing itself.

    Raises:
        ConfigError: Unknown algorithm, options it does not take, or the problem has no
            reference distribution.
    """
    if config.name not in RECIPES:
        raise ConfigError(
            f"There is no algorithm {config.name!r}."
            f"{did_you_mean(config.name, RECIPES)} `python -m benchmarks list` "
            "shows them."
        )
    own = _option_names(config)
    options = {k: v for k, v in (shared or {}).items() if k in own}
    options.update(config.options)
    try:
        return make_recipe(
            config.name, **{k: _option(k, v, problem) for k, v in options.items()}
        )
    except (InputDataError, TypeError) as error:
        raise ConfigError(f"Algorithm {config.label!r}: {error}") from error


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread: times compare, and results do not depend on the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _keep(run: Run, header: Mapping[str, Any], path: Path) -> None:
    """Write a run, if it is what was asked for."""
    different = differences(run.header, header)
    if different:
        raise ConfigError(
            "The process that made it has another version or config: "
            + "; ".join(different)
        )
    save_run(run, path)


def _first_line(warning: warnings.WarningMessage) -> str:
    return f"{warning.category.__name__}: {warning.message}".splitlines()[0]


def _option_names(config: AlgorithmConfig) -> set[str]:
    return set(RECIPES[config.name].options)


def _check_options(config: BenchmarkConfig) -> None:
    """Refuse a shared option that no algorithm has: it would be ignored in silence."""
    known = {
        name
        for algorithm in config.algorithms
        if algorithm.name in RECIPES
        for name in _option_names(algorithm)
    }
    for name in config.options:
        if name not in known:
            raise ConfigError(
                f"No algorithm of {config.name!r} has the option {name!r} of `options`."
                f"{did_you_mean(name, known)}"
            )


def _option(key: str, value: Any, problem: RobustTestFunction) -> Any:
    if key == "reference" and value == "problem":
        if problem.reference is None:
            raise ConfigError(
                f'`reference = "problem"`: the problem {type(problem).__name__} tells '
                "no reference distribution. Leave the option out (data-driven setting)."
            )
        return problem.reference
    if isinstance(value, Mapping) and "schedule" in value:
        return decode(dict(value), Rule, key)
    return value
