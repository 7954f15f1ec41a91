"""The demo: how much stock to order when nobody knows the demand, in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from matplotlib import pyplot as plt
from rich.console import Console
from rich.table import Table
from torch import Tensor

from benchmarks.run.config import BenchmarkConfig
from benchmarks.run.display import report_failures, run_with_bars
from benchmarks.run.problems import make_problem
from benchmarks.run.report import LAST, Runs, curves, estimate, summarise
from benchmarks.run.storage import Record, load_runs, run_files
from botorch_drbo.contexts import ContextSet
from botorch_drbo.plotting import plot_regret, plot_surface
from botorch_drbo.test_functions import RobustTestFunction

MEANING = {
    "wdrbo": "robust: guards against a shift of demand",
    "erbo": "trusts the demands that it saw",
    "gp_ucb": "looks at profits, never at demand",
    "random": "orders at random",
}


def run_demo(config: BenchmarkConfig, out: Path, *, jobs: int) -> int:
    """Run the demo from its beginning, print its table, draw its picture.

    Returns:
        The exit status: 1 if a run failed.
    """
    console = Console()
    for algorithm in config.algorithms:
        for seed in config.seeds:
            # A demo shows the run, not the memory of the last one.
            run_files(out, algorithm, seed).remove()
    problem = make_problem(config)
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
    failures = run_with_bars(config, out, jobs=jobs, console=console)
    runs = load_runs(config, out)
    if failures:
        return report_failures(failures)
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
    for row in summarise(runs, config.baseline):
        seconds = "" if row.seconds is None else f"{row.seconds:.2g}"
        losses = [
            loss_under(shifted, problem, records[-LAST:])
            for records in runs[row.label].values()
        ]
        table.add_row(
            row.label,
            str(row.cumulative),
            str(row.last),
            str(estimate(losses)),
            seconds,
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
    draw_demo(config, runs, picture)
    console.print(f"Picture: {picture}")
    return 0


def shifted_contexts(problem: RobustTestFunction) -> Tensor:
    """The true demands, each a third lower, ``n x 1``."""
    return problem.true_contexts() * (2 / 3)


def loss_under(
    contexts: Tensor, problem: RobustTestFunction, records: Sequence[Record]
) -> float:
    """Mean profit that decisions lose if contexts come from another distribution.

    Args:
        contexts: That distribution, ``n x 1``, equally weighted.
        problem: A problem with one decision.
        records: The decisions.

    Returns:
        The best mean profit on a fine grid of decisions less the mean of theirs.
    """
    low, high = problem.bounds[:, 0].tolist()
    grid = torch.linspace(low, high, 1001, dtype=torch.double).unsqueeze(-1)  # m x 1
    decisions = torch.tensor([r.x for r in records], dtype=torch.double)  # t x 1

    def profits(x: Tensor) -> Tensor:
        return problem.evaluate(x.unsqueeze(-2), contexts).mean(-1)

    return (profits(grid).max() - profits(decisions).mean()).item()


def draw_demo(config: BenchmarkConfig, runs: Runs, path: Path) -> None:
    """Save the regret curves beside what the first method has seen of the problem."""
    problem = make_problem(config)
    label = config.algorithms[0].label
    records = runs[label][config.seeds[0]]
    X = torch.tensor([r.x for r in records], dtype=torch.double)
    C = torch.tensor([r.c for r in records], dtype=torch.double)
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(12.0, 4.6), layout="constrained"
    )
    plot_regret(curves(runs, "cumulative"), left, ylabel="profit lost in all")
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
