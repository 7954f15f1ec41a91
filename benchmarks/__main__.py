"""The command line of the benchmarks; all the work is done elsewhere.

argparse, not typer: ``--algorithms wdrbo erbo gp_ucb`` takes several values after one
flag. Modules that import torch are imported by the command that needs them, so that
``--help`` and a misspelt option answer at once.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.run.config import (
    CONFIGS,
    SIZES,
    BenchmarkConfig,
    ConfigError,
    from_dict,
    from_toml,
)

LOCAL = Path(__file__).parent / "results-local"
RESULTS = Path(__file__).parent / "results"
# Seeds and decisions. BOCU has 10 seeds; its text does not say how many decisions.
BOCU_SIZES = {"smoke": (1, 2), "laptop": (3, 30), "paper": (10, 200)}
MISSPECIFIED_SIZES = {"smoke": (1, 5), "laptop": (5, 100), "paper": (10, 300)}
ACTION_SETS_SIZES = {"smoke": (1, 5), "laptop": (3, 300), "paper": (10, 1000)}
SPEED = {
    "posterior": "speed.md",
    "inner": "inner_speed.md",
    "thompson": "thompson_speed.md",
    "selection": "selection_speed.md",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status."""
    options = _parser().parse_args(arguments)
    # Libraries read these when they are first imported, here and in worker processes.
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    try:
        return options.command(options)
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


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


def _run(options: argparse.Namespace) -> int:
    config = config_from_options(options)
    out = LOCAL / config.name / config.size if options.out is None else options.out
    out = writable(out, folder=True)
    from benchmarks.run.display import run_and_report

    return run_and_report(config, out, workers=options.workers, dask=options.dask)


def _report(options: argparse.Namespace) -> int:
    from benchmarks.run.page import write_report

    first = options.results[0]
    home = first if first.is_dir() else first.parent
    out = home if options.out is None else options.out
    writable(out, folder=True)
    page = write_report(options.results, out, baseline=options.baseline)
    print(f"Report: {page}")
    return 0


def _demo(options: argparse.Namespace) -> int:
    from benchmarks.experiments.demo import run_demo

    out = LOCAL / "demo" if options.out is None else options.out
    out = writable(out, folder=True)
    return run_demo(from_toml("demo"), out, workers=options.workers)


def _speed(options: argparse.Namespace) -> int:
    if options.name == "posterior":
        from benchmarks.speed.report import run_speed as run
    elif options.name == "inner":
        from benchmarks.speed.inner import run_inner_speed as run
    elif options.name == "thompson":
        from benchmarks.speed.thompson import run_thompson_speed as run
    else:
        from benchmarks.speed.selection import run_selection_speed as run
    out = RESULTS / SPEED[options.name] if options.out is None else options.out
    return run(writable(out), repeats=options.repeats, quick=options.quick)


def _accuracy(options: argparse.Namespace) -> int:
    from benchmarks.accuracy.posterior import run_accuracy

    return run_accuracy(writable(options.out), quick=options.quick)


def _lipschitz(options: argparse.Namespace) -> int:
    from benchmarks.accuracy.lipschitz import run_lipschitz
    from benchmarks.accuracy.lipschitz_gradients import run_gradients

    if options.gradients:
        return run_gradients(writable(options.gradients), models=options.models)
    return run_lipschitz(writable(options.out), models=options.models)


def _constraints(options: argparse.Namespace) -> int:
    from benchmarks.experiments.constraints import run_constraints

    out = RESULTS / "constraints.md" if options.out is None else options.out
    return run_constraints(out, seeds=options.seeds, rounds=options.rounds)


def _search(options: argparse.Namespace) -> int:
    from benchmarks.accuracy.search import Sizes, run_search

    return run_search(writable(options.out), Sizes(options.histories))


def _batches(options: argparse.Namespace) -> int:
    from benchmarks.experiments.batches import run_batches
    from benchmarks.experiments.pending import run_pending

    if options.pending:
        return run_pending(
            RESULTS / "pending.md" if options.out is None else options.out,
            seeds=options.seeds,
            rounds=options.rounds,
            q=options.q,
        )
    out = RESULTS / "batches.md" if options.out is None else options.out
    return run_batches(
        writable(out),
        seeds=options.seeds,
        rounds=options.rounds,
        q=options.q,
        workers=options.workers,
    )


def _bocu(options: argparse.Namespace) -> int:
    from benchmarks.experiments.bocu import run_bocu

    seeds, iterations = _seeds_and_iterations(options, BOCU_SIZES)
    out = LOCAL / "bocu" / options.size if options.out is None else options.out
    return run_bocu(
        writable(out, folder=True),
        seeds=seeds,
        iterations=iterations,
        problems=options.problems,
        distances=options.distances,
        objectives=options.objectives,
        methods=options.methods,
        workers=options.workers,
    )


