"""Expected UCB, forward and backward, over kernels: what the views make of each."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from gpytorch.kernels import Kernel, MaternKernel, ProductKernel, RBFKernel, RQKernel
from rich.console import Console

from benchmarks.run.display import working
from benchmarks.run.engine import one_thread
from benchmarks.run.provenance import machine
from benchmarks.speed.job import D_X, Job, Problem
from benchmarks.speed.tables import Section, report_sections, show
from benchmarks.speed.timing import busy, digits, median_ratio, race, seconds
from botorch_drbo.posterior.product import ProductView

LIMIT = 2.0  # GEMMs, for kernels that factorise
COLUMNS = (1, 2, 3, 4)
SIZES = (
    *(Job(8, 256, 100, d_c) for d_c in COLUMNS),
    *(Job(64, 1024, 100, d_c) for d_c in COLUMNS),
    *(Job(64, 1024, 500, d_c) for d_c in COLUMNS[::3]),
)
QUICK_SIZES = (Job(2, 60, 6, 1), Job(2, 60, 6, 2))
_SLOW_LIMIT = 10**6  # b n t, above which GPyTorch's kernels would take too long


def _columns(d: int) -> list[list[int]]:
    """Those of the decision, and those of the context."""
    return [list(range(D_X)), list(range(D_X, d))]


def _matern(nu: float, columns: Sequence[int]) -> Kernel:
    return MaternKernel(nu, active_dims=tuple(columns), ard_num_dims=len(columns))


def _rational(columns: Sequence[int]) -> Kernel:
    return RQKernel(active_dims=tuple(columns), ard_num_dims=len(columns))


def _by_column(nu: float) -> Callable[[int], Kernel]:
    return lambda d: ProductKernel(*(_matern(nu, [column]) for column in range(d)))


def _product(d: int) -> Kernel:
    x, c = (_matern(2.5, columns) for columns in _columns(d))
    return x * c


def _sum(d: int) -> Kernel:
    x, c = (_matern(2.5, columns) for columns in _columns(d))
    return x + c


def _product_and_sum(d: int) -> Kernel:
    return _product(d) + _matern(2.5, _columns(d)[1])


def _rational_product(d: int) -> Kernel:
    x, c = (_rational(columns) for columns in _columns(d))
    return x * c


FACTORISING: Mapping[str, Callable[[int], Kernel]] = {
    "RBF(x, c)": lambda d: RBFKernel(ard_num_dims=d),
    "Matern-5/2 of each column, multiplied": _by_column(2.5),
    "Matern-3/2 of each column, multiplied": _by_column(1.5),
    "Matern-5/2(x) * Matern-5/2(c)": _product,
    "Matern-5/2(x) + Matern-5/2(c)": _sum,
    "Matern-5/2(x) * Matern-5/2(c) + Matern-5/2(c)": _product_and_sum,
    "RQ(x) * RQ(c)": _rational_product,
}
"""By name, from the number of columns; RQ is the rational quadratic kernel."""
JOINT: Mapping[str, Callable[[int], Kernel]] = {
    "RQ(x, c)": lambda d: _rational(range(d)),
    "Matern-5/2(x, c)": lambda d: _matern(2.5, range(d)),
}


@dataclass(frozen=True)
class Found:
    """One kernel at one size: the view, and seconds of each side by name."""

    kernel: str
    job: Job
    takes: str
    seconds: Mapping[str, Sequence[float]]

    def gemms(self, side: str) -> float | None:
        """How many GEMMs a side costs, if it was measured."""
        times = self.seconds.get(side)
        return median_ratio(times, self.seconds["GEMM"]) if times else None


def run_kernel_speed(out: Path, *, repeats: int, quick: bool) -> int:
    """Measure, print tables, write them to ``out`` as Markdown.

    Returns:
        The exit status, 0: a slow machine is not an error.
    """
    console, load, sections = Console(), busy(), []
    with one_thread():
        for job in QUICK_SIZES if quick else SIZES:
            found = []
            for name, kernel in {**FACTORISING, **JOINT}.items():
                with working(console, f"{name} at {job}"):
                    found.append(measure(name, kernel(job.d), job, repeats))
            sections.append(section(job, found))
            show(console, sections[-1])
    about = (
        "**Tiny sizes, to see that it runs: the times mean nothing.** "
        * quick
        + f"`python -m benchmarks speed kernels{' --quick' * quick}`: the job of "
        "`python -m benchmarks speed`, the mean upper confidence bound of b decisions "
        "over n contexts from t observations with its gradient, for other kernels. "
        "Lengthscales and noise are where BoTorch starts. Processor time of one "
        f"thread, float64, medians of up to {repeats} repeats that take turns; values "
        "and gradients of the sides agree to 1e-6 before they are timed. In brackets: "
        "the contexts at which the model itself is evaluated, if not at all. `exact` "
        "is forced; it and BoTorch's idiom are measured at the smallest size only. "
        f"*One GEMM* is the bare product (b n x t) @ (t x t). {machine()}. {load}"
    )
    report_sections(console, out, sections, title="Speed by kernel", about=about)
    return 0


def measure(name: str, kernel: Kernel, job: Job, repeats: int) -> Found:
    """Time a kernel on one job, after the values have been compared."""
    for part in kernel.modules():
        if isinstance(part, Kernel) and part.has_lengthscale:
            size = math.exp(math.sqrt(2.0) - 3.0) * math.sqrt(job.d)
            part.lengthscale = torch.full_like(part.lengthscale, size)
    problem = Problem(job, kernel=kernel.double())
    sides = {"auto": problem.ours("auto")}
    if job.pairs * job.t <= _SLOW_LIMIT:
        sides |= {"exact": problem.ours("exact"), "idiom": problem.idiom()}
    sides |= {"GEMM": problem.gemm(), "first call": problem.anew()}
    view = problem.auto.view
    few = f" ({view.size})" if isinstance(view, ProductView) else ""
    times = race(
        {side: run for side, run in sides.items() if run},
        repeats,
        unlike=("GEMM",),
        clock=time.process_time,
    )
    return Found(name, job, view.method + few, times)


def section(job: Job, found: Sequence[Found]) -> Section:
    """A line for each kernel, and a verdict on those that factorise."""
    sides = ["auto", "first call", "exact", "idiom", "GEMM"]
    sides = [side for side in sides if side in found[0].seconds]
    titles = {"idiom": "BoTorch's idiom", "GEMM": "one GEMM"}
    compared = [side for side in ("auto", "exact", "idiom") if side in sides]
    rows = [
        [
            each.kernel,
            each.takes,
            *(seconds(each.seconds[side]) for side in sides),
            *(digits(each.gemms(side) or math.nan) for side in compared),
        ]
        for each in found
    ]
    cost = {each.kernel: each.gemms("auto") or math.nan for each in found}
    missed = [
        f"{name} ({digits(cost[name])})" for name in FACTORISING if cost[name] > LIMIT
    ]
    verdict = f"**missed** by {', '.join(missed)}" if missed else "met"
    return Section(
        title=f"(b, n, t, d_c) = {job}",
        text="The last two kernels do not factorise over decision and context.",
        head=[
            "kernel",
            "auto takes",
            *(titles.get(side, side) for side in sides),
            *(f"{side} / GEMM" for side in compared),
        ],
        rows=rows,
        notes=[
            f"Asked for: at most {LIMIT:g} GEMM where the kernel factorises: {verdict}."
        ],
    )
