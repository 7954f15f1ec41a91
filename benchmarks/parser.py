"""The arguments of the benchmarks' command line.

argparse, not typer: ``--algorithms wdrbo erbo gp_ucb`` takes several values after one
flag.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from benchmarks import commands
from benchmarks.run.config import SIZES


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Robust Bayesian optimisation methods side by side.",
    )
    kinds = parser.add_subparsers(required=True, metavar="COMMAND")

    run = kinds.add_parser(
        "run",
        help="run algorithms on a problem; the same command resumes a killed run",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    run.set_defaults(command=commands.run)
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

    report = kinds.add_parser(
        "report", help="tables, tests, ranks and pictures of results"
    )
    report.set_defaults(command=commands.report)
    report.add_argument(
        "results", nargs="+", type=Path, help="folders that `run` has written"
    )
    report.add_argument("--baseline", default="", help="(that of the first config)")
    report.add_argument("--out", type=Path, help="folder (the first of the results)")

    unpack = kinds.add_parser(
        "unpack", help="make the runs of a results folder again, to go on with them"
    )
    unpack.set_defaults(command=commands.unpack)
    unpack.add_argument("results", type=Path, help="a folder that `run` has written")

    demo = kinds.add_parser(
        "demo", help="robust and plain methods on one small problem, in two minutes"
    )
    demo.set_defaults(command=commands.demo)
    demo.add_argument("--out", type=Path, help="results folder (results-local/demo)")
    demo.add_argument(
        "--shops", type=int, default=8, help="how many; each has its own demands (8)"
    )
    demo.add_argument(
        "--first", type=int, default=0, help="the seed of the first shop (0)"
    )
    _add_workers(demo)

    speed = kinds.add_parser(
        "speed", help="times against BoTorch's idiom or cvxpy; memory"
    )
    speed.set_defaults(command=commands.speed)
    speed.add_argument(
        "name",
        nargs="?",
        choices=list(commands.SPEED),
        default="posterior",
        help="posterior: the whole report, against BoTorch's idiom (the default); "
        "inner: the ambiguity sets against cvxpy; thompson: a step of ts_bocu, the "
        "paper's way; selection: choosing from a list by variance; surrogates: an ask "
        "with each of them; rows: thousands of outcomes; iterations: a whole iteration "
        "of every recipe; kernels: the posterior by kernel; approximations: "
        "what cheaper rankings and residuals lose; goals: what answers "
        "cost beside other ways, and should; gpu: a GPU beside the processor",
    )
    speed.add_argument("--out", type=Path, help="report file (in results/)")
    speed.add_argument(
        "--repeats", type=int, default=5, help="medians are taken over these"
    )
    speed.add_argument("--quick", action="store_true", help="tiny sizes: does it run?")
    speed.add_argument(
        "--most", type=int, help="rows: leave out what has more outcomes than this"
    )
    speed.add_argument("--surrogate", help="rows: exact models of this one alone")

    accuracy = kinds.add_parser(
        "accuracy", help="the product path against model.posterior"
    )
    accuracy.set_defaults(command=commands.accuracy)
    accuracy.add_argument(
        "--out", type=Path, default=commands.RESULTS / "accuracy.md", help="report file"
    )
    accuracy.add_argument("--quick", action="store_true", help="one tiny model")

    tables = kinds.add_parser(
        "tables", help="real tables of categories: what is learnt from a few rows"
    )
    tables.set_defaults(command=commands.tables)
    tables.add_argument(
        "--out", type=Path, default=commands.RESULTS / "tables.md", help="report file"
    )
    tables.add_argument(
        "--functions", type=int, default=40, help="random ones of each kind (40)"
    )

    lipschitz = kinds.add_parser(
        "lipschitz", help="the searched L(x) against dense grids"
    )
    lipschitz.set_defaults(command=commands.lipschitz)
    lipschitz.add_argument(
        "--gradients", type=Path, help="values and gradients instead, to this file"
    )
    lipschitz.add_argument(
        "--out",
        type=Path,
        default=commands.RESULTS / "lipschitz.md",
        help="report file",
    )
    lipschitz.add_argument(
        "--models", type=int, default=90, help="random models for one context column"
    )

    constraints = kinds.add_parser(
        "constraints", help="outcome constraints: ambiguity considered, and ignored"
    )
    constraints.set_defaults(command=commands.constraints)
    constraints.add_argument("--seeds", type=int, default=5, help="how many: 0, 1, ...")
    constraints.add_argument("--rounds", type=int, default=10, help="after the design")
    constraints.add_argument(
        "--out", type=Path, help="report file (results/constraints.md)"
    )

    search = kinds.add_parser(
        "search", help="how often a recipe misses the maximum of its own function"
    )
    search.set_defaults(command=commands.search)
    search.add_argument(
        "--out", type=Path, default=commands.RESULTS / "search.md", help="report file"
    )
    search.add_argument("--histories", type=int, default=16, help="on each problem")

    batches = kinds.add_parser(
        "batches", help="batches chosen jointly against decision by decision"
    )
    batches.set_defaults(command=commands.batches)
    batches.add_argument("--seeds", type=int, default=10, help="how many: 0, 1, ...")
    batches.add_argument("--rounds", type=int, default=8, help="batches of each run")
    batches.add_argument("--q", type=int, default=4, help="decisions of each batch")
    batches.add_argument(
        "--pending",
        action="store_true",
        help="how decisions of a batch keep apart, on three problems",
    )
    batches.add_argument(
        "--out", type=Path, help="report file (results/batches.md or pending.md)"
    )
    _add_workers(batches)

    bocu = kinds.add_parser(
        "bocu",
        help="the BOCU paper's experiment; the same command resumes a killed run",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    bocu.set_defaults(command=commands.bocu)
    _add_size(bocu, commands.BOCU_SIZES)
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

    wrong = kinds.add_parser(
        "misspecified",
        help="methods for a wrong model; the same command resumes a killed run",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    wrong.set_defaults(command=commands.misspecified)
    _add_size(wrong, commands.MISSPECIFIED_SIZES)
    wrong.add_argument(
        "--out", type=Path, help="results folder (results-local/misspecified/SIZE)"
    )
    _add_workers(wrong)

    bounds = kinds.add_parser(
        "bounds",
        help="the bound of a theorem beside the regret that it bounds",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    bounds.set_defaults(command=commands.bounds)
    _add_size(bounds, commands.BOUNDS_SIZES)
    bounds.add_argument(
        "--out", type=Path, help="results folder (results-local/bounds/SIZE)"
    )
    _add_workers(bounds)

    offers = kinds.add_parser(
        "action_sets",
        help="regret balancing where each round offers other decisions",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    offers.set_defaults(command=commands.action_sets)
    _add_size(offers, commands.ACTION_SETS_SIZES)
    offers.add_argument(
        "--out", type=Path, help="results folder (results-local/action_sets/SIZE)"
    )
    _add_workers(offers)

    tournament = kinds.add_parser(
        "tournament",
        help="which method to take when the contexts shift after the data",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    tournament.set_defaults(command=commands.tournament)
    tournament.add_argument(
        "--size",
        choices=("smoke", "laptop", "paper"),
        default="laptop",
        help="how much",
    )
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

    _add_claims(kinds)
    _add_development(kinds)

    explained = kinds.add_parser(
        "explained", help="how much a model is said to explain, and what is true"
    )
    explained.set_defaults(command=commands.explained)
    explained.add_argument(
        "--seeds", nargs="+", type=int, default=[], help="of the data (the final ones)"
    )
    explained.add_argument(
        "--out", type=Path, help="report file (results/explained.md)"
    )
    _add_processes(explained)

    papers = kinds.add_parser(
        "papers", help="what the papers' texts say, against the committed results"
    )
    papers.set_defaults(command=commands.papers)
    papers.add_argument("--out", type=Path, help="report file (results/papers.md)")

    results = kinds.add_parser(
        "results", help="raw results, rows and pictures, out of the git history"
    )
    results.set_defaults(command=commands.results)
    results.add_argument(
        "commit",
        nargs="?",
        default="last",
        metavar="COMMIT",
        help="that has them; `last` for the last one that does (last)",
    )
    results.add_argument(
        "name",
        nargs="?",
        default="",
        metavar="EXPERIMENT",
        help="a folder of results/ (all)",
    )

    summaries = kinds.add_parser(
        "summaries", help="the small tables of all raw results in results/ again"
    )
    summaries.set_defaults(command=commands.summaries)

    unchanged = kinds.add_parser(
        "unchanged", help="which recorded answers have changed since a result was made"
    )
    unchanged.set_defaults(command=commands.unchanged)
    unchanged.add_argument(
        "--out", type=Path, help="report file (results/unchanged.md)"
    )

    reproduced = kinds.add_parser(
        "reproduced", help="make one round of each committed run again, and compare"
    )
    reproduced.set_defaults(command=commands.reproduced)
    reproduced.add_argument("--results", nargs="+", default=[], help="which (all)")
    reproduced.add_argument(
        "--out", type=Path, help="report file (results/reproduced.md)"
    )
    _add_processes(reproduced)

    rerun = kinds.add_parser(
        "rerun", help="how far runs are from those that an earlier commit recorded"
    )
    rerun.set_defaults(command=commands.rerun)
    rerun.add_argument("name", metavar="EXPERIMENT", help="a folder of results/")
    rerun.add_argument("commit", metavar="COMMIT", help="that has the earlier runs")
    rerun.add_argument(
        "--out", type=Path, help="report file (results/EXPERIMENT/rerun.md)"
    )

    price = kinds.add_parser(
        "price",
        help="what a limit on the price of robustness buys: claims written down before "
        "the runs; the same command goes on with what a killed one has left",
    )
    price.set_defaults(command=commands.price)
    price.add_argument("--parts", nargs="+", default=[], help="what is played (all)")

    scope = kinds.add_parser(
        "scope",
        help="which trials serve a list of contexts: claims written down before the "
        "runs; the same command goes on with what a killed one has left",
    )
    scope.set_defaults(command=commands.scope)
    scope.add_argument(
        "study",
        nargs="?",
        choices=("trials", "plates"),
        default="trials",
        help="trials: which contexts they have, in plates of 12 (default); plates: "
        "plates of 8, levels with features",
    )
    for study in (price, scope):
        study.add_argument(
            "--work", type=Path, help="folder of the blocks (in results-local)"
        )
        study.add_argument("--out", type=Path, help="folder of table and report")
        study.add_argument(
            "--report", action="store_true", help="play nothing, report on the table"
        )
        _add_workers(study)

    show = kinds.add_parser("list", help="the problems, algorithms and configs")
    show.set_defaults(command=commands.show_names)
    return parser


def _add_claims(kinds: argparse._SubParsersAction) -> None:
    claims = kinds.add_parser(
        "claims",
        help="five claims about methods, written down before the runs; the same "
        "command continues a killed one",
    )
    claims.set_defaults(command=commands.claims)
    claims.add_argument("--learners", nargs="+", default=[], help="who asks (all)")
    claims.add_argument("--cases", nargs="+", default=[], help="functions (all)")
    claims.add_argument(
        "--seeds", type=int, default=20, help="how many: 1, 2, ... (20)"
    )
    claims.add_argument(
        "--rounds", type=int, default=15, help="outcomes of each own run (15)"
    )
    claims.add_argument(
        "--common", type=int, default=30, help="outcomes of the common data (30)"
    )
    claims.add_argument(
        "--report", action="store_true", help="run nothing, report on the table"
    )
    claims.add_argument(
        "--out", type=Path, help="folder of table and report (results/tournament)"
    )
    claims.add_argument(
        "--work",
        type=Path,
        help="folder of the runs of this machine (results-local/claims)",
    )
    _add_workers(claims)


def _add_development(kinds: argparse._SubParsersAction) -> None:
    development = kinds.add_parser(
        "development",
        help="on which functions defaults are chosen; the same command goes on with "
        "what a killed one has left",
    )
    development.set_defaults(command=commands.development)
    development.add_argument(
        "--cases", nargs="+", default=[], help="functions of the half (all)"
    )
    development.add_argument(
        "--seeds", type=int, default=10, help="how many: 0, 1, ... (10)"
    )
    development.add_argument(
        "--rounds", type=int, default=15, help="outcomes of each run (15)"
    )
    development.add_argument(
        "--methods", nargs="+", default=["erbo"], help="recipes (erbo)"
    )
    development.add_argument(
        "--surrogates", nargs="+", default=[], help="candidates (all)"
    )
    development.add_argument(
        "--report", action="store_true", help="run nothing, report on what is there"
    )
    _add_workers(development)
    calibration = kinds.add_parser(
        "calibration",
        help="whether models know what they do not know, of the runs of `development`",
    )
    calibration.set_defaults(command=commands.calibration)
    calibration.add_argument(
        "--seeds", type=int, default=5, help="of promises, those below this (5)"
    )
    calibration.add_argument(
        "--first-seed", type=int, default=0, help="of promises after runs (0)"
    )
    calibration.add_argument(
        "--random-rows",
        action="store_true",
        help="intervals alone, after random decisions: needs no runs",
    )
    for command in (development, calibration):
        command.add_argument(
            "--half", choices=["A", "B"], help="of the functions (both)"
        )
        command.add_argument(
            "--out", type=Path, help="folder of tables (results/development)"
        )
        command.add_argument(
            "--work",
            type=Path,
            help="folder of the runs of this machine (results-local/development)",
        )
    _add_workers(calibration)


def _add_size(
    parser: argparse.ArgumentParser, sizes: Mapping[str, tuple[int, int]]
) -> None:
    about = ", ".join(f"{name} {s} and {n}" for name, (s, n) in sizes.items())
    parser.add_argument(
        "--size",
        choices=tuple(sizes),
        default="laptop",
        help=f"seeds and decisions of a run: {about}",
    )
    parser.add_argument("--seeds", type=int, help="how many: 0, 1, ... (of the size)")
    parser.add_argument("--iterations", type=int, help="decisions per run (likewise)")


def _add_workers(parser: argparse.ArgumentParser) -> None:
    """Of a sweep, which keeps its runs in a folder."""
    _add_processes(parser)
    parser.add_argument(
        "--any-commit",
        action="store_true",
        help="go on in a results folder that has runs of another commit",
    )


def _add_processes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workers",
        "--jobs",
        type=int,
        default=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1,
        help="processes, each on one thread (the cores)",
    )
