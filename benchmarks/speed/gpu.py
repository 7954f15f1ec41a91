"""A GPU beside the processor of the same machine: values, worst cases, whole asks."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from rich.console import Console
from torch import Tensor

from benchmarks.run.config import ConfigError
from benchmarks.run.display import working
from benchmarks.run.provenance import machine
from benchmarks.speed.grid import GEMM, GRID, IDIOM
from benchmarks.speed.inner_problems import InnerProblem, inner_problems
from benchmarks.speed.iterations import Search, make_history
from benchmarks.speed.job import Job, Problem
from benchmarks.speed.tables import Section, report_sections, show
from benchmarks.speed.timing import busy, digits, median_ratio, race, seconds
from botorch_drbo.recipes import make_recipe

ONE, ALL, GPU = "CPU, one thread", "CPU, all cores", "GPU"


@dataclass(frozen=True)
class Ask:
    """A decision to propose: a recipe, its model, after how many outcomes."""

    recipe: str
    surrogate: str
    t: int
    q: int = 1

    def __str__(self) -> str:
        """As in the table."""
        return f"{self.recipe}, {self.surrogate}, t = {self.t}, q = {self.q}"


@dataclass(frozen=True)
class Sizes:
    """What is measured at which size.

    Attributes:
        grid: Jobs of expected UCB.
        inner: Rows and contexts of the worst cases.
        asks: Whole asks.
        search: How hard an ask looks.
    """

    grid: Sequence[Job] = (
        *GRID,
        Job(512, 4096, 100),
        Job(512, 4096, 100, 2),
        Job(512, 4096, 500),
        Job(16, 65_536, 500),
    )
    inner: Sequence[tuple[int, int]] = ((128, 100), (512, 256))
    asks: Sequence[Ask] = (
        Ask("erbo", "botorch", 100),
        Ask("erbo", "ensemble", 100),
        Ask("wdrbo_exact", "botorch", 100),
        Ask("wdrbo_exact", "ensemble", 100),
        Ask("wdrbo_exact", "botorch", 100, q=4),
        Ask("drbo_mmd", "botorch", 100),
        Ask("drbo_kde", "botorch", 100),
        Ask("drbo_kde", "botorch", 500),
        Ask("erbo", "botorch", 1000),
    )
    search: Search = Search()


QUICK = Sizes(
    (Job(2, 5, 4),), ((2, 9),), (Ask("erbo", "botorch", 4, q=2),), Search(8, 2)
)

Times = Mapping[str, Sequence[float]]
"""Seconds by side, repeat by repeat."""


def run_gpu_speed(out: Path, *, repeats: int, quick: bool) -> int:
    """Measure, print the tables, write them to ``out`` as Markdown.

    Returns:
        The exit status, 0: a slow GPU is not an error.

    Raises:
        ConfigError: This machine has no GPU for CUDA.
    """
    if not torch.cuda.is_available():
        raise ConfigError(
            "speed gpu: torch finds no CUDA device here (torch.cuda.is_available() is "
            "False). Run it on a machine with one, with a CUDA build of torch."
        )
    console, sizes, load = Console(), QUICK if quick else Sizes(), busy()
    sections = []
    for measure in (values_section, inner_section, asks_section):
        with working(console, (measure.__doc__ or "").splitlines()[0]):
            sections.append(measure(sizes, repeats, "cuda"))
        show(console, sections[-1])
    about = (
        "**Tiny sizes, to see that it runs: the times mean nothing.** "
        * quick
        + f"`python -m benchmarks speed gpu{' --quick' * quick}`, float64, medians of "
        f"up to {repeats} repeats that take turns. {torch.cuda.get_device_name()} "
        f"beside {machine()}. {load}"
    )
    report_sections(console, out, sections, title="Speed on a GPU", about=about)
    return 0


def values_section(sizes: Sizes, repeats: int, device: str) -> Section:
    """Expected UCB, forward and backward, on both devices."""
    rows = []
    for job in sizes.grid:
        here, there = Problem(job), Problem(job, device)
        ours, theirs = here.ours("auto"), there.ours("auto")
        assert ours is not None and theirs is not None  # a method is always found
        times = race(
            {
                ONE: partial(_with_threads, 1, ours),
                ALL: partial(_with_threads, os.cpu_count() or 1, ours),
                GPU: _waited_for(theirs),
                IDIOM: _waited_for(there.idiom()),
                GEMM: _waited_for(partial(_first_row, there.gemm())),
            },
            repeats,
            unlike=(GEMM,),
        )
        rows.append(
            [
                str(job),
                there.chosen,
                *(seconds(times[side]) for side in (ONE, ALL, GPU, IDIOM, GEMM)),
                digits(median_ratio(times[ONE], times[GPU])),
                digits(median_ratio(times[ALL], times[GPU])),
                digits(median_ratio(times[IDIOM], times[GPU])),
                _gib(peak_memory(theirs)),
            ]
        )
    return Section(
        title="Expected UCB over contexts on a GPU",
        text=(
            "As in the table for the processor: the mean upper confidence bound of b "
            "decisions over n contexts, with its gradient, from t observations; values "
            "and gradients of all sides agree to 1e-6 before they are timed. Times on "
            "the GPU include the way of the result to the processor. *Idiom* and "
            "*GEMM* are BoTorch's own way and one product (b n x t) @ (t x t), on the "
            "GPU. *Memory* is the GPU's peak during our call, over what lay there "
            "before."
        ),
        head=[
            "(b, n, t, d_c)",
            "auto takes",
            *(ONE, ALL, GPU),
            f"{IDIOM} on the GPU",
            "one GEMM on the GPU",
            *(f"one thread / {GPU}", f"all cores / {GPU}", f"idiom / {GPU}"),
            "memory, GiB",
        ],
        rows=rows,
    )


def inner_section(sizes: Sizes, repeats: int, device: str) -> Section:
    """Worst cases of the ambiguity sets on both devices."""
    rows = []
    for b, n in sizes.inner:
        for problem in inner_problems(b, n):
            moved = _moved(problem, device)
            times = race(
                {
                    ONE: partial(_with_threads, 1, partial(_solved, problem)),
                    GPU: _waited_for(partial(_solved, moved)),
                },
                repeats,
            )
            rows.append(
                [
                    problem.name,
                    f"{b} x {n}",
                    seconds(times[ONE]),
                    seconds(times[GPU]),
                    digits(median_ratio(times[ONE], times[GPU])),
                ]
            )
    return Section(
        title="Worst cases on a GPU",
        text=(
            "The worst-case value and its gradient in the scores, for b rows of n "
            "scores at once. The values of both sides agree to 1e-6."
        ),
        head=["ambiguity set", "b x n", ONE, GPU, "one thread / GPU"],
        rows=rows,
    )


def asks_section(sizes: Sizes, repeats: int, device: str) -> Section:
    """Whole asks on both devices, fit and search."""
    rows = []
    for ask in sizes.asks:
        times: dict[str, list[float]] = {ONE: [], ALL: [], GPU: []}
        apart = 0.0
        for seed in range(-1, repeats):  # the first is not counted
            found = {}
            for side, threads, where in (
                (ONE, 1, "cpu"),
                (ALL, os.cpu_count() or 1, "cpu"),
                (GPU, 1, device),
            ):
                run = partial(_proposed, ask, sizes.search, max(seed, 0), where)
                start = time.perf_counter()
                found[side] = _with_threads(threads, run)
                if seed >= 0:
                    times[side].append(time.perf_counter() - start)
            apart = max(apart, float((found[GPU] - found[ONE]).abs().max()))
        rows.append(
            [
                str(ask),
                *(seconds(times[side]) for side in (ONE, ALL, GPU)),
                digits(median_ratio(times[ONE], times[GPU])),
                digits(median_ratio(times[ALL], times[GPU])),
                f"{apart:.0e}",
            ]
        )
    return Section(
        title="Whole asks on a GPU",
        text=(
            "From the outcomes to the next q decisions on Ackley 2+1, fit included "
            "(`drbo_kde` looks at 1,024 contexts, `drbo_mmd` at 100, the others at "
            "those observed); "
            f"{sizes.search.raw_samples} raw samples, {sizes.search.num_restarts} "
            "restarts, a history of its own for each repeat. The optimiser of the fit "
            "and of the search, L-BFGS-B of SciPy, runs on the processor in all of "
            "them. *Apart* is how far the decision found on the GPU is from that of "
            "one thread at most, where the box is [0, 1]: rounding can lead the search "
            "to another maximum of nearly the same value."
        ),
        head=["ask", ONE, ALL, GPU, "one thread / GPU", "all cores / GPU", "apart"],
        rows=rows,
    )


def peak_memory(side: Callable[[], Tensor]) -> int:
    """Bytes of the GPU in use at the peak of a call, over those before it."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    side()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def _gib(size: int) -> str:
    return digits(size / 2**30)


