"""The demo: how much stock to order when nobody knows the demand, in plain words."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import torch
from matplotlib import pyplot as plt
from rich.console import Console
from rich.table import Table
from torch import Tensor

from benchmarks.run.config import BenchmarkConfig
from benchmarks.run.display import report_failures, run_with_lines
from benchmarks.run.problems import make_problem
from benchmarks.run.report import LAST, curves, estimate, summarise
from benchmarks.run.storage import collect, load
from botorch_drbo.contexts import ContextSet
from botorch_drbo.plotting import plot_regret, plot_surface
from botorch_drbo.test_functions import RobustTestFunction

MEANING = {
    "wdrbo": "robust: guards against a shift of demand",
    "erbo": "trusts the demands that it saw",
    "gp_ucb": "looks at profits, never at demand",
    "random": "orders at random",
}


def run_demo(config: BenchmarkConfig, out: Path, *, workers: int) -> int:
    """Run the demo from its beginning, print its table, draw its picture.

    Returns:
        The exit status: 1 if a run failed.
    """
    console = Console()
    # A demo shows the run, not the memory of the last one.
    shutil.rmtree(out / "runs", ignore_errors=True)
    problem = make_problem(config.problems[0])
    console.print(
        "A shop orders stock in the morning; the demand shows during the day. A unit "
        "costs 5, sells for 9, and brings back 1 if it is left over. Each method "
        f"places {config.initial} random orders, then chooses {config.iterations} "
        f"orders itself, in {len(config.seeds)} imagined worlds. All methods meet the "
        "same demands.\n"
    )
    for algorithm in config.algorithms:
        console.print(f"  {algorithm.label:8} {MEANING[algorithm.name]}")
    console.print()
    shifted = shifted_contexts(problem)
    failures = run_with_lines(config, out, workers=workers, console=console)
    if failures:
        return report_failures(failures)
    rows, about = load(collect(config, out))
    table = Table(
        title="Profit lost against always ordering the best stock",
        caption="Lower is better. Mean ± standard error over the worlds.",
    )
    table.add_column("method")
    for name in (
        f"all {config.iterations}\norders",
        f"one of the\nlast {LAST}",
        "the same, if demand\nfalls by a third",
        "seconds\nper choice",
    ):
        table.add_column(name, justify="right")
    for row in summarise(rows, pd.DataFrame(about["recommended"]), config.baseline):
        runs = rows[rows.algorithm == row.label].groupby("seed")["x"]
        losses = [
            loss_under(shifted, problem, as_matrix(decisions)[-LAST:])
            for _, decisions in runs
        ]
        table.add_row(
            row.label,
            str(row.cumulative),
            str(row.last),
            str(estimate(losses)),
            f"{row.seconds:.2g}",
        )
    console.print(table)
    console.print(
        f"The best stock is {problem.optimal_decision.item():.3f}: it earns "
        f"{problem.optimal_value:.3f} per day on average."
    )
    console.print(
        "The two columns in the middle: what a method loses while demand stays as it "
        "was, and after a fall that no data announced. Three worlds are few: where the "
        "errors overlap, no method is better. `python -m benchmarks run` has more."
    )
    picture = out / "demo.png"
    draw_demo(config, rows, picture)
    console.print(f"Picture: {picture}")
    return 0


def shifted_contexts(problem: RobustTestFunction) -> Tensor:
    """The true demands, each a third lower, ``n x 1``."""
    return problem.true_contexts() * (2 / 3)


def as_matrix(points: Iterable[Iterable[float]]) -> Tensor:
    """The decisions or contexts of a run, ``t x d``."""
    return torch.tensor([list(point) for point in points], dtype=torch.double)


def loss_under(
    contexts: Tensor, problem: RobustTestFunction, decisions: Tensor
) -> float:
    """Mean profit that decisions lose if contexts come from another distribution.

    Args:
        contexts: That distribution, ``n x 1``, equally weighted.
        problem: A problem with one decision.
        decisions: The decisions, ``t x 1``.

    Returns:
        The best mean profit on a fine grid of decisions less the mean of theirs.
    """
    low, high = problem.bounds[:, 0].tolist()
    grid = torch.linspace(low, high, 1001, dtype=torch.double).unsqueeze(-1)  # m x 1

    def profits(x: Tensor) -> Tensor:
        return problem.evaluate(x.unsqueeze(-2), contexts).mean(-1)

    return (profits(grid).max() - profits(decisions).mean()).item()


def draw_demo(config: BenchmarkConfig, rows: pd.DataFrame, path: Path) -> None:
    """Save the regret curves beside what the first method has seen of the problem."""
    problem = make_problem(config.problems[0])
    label = config.algorithms[0].label
    first = rows[(rows.algorithm == label) & (rows.seed == config.seeds[0])]
    X, C = as_matrix(first["x"]), as_matrix(first["c"])
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(12.0, 4.6), layout="constrained"
    )
    plot_regret(curves(rows, "cumulative"), left, ylabel="profit lost in all")
    left.set_title("Profit lost, mean and standard error")
    left.set_xlabel("order")
    plot_surface(
        problem.evaluate,
        problem.bounds,
        problem.context_bounds,
        right,
        X=X,
        C=C,
        context_set=ContextSet.empirical(C),
        decision=problem.optimal_decision.item(),
        decision_label="best stock",
        value_label="profit",
    )
    right.set_xlabel("stock ordered")
    right.set_ylabel("demand")
    right.set_title(f"The profit, and the days of {label}", pad=24)
    figure.savefig(path, dpi=150)
    plt.close(figure)
