"""How the time of expected UCB grows with t, n and b, the other two held."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from matplotlib import pyplot as plt

from benchmarks.speed.grid import GEMM, IDIOM
from benchmarks.speed.job import Job, Problem
from benchmarks.speed.tables import Section
from benchmarks.speed.timing import digits, race, readable
from botorch_drbo.plotting.style import COLOURS, DASHES, MARKERS

Axis = Literal["t", "n", "b"]
SIDES = ("auto", "exact", IDIOM, GEMM)
_NAMES = {
    "auto": "ours (auto)",
    "exact": "ours, method exact",
    IDIOM: "BoTorch's idiom",
    GEMM: "one GEMM (b n x t) @ (t x t)",
}
_MEANINGS = {"t": "observations t", "n": "contexts n", "b": "decisions b"}


@dataclass(frozen=True)
class Growth:
    """The job in the middle, and the sizes that replace one of its own.

    ``idiom_limit`` bounds ``b n t`` and ``exact_limit`` ``b n t^2``: above them these
    sides would take too long, and their curves end.
    """

    middle: Job = Job(16, 1024, 100)
    t: tuple[int, ...] = (10, 30, 100, 300, 1000, 2000)
    n: tuple[int, ...] = (16, 64, 256, 1024, 4096, 16_384, 65_536)
    b: tuple[int, ...] = (1, 4, 16, 64, 256)
    idiom_limit: float = 7e6
    exact_limit: float = 2e10

    def jobs(self) -> list[tuple[Axis, Job]]:
        """Every job, with the axis on which it lies."""
        axes: tuple[Axis, ...] = ("t", "n", "b")
        return [
            (axis, replace(self.middle, **{axis: size}))
            for axis in axes
            for size in getattr(self, axis)
        ]


QUICK_GROWTH = Growth(Job(2, 9, 5), t=(3, 6), n=(4, 64), b=(1, 3))


@dataclass(frozen=True)
class Point:
    """The median seconds of each side at one size."""

    axis: Axis
    job: Job
    chosen: str
    seconds: dict[str, float]

    @property
    def size(self) -> int:
        """Where the point lies on its axis."""
        return getattr(self.job, self.axis)


def measure_growth(growth: Growth, repeats: int) -> list[Point]:
    """Time every job that the curves ask for, each once even if two curves meet."""
    known: dict[Job, tuple[str, dict[str, float]]] = {}
    points = []
    for axis, job in growth.jobs():
        if job not in known:
            known[job] = _measure(job, growth, repeats)
        points.append(Point(axis, job, *known[job]))
    return points


def _measure(job: Job, growth: Growth, repeats: int) -> tuple[str, dict[str, float]]:
    problem = Problem(job)
    sides = {"auto": problem.ours("auto")}
    if job.pairs * job.t**2 <= growth.exact_limit:
        sides["exact"] = problem.ours("exact")
    if job.pairs * job.t <= growth.idiom_limit:
        sides[IDIOM] = problem.idiom()
    sides[GEMM] = problem.gemm()
    timed = race({k: v for k, v in sides.items() if v}, repeats, unlike=(GEMM,))
    medians = {name: statistics.median(times) for name, times in timed.items()}
    return problem.chosen, medians


def growth_section(
    growth: Growth, points: Sequence[Point], plot: str, numbers: str
) -> Section:
    """The numbers behind the plot, and where both are, seen from the report."""
    body = [
        [
            f"{point.axis} = {point.size}",
            point.chosen,
            *(readable(point.seconds[s]) if s in point.seconds else "" for s in SIDES),
            digits(point.seconds["auto"] / point.seconds[GEMM]),
        ]
        for point in points
    ]
    return Section(
        title="Growth",
        text=(
            f"The same job. One size changes, the others stay at (b, n, t, d_c) = "
            f"{growth.middle}. Curves end where they would take too long. Beside this "
            f"report: `{plot}`, `{numbers}`."
        ),
        head=["size", "auto takes", *(_NAMES[s] for s in SIDES), "auto / GEMM"],
        rows=body,
        notes=[f"![time against t, n and b]({plot})"],
    )


def write_csv(points: Sequence[Point], path: Path) -> None:
    """One line per point and side."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["axis", "b", "n", "t", "d_c", "auto_takes", "side", "seconds"])
        for p in points:
            job = [p.job.b, p.job.n, p.job.t, p.job.d_c]
            for side, time in p.seconds.items():
                writer.writerow([p.axis, *job, p.chosen, side, f"{time:.6g}"])


def draw(growth: Growth, points: Sequence[Point], path: Path) -> None:
    """One panel per axis, both scales logarithmic."""
    figure, panels = plt.subplots(
        1, 3, figsize=(12, 4.2), sharey=True, layout="constrained"
    )
    for axis, panel in zip(("t", "n", "b"), panels, strict=True):
        own = [point for point in points if point.axis == axis]
        for i, side in enumerate(SIDES):
            timed = [(p.size, p.seconds[side]) for p in own if side in p.seconds]
            panel.plot(
                *zip(*timed, strict=True),
                color=COLOURS[i],
                linestyle=DASHES[i],
                marker=MARKERS[i],
                label=_NAMES[side],
            )
        held = ", ".join(
            f"{name} = {getattr(growth.middle, name)}" for name in "bnt" if name != axis
        )
        panel.set(xscale="log", yscale="log", xlabel=f"{_MEANINGS[axis]}  ({held})")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("seconds, forward + backward")
    panels[0].legend(fontsize="small")
    figure.savefig(path, dpi=150)
    plt.close(figure)