def _misspecified(options: argparse.Namespace) -> int:
    from benchmarks.experiments.misspecified import run_misspecified

    seeds, iterations = _seeds_and_iterations(options, MISSPECIFIED_SIZES)
    out = LOCAL / "misspecified" / options.size if options.out is None else options.out
    return run_misspecified(
        writable(out, folder=True),
        seeds=seeds,
        iterations=iterations,
        workers=options.workers,
    )


def _action_sets(options: argparse.Namespace) -> int:
    from benchmarks.experiments.action_sets import run_action_sets

    seeds, rounds = _seeds_and_iterations(options, ACTION_SETS_SIZES)
    out = LOCAL / "action_sets" / options.size if options.out is None else options.out
    return run_action_sets(
        writable(out, folder=True),
        seeds=seeds,
        rounds=rounds,
        workers=options.workers,
    )


def _tournament(options: argparse.Namespace) -> int:
    from benchmarks.experiments.tournament.play import play

    out = LOCAL / "tournament" / options.size if options.out is None else options.out
    return play(
        writable(out, folder=True),
        size=options.size,
        workers=options.workers,
        methods=options.methods,
        only=options.cases,
        report_only=options.report,
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


def _list(options: argparse.Namespace) -> int:
    from botorch_drbo.algorithms import ALGORITHMS
    from botorch_drbo.test_functions import TEST_FUNCTIONS

    print("problems:  ", *sorted(TEST_FUNCTIONS))
    print("algorithms:", *sorted(ALGORITHMS))
    print("configs:   ", *sorted(path.stem for path in CONFIGS.glob("*.toml")))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Robust Bayesian optimisation methods side by side.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser(
        "run",
        help="run algorithms on a problem; the same command resumes a killed run",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    run.set_defaults(command=_run)
    run.add_argument(
        "name",
        nargs="?",
        metavar="CONFIG",
        help="a TOML file, or the name of one in configs/",
    )
    run.add_argument("--config", help="the same")
    run.add_argument(
        "--size",
        choices=SIZES,
        default="",
        help="of the config (laptop, where it has that)",
    )
    run.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="tcp://... of a dask scheduler, or `local`: two workers or more, here",
    )
    run.add_argument("--problem", help="a test function; `list` shows them")
    run.add_argument(
        "--algorithms", nargs="+", metavar="NAME", help="one or more names"
    )
    run.add_argument(
        "--seeds", type=int, help="how many seeds: 0, 1, ... (3 if no config)"
    )
    run.add_argument(
        "--iterations", type=int, help="decisions per run (30 if no config)"
    )
    run.add_argument(
        "--initial", type=int, help="random decisions first (5 if no config)"
    )
    run.add_argument(
        "--baseline", help="the algorithm of paired differences (the first)"
    )
    run.add_argument(
        "--out", type=Path, help="results folder (results-local/NAME/SIZE)"
    )
    _add_workers(run)

    report = commands.add_parser(
        "report", help="tables, tests, ranks and pictures of results: one HTML page"
    )
    report.set_defaults(command=_report)
    report.add_argument(
        "results", nargs="+", type=Path, help="folders that `run` has written"
    )
    report.add_argument("--baseline", default="", help="(that of the first config)")
    report.add_argument("--out", type=Path, help="folder (the first of the results)")

    demo = commands.add_parser(
        "demo", help="robust and plain methods on one small problem, in two minutes"
    )
    demo.set_defaults(command=_demo)
    demo.add_argument("--out", type=Path, help="results folder (results-local/demo)")
    _add_workers(demo)

    speed = commands.add_parser(
        "speed", help="times against BoTorch's idiom or cvxpy; memory"
    )
    speed.set_defaults(command=_speed)
    speed.add_argument(
        "name",
        nargs="?",
        choices=list(SPEED),
        default="posterior",
        help="posterior: the whole report, against BoTorch's idiom (the default); "
        "inner: the ambiguity sets against cvxpy; thompson: a step of ts_bocu, the "
        "paper's way; selection: choosing from a list by variance",
    )
    speed.add_argument("--out", type=Path, help="report file (in results/)")
    speed.add_argument(
        "--repeats", type=int, default=5, help="medians are taken over these"
    )
    speed.add_argument("--quick", action="store_true", help="tiny sizes: does it run?")

    accuracy = commands.add_parser(
        "accuracy", help="the product path against model.posterior"
    )
    accuracy.set_defaults(command=_accuracy)
    accuracy.add_argument(
        "--out", type=Path, default=RESULTS / "accuracy.md", help="report file"
    )
    accuracy.add_argument("--quick", action="store_true", help="one tiny model")

    lipschitz = commands.add_parser(
        "lipschitz", help="the searched L(x) against dense grids"
    )
    lipschitz.set_defaults(command=_lipschitz)
    lipschitz.add_argument(
        "--gradients", type=Path, help="values and gradients instead, to this file"
    )
    lipschitz.add_argument(
        "--out", type=Path, default=RESULTS / "lipschitz.md", help="report file"
    )
    lipschitz.add_argument(
        "--models", type=int, default=90, help="random models for one context column"
    )

    constraints = commands.add_parser(
        "constraints", help="outcome constraints: ambiguity heeded, and ignored"
    )
    constraints.set_defaults(command=_constraints)
    constraints.add_argument("--seeds", type=int, default=5, help="how many: 0, 1, ...")
    constraints.add_argument("--rounds", type=int, default=10, help="after the design")
    constraints.add_argument(
        "--out", type=Path, help="report file (results/constraints.md)"
    )

    search = commands.add_parser(
        "search", help="how often a recipe misses the maximum of its own function"
    )
    search.set_defaults(command=_search)
    search.add_argument(
        "--out", type=Path, default=RESULTS / "search.md", help="report file"
    )
    search.add_argument("--histories", type=int, default=16, help="on each problem")

    batches = commands.add_parser(
        "batches", help="batches chosen jointly against decision by decision"
    )
    batches.set_defaults(command=_batches)
    batches.add_argument("--seeds", type=int, default=10, help="how many: 0, 1, ...")
    batches.add_argument("--rounds", type=int, default=8, help="batches of each run")
    batches.add_argument("--q", type=int, default=4, help="decisions of each batch")
    batches.add_argument(
        "--pending",
        action="store_true",
        help="how decisions of a batch keep apart, on three problems (in one process)",
    )
    batches.add_argument(
        "--out", type=Path, help="report file (results/batches.md or pending.md)"
    )
    _add_workers(batches)

    bocu = commands.add_parser(
        "bocu",
        help="the BOCU paper's experiment; the same command resumes a killed run",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    bocu.set_defaults(command=_bocu)
    _add_size(bocu, BOCU_SIZES)
    functions = ["gp_prior_2_2", "hartmann_2_1", "plant_growth", "covid_testing"]
    bocu.add_argument(
        "--problems",
        nargs="+",
        choices=functions,
        default=functions,
        help="the functions; each has a folder of its own",
    )
    bocu.add_argument(
        "--distances",
        nargs="+",
        choices=("tv", "mmd"),
        default=["tv", "mmd"],
        help="of the balls",
    )
    bocu.add_argument(
        "--objectives",
        nargs="+",
        choices=("dro", "wcs", "gen"),
        default=["dro", "wcs", "gen"],
        help="what decisions are judged by",
    )
    names = ["ts_bocu", "ucb_bocu_1", "ucb_bocu_2", "ucb_so", "ucb_ro", "random"]
    bocu.add_argument(
        "--methods",
        nargs="+",
        choices=names,
        default=names,
        help="the recipes; the first is the one compared with",
    )
    bocu.add_argument(
        "--out", type=Path, help="results folder (results-local/bocu/SIZE)"
    )
    _add_workers(bocu)

    wrong = commands.add_parser(
        "misspecified",
        help="methods for a wrong model; the same command resumes a killed run",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    wrong.set_defaults(command=_misspecified)
    _add_size(wrong, MISSPECIFIED_SIZES)
    wrong.add_argument(
        "--out", type=Path, help="results folder (results-local/misspecified/SIZE)"
    )
    _add_workers(wrong)

    offers = commands.add_parser(
        "action_sets",
        help="regret balancing where each round offers other decisions",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    offers.set_defaults(command=_action_sets)
    _add_size(offers, ACTION_SETS_SIZES)
    offers.add_argument(
        "--out", type=Path, help="results folder (results-local/action_sets/SIZE)"
    )
    _add_workers(offers)

    tournament = commands.add_parser(
        "tournament",
        help="which method to take when the world misbehaves after the data",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    tournament.set_defaults(command=_tournament)
    tournament.add_argument("--size", choices=SIZES, default="laptop", help="how much")
    tournament.add_argument(
        "--methods", nargs="+", default=[], help="all methods if none is named"
    )
    tournament.add_argument(
        "--cases", nargs="+", default=[], help="those of the size if none is named"
    )
    tournament.add_argument(
        "--report",
        action="store_true",
        help="learn nothing, report on the seeds that all methods have finished",
    )
    tournament.add_argument(
        "--out", type=Path, help="results folder (results-local/tournament/SIZE)"
    )
    _add_workers(tournament)

    show = commands.add_parser("list", help="the problems, algorithms and configs")
    show.set_defaults(command=_list)
    return parser


def _add_size(
    parser: argparse.ArgumentParser, sizes: Mapping[str, tuple[int, int]]
) -> None:
    about = ", ".join(f"{name} {s} and {n}" for name, (s, n) in sizes.items())
    parser.add_argument(
        "--size",
        choices=SIZES,
        default="laptop",
        help=f"seeds and decisions of a run: {about}",
    )
    parser.add_argument("--seeds", type=int, help="how many: 0, 1, ... (of the size)")
    parser.add_argument("--iterations", type=int, help="decisions per run (likewise)")


def _add_workers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workers",
        "--jobs",
        type=int,
        default=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1,
        help="processes, each on one thread (the cores)",
    )


if __name__ == "__main__":
    sys.exit(main())
