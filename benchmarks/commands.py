"""What each command of the benchmarks does; the work is done elsewhere.

Modules that import torch are imported by the command that needs them, so that
``--help`` and a misspelt option answer at once.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.run.config import (
    CONFIGS,
    BenchmarkConfig,
    ConfigError,
    from_dict,
    from_toml,
)

if TYPE_CHECKING:
    import pandas as pd

    from benchmarks.run.engine import Task
    from benchmarks.run.report import Report

LOCAL = Path(__file__).parent / "results-local"
RESULTS = Path(__file__).parent / "results"
# Seeds and decisions. BOCU has 10 seeds; its text does not say how many decisions.
BOCU_SIZES = {"smoke": (1, 2), "laptop": (3, 30), "paper": (10, 200)}
MISSPECIFIED_SIZES = {"smoke": (1, 5), "laptop": (5, 100), "paper": (10, 300)}
BOUNDS_SIZES = {"smoke": (1, 5), "laptop": (5, 200), "paper": (10, 1000)}
ACTION_SETS_SIZES = {"smoke": (1, 5), "laptop": (3, 300), "paper": (10, 1000)}
SPEED = {
    "posterior": "speed.md",
    "inner": "inner_speed.md",
    "thompson": "thompson_speed.md",
    "selection": "selection_speed.md",
    "surrogates": "surrogate_speed.md",
    "rows": "row_speed.md",
    "iterations": "iteration_speed.md",
    "kernels": "kernel_speed.md",
    "approximations": "approximations.md",
    "goals": "goals.md",
    "gpu": "gpu_speed.md",
}


def config_from_options(options: argparse.Namespace) -> BenchmarkConfig:
    """The config of ``run``: a file, changed by what the command line says.

    Raises:
        ConfigError: Neither a config nor all of what it would say, or both a config and
            another problem.
    """
    changes = {
        name: getattr(options, name)
        for name in ("iterations", "initial", "baseline")
        if getattr(options, name) is not None
    }
    if options.seeds is not None:
        changes["seeds"] = tuple(range(options.seeds))
    if options.name is not None and options.config is not None:
        raise ConfigError(
            f"Two configs, {options.name} and {options.config}: give one."
        )
    config = options.config if options.name is None else options.name
    if config is not None:
        if options.problem is not None or options.algorithms is not None:
            raise ConfigError(
                "A config says the problem and the algorithms: leave out --problem and "
                "--algorithms, or write another config."
            )
        return replace(from_toml(config, options.size), **changes)
    if options.problem is None or options.algorithms is None:
        raise ConfigError("Give a config, or --problem and --algorithms.")
    if options.size:
        raise ConfigError("--size chooses among the sizes of a config: give a config.")
    defaults = {"seeds": 3, "iterations": 30}
    return from_dict(
        {
            "problem": options.problem,
            "algorithms": options.algorithms,
            **defaults,
            **changes,
        },
        source="the command line",
    )


def writable(out: Path, *, folder: bool = False) -> Path:
    """The place of the results, once it is sure that they can be written there.

    Args:
        out: A results folder, or a report file.
        folder: Which of the two.

    Raises:
        ConfigError: It cannot be written. Better said now than after the run.
    """
    home = out if folder else out.parent
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home):
            pass
        if not folder and out.exists():
            with out.open("ab"):
                pass
    except OSError as error:
        raise ConfigError(
            f"The results cannot be written to {out}: {error}. Choose another --out."
        ) from error
    return out


def sweep_folder(out: Path, options: argparse.Namespace) -> Path:
    """The folder of the runs of a sweep, once it is sure that they may be added to it.

    Args:
        out: The folder.
        options: With ``any_commit``, runs of other commits may be there.

    Raises:
        ConfigError: It cannot be written, or holds runs of another commit.
    """
    folder = writable(out, folder=True)
    if not options.any_commit and not getattr(options, "report", False):
        from benchmarks.run.provenance import commit
        from benchmarks.run.storage import refuse_other_commits

        refuse_other_commits(folder, commit())
    return folder


def run(options: argparse.Namespace) -> int:
    config = config_from_options(options)
    out = LOCAL / config.name / config.size if options.out is None else options.out
    out = sweep_folder(out, options)
    from benchmarks.run.display import run_config

    return run_config(config, out, workers=options.workers, dask=options.dask)


def unpack(options: argparse.Namespace) -> int:
    from benchmarks.run.runner import unpack as make_runs

    out: Path = options.results
    print(
        f"{make_runs(out)} runs in {out / 'runs'}. To continue them: the command that "
        f"made them, same config and size, with --out {out} --any-commit."
    )
    return 0


def report(options: argparse.Namespace) -> int:
    from benchmarks.run.page import write_report

    first = options.results[0]
    home = first if first.is_dir() else first.parent
    out = home if options.out is None else options.out
    writable(out, folder=True)
    page = write_report(options.results, out, baseline=options.baseline)
    print(f"Report: {page}")
    return 0


def demo(options: argparse.Namespace) -> int:
    from benchmarks.experiments.demo import run_demo

    out = LOCAL / "demo" if options.out is None else options.out
    out = sweep_folder(out, options)
    seeds = tuple(range(options.first, options.first + options.shops))
    config = replace(from_toml("demo"), seeds=seeds)
    return run_demo(config, out, workers=options.workers)


def speed(options: argparse.Namespace) -> int:
    if options.name == "posterior":
        from benchmarks.speed.report import run_speed as run
    elif options.name == "inner":
        from benchmarks.speed.inner import run_inner_speed as run
    elif options.name == "thompson":
        from benchmarks.speed.thompson import run_thompson_speed as run
    elif options.name == "selection":
        from benchmarks.speed.selection import run_selection_speed as run
    elif options.name == "iterations":
        from benchmarks.speed.iterations import run_iteration_speed as run
    elif options.name == "kernels":
        from benchmarks.speed.kernels import run_kernel_speed as run
    elif options.name == "approximations":
        from benchmarks.speed.approximations import run_approximations as run
    elif options.name == "gpu":
        from benchmarks.speed.gpu import run_gpu_speed as run
    elif options.name == "goals":
        from benchmarks.speed.goals import run_goals as run
    elif options.name == "rows":
        from benchmarks.speed.rows import run_row_speed

        most, surrogate = options.most, options.surrogate
        run = partial(run_row_speed, most=most, surrogate=surrogate)
    else:
        from benchmarks.speed.asks import run_surrogate_speed as run
    out = RESULTS / SPEED[options.name] if options.out is None else options.out
    return run(writable(out), repeats=options.repeats, quick=options.quick)


def accuracy(options: argparse.Namespace) -> int:
    from benchmarks.accuracy.posterior import run_accuracy

    return run_accuracy(writable(options.out), quick=options.quick)


def tables(options: argparse.Namespace) -> int:
    from benchmarks.accuracy.tables import run_tables

    try:
        return run_tables(writable(options.out), functions=options.functions)
    except FileNotFoundError as error:
        raise ConfigError(str(error)) from error


def lipschitz(options: argparse.Namespace) -> int:
    from benchmarks.accuracy.lipschitz import run_lipschitz
    from benchmarks.accuracy.lipschitz_gradients import run_gradients

    if options.gradients:
        return run_gradients(writable(options.gradients), models=options.models)
    return run_lipschitz(writable(options.out), models=options.models)


def constraints(options: argparse.Namespace) -> int:
    from benchmarks.experiments.constraints import run_constraints

    out = RESULTS / "constraints.md" if options.out is None else options.out
    return run_constraints(out, seeds=options.seeds, rounds=options.rounds)


def search(options: argparse.Namespace) -> int:
    from benchmarks.accuracy.search import Sizes, run_search

    return run_search(writable(options.out), Sizes(options.histories))


def batches(options: argparse.Namespace) -> int:
    from benchmarks.experiments.batches import run_batches
    from benchmarks.experiments.pending import run_pending

    if options.pending:
        out = RESULTS / "pending.md" if options.out is None else options.out
        return run_pending(
            writable(out),
            seeds=options.seeds,
            rounds=options.rounds,
            q=options.q,
            workers=options.workers,
        )
    out = RESULTS / "batches.md" if options.out is None else options.out
    return run_batches(
        writable(out),
        seeds=options.seeds,
        rounds=options.rounds,
        q=options.q,
        workers=options.workers,
    )


def bocu(options: argparse.Namespace) -> int:
    from benchmarks.experiments.bocu import run_bocu

    seeds, iterations = _seeds_and_iterations(options, BOCU_SIZES)
    out = LOCAL / "bocu" / options.size if options.out is None else options.out
    return run_bocu(
        sweep_folder(out, options),
        seeds=seeds,
        iterations=iterations,
        problems=options.problems,
        distances=options.distances,
        objectives=options.objectives,
        methods=options.methods,
        workers=options.workers,
    )


def misspecified(options: argparse.Namespace) -> int:
    from benchmarks.experiments.misspecified import report, tasks

    return _seed_by_seed("misspecified", tasks, report, MISSPECIFIED_SIZES, options)


def bounds(options: argparse.Namespace) -> int:
    from benchmarks.experiments.bounds import report, tasks

    return _seed_by_seed("bounds", tasks, report, BOUNDS_SIZES, options)


def action_sets(options: argparse.Namespace) -> int:
    from benchmarks.experiments.action_sets import report, tasks

    return _seed_by_seed("action_sets", tasks, report, ACTION_SETS_SIZES, options)


def tournament(options: argparse.Namespace) -> int:
    from benchmarks.experiments.tournament.play import play

    out = LOCAL / "tournament" / options.size if options.out is None else options.out
    return play(
        sweep_folder(out, options),
        size=options.size,
        workers=options.workers,
        methods=options.methods,
        only=options.cases,
        report_only=options.report,
    )


def claims(options: argparse.Namespace) -> int:
    from benchmarks.experiments.claims.learn import tasks_of
    from benchmarks.experiments.claims.play import play

    out = RESULTS / "tournament" if options.out is None else options.out
    work = LOCAL / "claims" if options.work is None else options.work
    tasks = tasks_of(
        options.learners,
        options.cases,
        seeds=options.seeds,
        rounds=options.rounds,
        common=options.common,
    )
    return play(
        tasks,
        work=sweep_folder(work, options),
        out=writable(out, folder=True),
        workers=options.workers,
        report_only=options.report,
    )


def scope(options: argparse.Namespace) -> int:
    from benchmarks.experiments.scope.play import play

    out = RESULTS / "scope" if options.out is None else options.out
    work = LOCAL / "scope" if options.work is None else options.work
    return play(
        options.study,
        work=work,
        out=writable(out, folder=True),
        workers=options.workers,
        report_only=options.report,
    )


def price(options: argparse.Namespace) -> int:
    from benchmarks.experiments.price.play import play

    out = RESULTS / "price" if options.out is None else options.out
    work = LOCAL / "price" if options.work is None else options.work
    return play(
        options.parts,
        work=work,
        out=writable(out, folder=True),
        workers=options.workers,
        report_only=options.report,
    )


def papers(options: argparse.Namespace) -> int:
    from benchmarks.experiments.papers.report import make_report

    out = RESULTS / "papers.md" if options.out is None else options.out
    page = make_report().write(writable(out))
    print(f"Report: {page}")
    return 0


def results(options: argparse.Namespace) -> int:
    from benchmarks.raw import restore

    files = restore(RESULTS, options.commit, options.name)
    print(f"{len(files)} raw files of the git history are in {RESULTS}.")
    return 0


def summaries(options: argparse.Namespace) -> int:
    from benchmarks.experiments.small_tables import write_small_tables

    for folder in write_small_tables(RESULTS):
        print(f"Tables: {folder}")
    return 0


def unchanged(options: argparse.Namespace) -> int:
    from benchmarks.experiments.unchanged import unchanged_table

    out = writable(RESULTS / "unchanged.md" if options.out is None else options.out)
    out.write_text(f"{unchanged_table(RESULTS)}\n", encoding="utf-8")
    print(f"Report: {out}")
    return 0


def reproduced(options: argparse.Namespace) -> int:
    from benchmarks.experiments.reproduced import reproduced as make_again

    out = writable(RESULTS / "reproduced.md" if options.out is None else options.out)
    report = make_again(RESULTS, options.results, workers=options.workers)
    print(f"Report: {report.write(out)}")
    return 0


def rerun(options: argparse.Namespace) -> int:
    from benchmarks.experiments.rerun import rerun_table

    table = rerun_table(RESULTS, options.name, options.commit)
    name = RESULTS / options.name / "rerun.md"
    out = writable(name if options.out is None else options.out)
    out.write_text(f"{table}\n", encoding="utf-8")
    print(f"Report: {out}")
    return 0


def development(options: argparse.Namespace) -> int:
    from benchmarks.development.learn import tasks_of
    from benchmarks.development.play import play

    out = RESULTS / "development" if options.out is None else options.out
    work = LOCAL / "development" if options.work is None else options.work
    halves = ["A", "B"] if options.half is None else [options.half]
    tasks = tasks_of(
        halves=halves,
        cases=options.cases,
        methods=options.methods,
        surrogates=options.surrogates,
        seeds=0 if options.report else options.seeds,
        rounds=options.rounds,
    )
    return play(
        tasks,
        work=sweep_folder(work, options),
        out=writable(out, folder=True),
        workers=options.workers,
        command="python -m benchmarks development",
    )


def calibration(options: argparse.Namespace) -> int:
    from benchmarks.development.calibrate import calibrate
    from benchmarks.development.random_rows import measure_intervals

    out = RESULTS / "development" if options.out is None else options.out
    work = LOCAL / "development" if options.work is None else options.work
    about = {
        "work": sweep_folder(work, options),
        "out": writable(out, folder=True),
        "halves": ["A", "B"] if options.half is None else [options.half],
        "seeds": options.seeds,
        "workers": options.workers,
    }
    if options.random_rows:
        return measure_intervals(**about)
    return calibrate(**about, first_seed=options.first_seed)


def explained(options: argparse.Namespace) -> int:
    from benchmarks.development.explained import SEEDS, measure_explained

    out = RESULTS / "explained.md" if options.out is None else options.out
    seeds = options.seeds or SEEDS
    return measure_explained(writable(out), seeds=seeds, workers=options.workers)


def _seed_by_seed(
    name: str,
    tasks: Callable[[int, int], Sequence[Task]],
    report: Callable[[pd.DataFrame], Report],
    sizes: Mapping[str, tuple[int, int]],
    options: argparse.Namespace,
) -> int:
    """Run an experiment that is a list of runs for each seed."""
    from benchmarks.run.display import run_seeds

    seeds, iterations = _seeds_and_iterations(options, sizes)
    out = LOCAL / name / options.size if options.out is None else options.out
    return run_seeds(
        tasks,
        report,
        sweep_folder(out, options),
        seeds=seeds,
        iterations=iterations,
        workers=options.workers,
    )


def _seeds_and_iterations(
    options: argparse.Namespace, sizes: Mapping[str, tuple[int, int]]
) -> tuple[int, int]:
    """Those of the size, unless the command line says otherwise."""
    seeds, iterations = sizes[options.size]
    return (
        seeds if options.seeds is None else options.seeds,
        iterations if options.iterations is None else options.iterations,
    )


def show_names(options: argparse.Namespace) -> int:
    from benchmarks.problems import PROBLEMS
    from botorch_drbo.recipes import RECIPES

    print("problems:  ", *sorted(PROBLEMS))
    print("algorithms:", *sorted(RECIPES))
    print("configs:   ", *sorted(path.stem for path in CONFIGS.glob("*.toml")))
    return 0
