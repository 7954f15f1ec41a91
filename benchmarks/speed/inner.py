"""Times of the inner problems against cvxpy: ratios in one run, with gradients."""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from torch import Tensor

from benchmarks.run.display import working
from benchmarks.run.engine import one_thread
from benchmarks.run.provenance import machine
from benchmarks.speed.acquisition import measure_acquisitions
from benchmarks.speed.inner_problems import InnerProblem, inner_problems
from benchmarks.speed.tables import Line, report
from benchmarks.speed.timing import alternate, digits

VALUE_TOLERANCE = 1e-6
"""How far values may differ, relative to the range of the scores."""
GRADIENT_TOLERANCE = 1e-3
"""How far gradients may differ in the median row.

In single rows the layer's are much farther off (the report says by how much), as an
iterative method finds them.
"""


@dataclass(frozen=True)
class InnerSizes:
    """Problem sizes: rows ``b`` of ``n`` scores; ``turns`` calls of ours per time.

    Whole acquisition functions are timed on ``decisions`` rows, for models of each
    number of ``observations``.
    """

    b: int = 128
    n: int = 100
    turns: int = 5
    decisions: int = 64
    observations: tuple[int, ...] = (15, 100)


QUICK = InnerSizes(b=3, n=9, turns=1, decisions=2, observations=(5,))


def run_inner_speed(out: Path, *, repeats: int, quick: bool) -> int:
    """Measure, print a table, write it to ``out`` as Markdown.

    Returns:
        The exit status, 0: a slow machine is not an error.
    """
    console = Console()
    sizes = QUICK if quick else InnerSizes()
    lines: list[Line] = []
    with one_thread(), warnings.catch_warnings():
        # cvxpylayers 1.2 under numpy 2, at every call
        warnings.filterwarnings("ignore", "__array__ implementation")
        for measure in MEASURES:
            with working(console, measure.__doc__ or ""):
                lines += measure(sizes, repeats)
    about = (
        f"`python -m benchmarks speed inner`, medians of {repeats} repeats that "
        f"take turns. Times are per row of {sizes.n} scores, for the worst-case "
        "value and its gradient in the scores. Ours solves "
        f"{sizes.b} rows at once on one thread. "
        "*Layer*: a bare `CvxpyLayer`, the scores its parameter, all else constants, "
        "`solve_method` Clarabel with its default settings, forward and backward, in "
        "its default pool of threads (so it may use every core). *Loop*: one cvxpy "
        "problem with the same parameter, solved row by row by Clarabel, forward only: "
        "the weights are the gradient. The slow sides solve the stated number of rows. "
        f"Before, all must agree: values to {VALUE_TOLERANCE:g} of the range of the "
        f"scores; gradients to {GRADIENT_TOLERANCE:g} in the median row, and to what "
        f"the table says in the worst row. The last lines time whole acquisition "
        "functions of recipes on Ackley 2+1, value and gradient of all "
        f"{sizes.decisions} decisions, on one thread. {machine()}."
    )
    report(console, out, lines, title="Speed of the inner problems", about=about)
    return 0


def measure_sets(sizes: InnerSizes, repeats: int) -> list[Line]:
    """Every ambiguity set against a CvxpyLayer and against a loop of cvxpy solves."""
    lines: list[Line] = []
    for problem in inner_problems(sizes.b, sizes.n):
        lines += measure_problem(problem, repeats=repeats, turns=sizes.turns)
    return lines


def measure_recipes(sizes: InnerSizes, repeats: int) -> list[Line]:
    """Whole acquisition functions, robust against plain, forward + backward."""
    return measure_acquisitions(
        b=sizes.decisions, ts=sizes.observations, repeats=repeats
    )


MEASURES: Sequence[Callable[[InnerSizes, int], list[Line]]] = (
    measure_sets,
    measure_recipes,
)
"""The parts of the report, in its order."""


def measure_problem(problem: InnerProblem, *, repeats: int, turns: int) -> list[Line]:
    """One problem: against the layer, against the loop.

    Raises:
        AssertionError: The sides do not compute the same thing.
    """
    b = len(problem.values)
    layer, loop = problem.layer(), problem.loop()
    layer_rows, loop_rows = min(problem.layer_rows, b), min(problem.loop_rows, b)
    off = [
        gradient_error(problem, layer(layer_rows)),
        gradient_error(problem, loop(loop_rows)),
    ]

    def ours() -> None:
        for _ in range(turns):
            problem.ours(b)

    mine, by_layer, by_loop = (
        [t / rows for t in times]
        for times, rows in zip(
            alternate(
                [ours, lambda: layer(layer_rows), lambda: loop(loop_rows)], repeats
            ),
            (b * turns, layer_rows, loop_rows),
            strict=True,
        )
    )
    return [
        Line(
            what=f"{problem.name}, {side}",
            ours=_time(mine),
            other=f"{_time(theirs)} ({rows} rows, gradients off by up to {error:.0e})",
            result=f"{digits(ratio)} times as fast",
            target=f"at least {target:g}: {'met' if ratio >= target else 'missed'}",
        )
        for side, theirs, rows, error, target in (
            ("layer", by_layer, layer_rows, off[0], problem.layer_target),
            ("loop", by_loop, loop_rows, off[1], problem.loop_target),
        )
        for ratio in [
            statistics.median(b / a for a, b in zip(mine, theirs, strict=True))
        ]
    ]


def gradient_error(problem: InnerProblem, found: tuple[Tensor, Tensor]) -> float:
    """How far the other side's gradient is from ours in the worst row.

    Raises:
        AssertionError: Values differ, or gradients do in the median row.
    """
    value, gradient = found
    f = problem.values[: len(value)]
    expected, expected_gradient = problem.ours(len(value))
    span = f.amax(-1) - f.amin(-1)
    torch.testing.assert_close(
        value / span, expected / span, rtol=0, atol=VALUE_TOLERANCE
    )
    error = (gradient - expected_gradient).abs().amax(-1)
    if not error.median() <= GRADIENT_TOLERANCE:
        raise AssertionError(
            f"{problem.name}: gradients differ by {error.median().item():.3g} in the "
            f"median row, {GRADIENT_TOLERANCE:g} is allowed."
        )
    return error.max().item()


def _time(seconds: Sequence[float]) -> str:
    median = 1e6 * statistics.median(seconds)
    return f"{median:.3g} us" if median < 1000 else f"{median / 1000:.3g} ms"
