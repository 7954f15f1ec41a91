"""The report of ``python -m benchmarks speed``: tables, numbers and a plot."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.run.display import working
from benchmarks.run.engine import one_thread
from benchmarks.run.provenance import machine
from benchmarks.speed.grid import GRID, QUICK_GRID, grid_sections, measure_job
from benchmarks.speed.growth import (
    QUICK_GROWTH,
    Growth,
    draw,
    growth_section,
    measure_growth,
    write_csv,
)
from benchmarks.speed.iterations import (
    Search,
    iterations_section,
    measure_iterations,
    model_based_recipes,
)
from benchmarks.speed.job import Job
from benchmarks.speed.tables import Section, report_sections, show
from benchmarks.speed.targets import (
    OPTIMISATION_LIMITS,
    grid_targets,
    iteration_targets,
    measure_ball,
    measure_large,
    measure_memory,
    measure_penalties,
    optimisation_targets,
    targets_section,
)
from benchmarks.speed.timing import busy


@dataclass(frozen=True)
class Sizes:
    """What is measured at which size.

    Args:
        grid: Jobs of the first table.
        growth: Jobs of the curves.
        penalties: Jobs on which WDRBO is compared with ERBO.
        ball: The job of the total variation ball.
        memory: The job of which the peak memory is taken.
        large: The job with many observations.
        search: How acquisition functions are optimised.
        iteration_t: Observations before whole iterations.
        optimisation_t: Observations before the optimisations without a fit.
    """

    grid: Sequence[Job] = GRID
    growth: Growth = Growth()
    penalties: Sequence[Job] = (Job(64, 1024, 100), Job(64, 100, 100))
    ball: Job = Job(64, 1024, 100)
    memory: Job = Job(16, 65_536, 500)
    large: Job = Job(64, 1024, 2000)
    search: Search = Search()
    iteration_t: int = 100
    optimisation_t: int = 15


QUICK = Sizes(
    grid=QUICK_GRID,
    growth=QUICK_GROWTH,
    penalties=(Job(2, 9, 6),),
    ball=Job(2, 9, 6),
    memory=Job(2, 64, 10),
    large=Job(2, 9, 12),
    search=Search(raw_samples=8, num_restarts=2),
    iteration_t=5,
    optimisation_t=4,
)


def run_speed(out: Path, *, repeats: int, quick: bool) -> int:
    """Measure; show tables as they come; write ``out`` and, beside it, plot and CSV.

    Returns:
        The exit status, 0: a slow machine is not an error.
    """
    console, sizes = Console(), QUICK if quick else Sizes()
    start, load = time.perf_counter(), busy()
    with one_thread():
        sections = _measure(console, sizes, out, repeats)
    minutes = (time.perf_counter() - start) / 60
    about = (
        "**Tiny sizes, to see that it runs: the times mean nothing.** "
        * quick
        + f"`python -m benchmarks speed{' --quick' * quick}`, one thread, "
        f"float64, medians of up to {repeats} repeats that take turns (three where one "
        "turn takes long); values and gradients of all sides agree to 1e-6 before they "
        f"are timed. {machine()}. {load} The run took {minutes:.0f} minutes."
    )
    report_sections(console, out, sections, title="Speed and memory", about=about)
    return 0


def _measure(console: Console, sizes: Sizes, out: Path, repeats: int) -> list[Section]:
    rows = []
    for job in sizes.grid:
        with working(console, f"expected UCB at {job}"):
            rows.append(measure_job(job, repeats))
    grid = _shown(console, grid_sections(rows))

    with working(console, "robust against plain; memory; many observations"):
        targets = [
            *grid_targets(rows),
            *measure_penalties(sizes.penalties, repeats),
            measure_ball(sizes.ball, repeats),
            measure_memory(sizes.memory),
            measure_large(sizes.large, repeats),
        ]
    search, t = sizes.search, sizes.iteration_t
    with working(console, "whole iterations"):
        found = measure_iterations(
            model_based_recipes(), t=t, search=search, repeats=repeats
        )
        short = measure_iterations(
            list(OPTIMISATION_LIMITS),
            t=sizes.optimisation_t,
            search=search,
            repeats=repeats,
        )
    targets += iteration_targets(found, t)
    targets += optimisation_targets(short, sizes.optimisation_t)
    asked = targets_section(targets, search)
    iterations = iterations_section(found, t=t, search=search)
    _shown(console, [asked, iterations])

    with working(console, "growth"):
        points = measure_growth(sizes.growth, repeats)
    plot, numbers = (out.with_name(f"{out.stem}_growth.{x}") for x in ("png", "csv"))
    out.parent.mkdir(parents=True, exist_ok=True)
    draw(sizes.growth, points, plot)
    write_csv(points, numbers)
    growth = growth_section(sizes.growth, points, plot.name, numbers.name)

    return [asked, *grid, iterations, *_shown(console, [growth])]


def _shown(console: Console, sections: list[Section]) -> list[Section]:
    for section in sections:
        show(console, section)
    return sections
