"""Runs of a config: recipes on test functions, in the paired worlds of the seeds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from botorch.exceptions.errors import InputDataError

import botorch_drbo
from benchmarks.run.config import (
    AlgorithmConfig,
    BenchmarkConfig,
    ConfigError,
    ProblemConfig,
    did_you_mean,
    from_dict,
)
from benchmarks.run.engine import full_header
from benchmarks.run.extensions import import_all
from benchmarks.run.stopwatch import stopwatch
from benchmarks.run.storage import (
    AND,
    Row,
    Run,
    RunKey,
    collected_runs,
    differences,
    header_name,
    refuse_others,
    run_file,
    save,
)
from benchmarks.run.world import World, make_problem
from botorch_drbo.codec import decode
from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.optimizer.events import Ask, CheckedTell, write_event
from botorch_drbo.optimizer.journal import write_state
from botorch_drbo.recipes import RECIPES, Recipe, make_recipe
from botorch_drbo.schedules.radii import Rule
from botorch_drbo.test_functions.base import RobustTestFunction


@dataclass(frozen=True)
class Task:
    """One run of a benchmark.

    Args:
        config: The benchmark.
        problem: One of its problems.
        algorithm: One of its algorithms.
        seed: One of its seeds.
    """

    config: BenchmarkConfig
    problem: ProblemConfig
    algorithm: AlgorithmConfig
    seed: int
    resumable: ClassVar[bool] = True  # what was asked and told is in the rows

    @property
    def key(self) -> RunKey:
        """Its name."""
        return RunKey(self.problem.label, self.algorithm.label, self.seed)

    @property
    def rounds(self) -> int:
        """The decisions that the algorithm chooses."""
        return self.config.iterations

    def header(self) -> dict[str, Any]:
        """The problem, the recipe with all its defaults, and the first decisions."""
        import_all(self.config.imports)
        recipe = build_algorithm(
            self.algorithm, _problem(self.problem), self.config.options
        )
        return {
            "problem": self.problem.name,
            "problem_options": dict(self.problem.options),
            "algorithm": recipe.to_dict(),
            "seed": self.seed,
            "initial": self.config.initial,
            "initial_design": self.config.initial_design,
            # Left out of what was begun before salts, as its files have it.
            **({"worlds": self.config.worlds} if self.config.worlds else {}),
        }

    def play(self, done: Sequence[Row]) -> Iterator[Row]:
        """From the initial decisions to the recommendation behind the last round."""
        config = self.config
        import_all(config.imports)
        problem = make_problem(self.problem)
        world = World(
            problem,
            self.problem.name,
            self.seed,
            config.initial_design,
            salt=config.worlds,
        )
        optimal = float(problem.optimal_value)
        optimizer = self._optimizer(world, done)
        for iteration in range(len(done), config.iterations):
            step = config.initial + iteration
            # Kept with the run: on the terminal they would tear the lines of progress.
            with stopwatch() as watch, warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                start = time.perf_counter()
                x = optimizer.ask(q=1)
                seconds = time.perf_counter() - start
                parts = watch.read()
            c = world.context(step)
            y = world.outcome(step, x, c)
            optimizer.tell(x, c, y)
            expected = problem.expected_value(x).item()
            row = {
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
                "recommended": None,
                "recommended_regret": None,
            }
            if iteration == config.iterations - 1:
                best = optimizer.recommend().x.reshape(1, -1)
                regret = optimal - problem.expected_value(best).item()
                row |= {
                    "recommended": best.flatten().tolist(),
                    "recommended_regret": regret,
                }
            yield row

    def _optimizer(self, world: World, done: Sequence[Row]) -> RobustOptimizer:
        """The optimizer after the rounds that are done, as if nothing had stopped."""
        problem = world.problem
        optimizer = RobustOptimizer(
            build_algorithm(self.algorithm, problem, self.config.options),
            problem.bounds,
            problem.context_bounds,
            seed=self.seed,
            num_initial=0,  # the world gives the initial decisions, to all the same
        )
        for step in range(self.config.initial):
            x, c = world.initial(step)
            y = world.outcome(step, x, c)
            optimizer.tell(x, c, y, closes_pending=False)
        if not done:
            return optimizer
        state: Any = optimizer.state_dict()
        events = list(state["events"])
        for row in done:
            x, c = (problem.bounds.new_tensor([row[name]]) for name in ("x", "c"))
            y = problem.bounds.new_tensor([row["y"]])
            for event in (Ask(x=x), CheckedTell(x=x, c=c, y=y)):
                events.append(write_event(event, len(events) + 1))
        return RobustOptimizer.from_state_dict(
            write_state(state["config"], state["environment"], events)
        )


def tasks_of(config: BenchmarkConfig, out: Path) -> list[Task]:
    """All runs of a benchmark; seed by seed, so that one stopped has whole seeds.

    Args:
        config: The benchmark.
        out: Its results folder.

    Raises:
        ConfigError: A shared option that no algorithm has, or the folder holds another
            benchmark.
    """
    import_all(config.imports)
    _check_options(config)
    tasks = [
        Task(config, problem, algorithm, seed)
        for seed in config.seeds
        for problem in config.problems
        for algorithm in config.algorithms
    ]
    refuse_others([task.key for task in tasks], out)
    return tasks


def unpack(out: Path) -> int:
    """Make the runs of a results folder from its ``results.parquet``.

    Then the benchmark goes on there with more rounds, seeds or methods, as it would
    where it was made.

    Args:
        out: The folder, as the repository has it.

    Returns:
        How many runs there are now.

    Raises:
        ConfigError: There are runs already; the results do not say what made each run,
            or it would be made otherwise today; a run is not whole; or the disk is
            full. Nothing has changed then.
    """
    if (out / "runs").exists():
        raise ConfigError(f"{out} has a folder `runs`: it can be continued as it is.")
    recorded, about = recorded_runs(out)
    machine = AND.join(about["machine"])
    made: dict[RunKey, Run] = {}
    for key, (task, rows) in recorded.items():
        if [row["iteration"] for row in rows] != list(range(len(rows))):
            raise ConfigError(f"{key} in {out} does not have all of its rounds.")
        own = [{k: v for k, v in row.items() if k != "commit"} for row in rows]
        by = {"commit": rows[0]["commit"], "machine": machine, "load": about["load"]}
        made[key] = Run(own, full_header(task), by)
    with TemporaryDirectory(dir=out, prefix="unpack") as folder:
        for key, run in made.items():
            save(run, run_file(Path(folder), key))
        (Path(folder) / "runs").rename(out / "runs")
    return len(made)


def recorded_runs(
    out: Path,
) -> tuple[dict[RunKey, tuple[Task, list[Row]]], dict[str, Any]]:
    """The tasks that would make the rows of a ``results.parquet`` today.

    Args:
        out: The folder, as the repository has it.

    Returns:
        Each run's task with its rows, and what the file says of all.

    Raises:
        ConfigError: The results do not say what made each run, or it would be made
            otherwise today. That another version of this library made it is no reason.
    """
    runs, about = collected_runs(out)
    if "headers" not in about or "config" not in about:
        raise ConfigError(
            f"The results in {out} do not say what made each run: they are of an "
            "experiment with a command of its own, or older than this can read. Make "
            "them anew with their command."
        )
    raw = {"worlds": "", **about["config"]}  # older files have no salt
    raw.pop("size", None)
    tasks = {task.key: task for task in tasks_of(from_dict(raw), out)}
    for key in runs:
        kept = about["headers"][header_name(key)] | {"seed": key.seed}
        # Its own version says less than the commit: 0.2.0 was the name of many.
        own = {"botorch_drbo": botorch_drbo.__version__}
        kept["versions"] = kept["versions"] | own
        if different := differences(kept, full_header(tasks[key])):
            raise ConfigError(
                f"{key} in {out} would be made otherwise today:\n  "
                + "\n  ".join(different)
                + "\nUse the versions and the commit that made it."
            )
    return {key: (tasks[key], rows) for key, rows in runs.items()}, about


@cache
def _problem(config: ProblemConfig) -> RobustTestFunction:
    """The test function; for headers, which need it for each algorithm and seed."""
    return make_problem(config)


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
        arguments = {name: part for name, part in value.items() if name != "schedule"}
        tag = f"botorch_drbo:{value.get('schedule')}"
        return decode({"class": tag, "arguments": arguments}, Rule, key)
    return value