def _with_threads(threads: int, side: Callable[[], Tensor]) -> Tensor:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return side()
    finally:
        torch.set_num_threads(before)


def _waited_for(side: Callable[[], Tensor]) -> Callable[[], Tensor]:
    """With its result on the processor: the GPU has to be done."""
    return lambda: _with_threads(1, side).cpu()


def _first_row(side: Callable[[], Tensor]) -> Tensor:
    """Of a result that is too large to be copied."""
    return side()[:1]


def _moved(problem: InnerProblem, device: str) -> InnerProblem:
    return replace(
        problem,
        ambiguity_set=copy.deepcopy(problem.ambiguity_set).to(device),
        values=problem.values.to(device),
        weights=problem.weights.to(device),
    )


def _solved(problem: InnerProblem) -> Tensor:
    """The values. Gradients are computed too, but where scores tie they may differ."""
    value, _ = problem.ours(len(problem.values))
    return value


def _proposed(ask: Ask, search: Search, seed: int, device: str) -> Tensor:
    """The decisions of one ask, scaled to the unit box."""
    history, space = make_history(ask.t, seed, device)
    recipe = make_recipe(
        ask.recipe,
        surrogate=ask.surrogate,
        raw_samples=search.raw_samples,
        num_restarts=search.num_restarts,
    )
    low, high = space.bounds
    return (
        (recipe.propose(history, space, q=ask.q, seed=seed) - low) / (high - low)
    ).cpu()
