"""The demo: how much stock to order when nobody knows the demand, in plain words."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

import pandas as pd
import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from rich.console import Console
from rich.table import Table
from torch import Tensor

from benchmarks.run.config import BenchmarkConfig
from benchmarks.run.display import report_failures, run_with_lines
from benchmarks.run.report import Estimate, estimate
from benchmarks.run.runner import tasks_of
from benchmarks.run.storage import RESULTS, collect, load
from benchmarks.run.tables import RUNS
from benchmarks.run.world import make_problem
from botorch_drbo.plotting import COLOURS, DASHES, MARKERS
from botorch_drbo.test_functions import RobustTestFunction

MEANING = {
    "wdrbo_exact": "robust: prepares for every demand pattern near the days it saw",
    "erbo": "trusts the past: demand stays as on the days it saw",
    "gp_ucb": "ignores demand: it looks at profits alone",
}
SHORT = {
    "wdrbo_exact": "robust",
    "erbo": "trusts the past",
    "gp_ucb": "ignores demand",
}  # in the picture
WORLDS = {
    "rises by a third": 4 / 3,
    "stays as it was": 1.0,
    "falls by a third": 2 / 3,
    "halves": 1 / 2,
}
SCALE = 1000.0  # the problem counts in thousands of copies and of coins
SHOPS = "shops.csv"


def run_demo(config: BenchmarkConfig, out: Path, *, workers: int) -> int:
    """Run the demo from its beginning, print its table, draw its picture.

    Args:
        config: Each of its seeds is a shop; differences are to its ``baseline``.
        out: The folder for the picture, the runs, and a table of all shops.
        workers: How many processes.

    Returns:
        The exit status: 1 if a run failed.
    """
    console = Console()
    # A demo shows the run, not the memory of the last one.
    shutil.rmtree(out / "runs", ignore_errors=True)
    for name in (RESULTS, RUNS):
        (out / name).unlink(missing_ok=True)
    problem = make_problem(config.problems[0])
    days = config.initial + config.iterations
    console.print(
        "A shop orders newspapers in the evening; how many people want one shows the "
        "next day. A copy costs 5, sells for 9, and brings back 1 if it is left over. "
        f"Each method runs {len(config.seeds)} shops for {days} days ({config.initial} "
        "orders at random), then says what to order from now on. All meet the same "
        "demands.\n"
    )
    width = max(len(algorithm.label) for algorithm in config.algorithms)
    for algorithm in config.algorithms:
        console.print(f"  {algorithm.label:{width}} {MEANING[algorithm.name]}")
    console.print()
    tasks = tasks_of(config, out)
    failures = run_with_lines(tasks, out, workers=workers, console=console)
    if failures:
        return report_failures(failures)
    rows, _ = load(collect(config, out))
    last = rows.dropna(subset="recommended")
    advice = {
        algorithm.label: torch.tensor(
            [[*x] for x in last[last.algorithm == algorithm.label].recommended]
        )  # shops x 1
        for algorithm in config.algorithms
    }
    shops = profits_of_shops(problem, advice, config.seeds)
    shops.to_csv(out / SHOPS, index=False, float_format="%.3f")
    console.print(profit_table(shops))
    console.print(difference_table(shops, config.baseline))
    console.print(
        "Mean ± standard error over the shops. In the second table each shop is "
        f"compared with itself under {config.baseline}: the first two columns are what "
        "robustness costs if demand rises or stays, the others what it saves if demand "
        "falls. No method was told of any change."
    )
    picture = out / "demo.png"
    draw_demo(problem, shops, config.baseline, picture)
    console.print(f"Picture: {picture}; each shop: {out / SHOPS}", soft_wrap=True)
    return 0


def profits(problem: RobustTestFunction, orders: Tensor, factor: float) -> Tensor:
    """Coins a day that orders earn if every demand is multiplied by a factor.

    Args:
        problem: The shop.
        orders: The orders in thousands of copies, ``n x 1``.
        factor: One for the demand of the days that were seen.

    Returns:
        The mean profits, ``n``.
    """
    demands = factor * problem.true_contexts()  # m x 1
    return SCALE * problem.evaluate(orders.unsqueeze(-2), demands).mean(-1)


def profits_of_shops(
    problem: RobustTestFunction, advice: Mapping[str, Tensor], shops: Sequence[int]
) -> pd.DataFrame:
    """A row per method and shop: the order, and what it earns in each world.

    Args:
        problem: The shop.
        advice: Method -> its orders in thousands of copies, ``shops x 1``.
        shops: Their seeds.

    Returns:
        The columns ``method``, ``shop``, ``copies``, and one per world, in coins.
    """
    tables = []
    for label, orders in advice.items():
        columns = {"method": label, "shop": shops, "copies": SCALE * orders.flatten()}
        columns |= {w: profits(problem, orders, f) for w, f in WORLDS.items()}
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def profit_table(shops: pd.DataFrame) -> Table:
    """A row per method: what its orders earn in each world."""
    table = Table(title="Coins a day that the recommended order earns, if demand ...")
    table.add_column("method")
    for column in ("copies", *WORLDS):
        table.add_column(column, justify="right")
    for label, own in shops.groupby("method", sort=False):
        cells = (str(estimate(own[column].tolist())) for column in ("copies", *WORLDS))
        table.add_row(str(label), *cells)
    return table


def difference_table(shops: pd.DataFrame, baseline: str) -> Table:
    """A row per other method: coins less the baseline's in the same shop."""
    title = f"Coins a day more than {baseline}, shop by shop, if demand ..."
    table = Table(title=title)
    table.add_column("method")
    for world in WORLDS:
        table.add_column(world, justify="right")
    for label, found in paired_differences(shops, baseline).items():
        table.add_row(label, *(_signed(each) for each in found.values()))
    return table


def _signed(difference: Estimate) -> str:
    """With a plus if it is not negative."""
    return str(difference) if difference.mean < 0 else f"+{difference}"


def paired_differences(
    shops: pd.DataFrame, baseline: str
) -> dict[str, dict[str, Estimate]]:
    """Method -> world -> coins less the baseline's in the same shop."""
    earned = {
        str(label): own.set_index("shop")[list(WORLDS)]
        for label, own in shops.groupby("method", sort=False)
    }
    return {
        label: {w: estimate((own - earned[baseline])[w].tolist()) for w in WORLDS}
        for label, own in earned.items()
        if label != baseline
    }


def draw_demo(
    problem: RobustTestFunction, shops: pd.DataFrame, baseline: str, path: Path
) -> None:
    """Save what each method earns more than the baseline, and the reason for it.

    Args:
        problem: The shop.
        shops: What ``profits_of_shops`` returns.
        baseline: The method that the others are compared with.
        path: A file that matplotlib can write.
    """
    figure, axes = plt.subplot_mosaic(
        [["gain", "reason"], ["gain", "orders"]],
        height_ratios=(3, 1),
        figsize=(12.0, 5.0),
        layout="constrained",
    )
    _draw_differences(shops, baseline, axes["gain"])
    _draw_worlds(problem, float(shops.copies.max()), axes["reason"])
    _draw_orders(shops, axes["orders"])
    axes["reason"].sharex(axes["orders"])
    axes["reason"].tick_params(labelbottom=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _short(method: str) -> str:
    return SHORT.get(method, method)


class _Style(TypedDict):
    """How a method is drawn."""

    color: str
    marker: str
    linestyle: str


def _style(shops: pd.DataFrame, method: str) -> _Style:
    """The colour and marker of a method, the same in all panels."""
    i = list(shops.method.unique()).index(method)
    return {"color": COLOURS[i], "marker": MARKERS[i], "linestyle": "none"}


def _draw_differences(shops: pd.DataFrame, baseline: str, axes: Axes) -> None:
    """For each world a mark per method: coins less the baseline's, shop by shop."""
    differences = paired_differences(shops, baseline)
    for i, (label, found) in enumerate(differences.items()):
        axes.errorbar(
            [k + 0.2 * (i - (len(differences) - 1) / 2) for k in range(len(found))],
            [each.mean for each in found.values()],
            yerr=[each.error or 0.0 for each in found.values()],
            markersize=9,
            capsize=4,
            label=_short(label),
            **_style(shops, label),
        )
    axes.axhline(0.0, color="black", linewidth=1.0)
    axes.annotate(
        _short(baseline),
        (-0.47, 0.0),
        xytext=(0, 3),
        textcoords="offset points",
    )
    axes.set_xticks(range(len(WORLDS)), list(WORLDS))
    axes.set_xlim(-0.5, len(WORLDS) - 0.5)
    axes.set_ylabel(f'coins a day more than "{_short(baseline)}"')
    axes.set_title("If demand ... (shop by shop, mean ± standard error)")
    axes.legend(frameon=False, loc="upper left")


def _draw_worlds(problem: RobustTestFunction, largest: float, axes: Axes) -> None:
    """Profit against order in each world."""
    grid = torch.linspace(0.0, 1.1 * largest / SCALE, 201, dtype=torch.double)
    for dash, (world, factor) in zip(DASHES, WORLDS.items(), strict=False):
        earned = profits(problem, grid.unsqueeze(-1), factor)
        axes.plot(SCALE * grid, earned, color="0.25", linestyle=dash, label=world)
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.set_ylabel("coins a day")
    axes.set_title("Why: too large an order costs most if demand falls")
    axes.legend(frameon=False, title="demand ...", loc="lower left")


def _draw_orders(shops: pd.DataFrame, axes: Axes) -> None:
    """The recommended orders, a row for each method."""
    methods = list(shops.method.unique())
    for row, method in enumerate(methods):
        copies = shops.copies[shops.method == method]
        style = _style(shops, method)
        axes.plot(copies, [row] * len(copies), alpha=0.6, **style)
    axes.set_yticks(range(len(methods)), [_short(method) for method in methods])
    axes.set_ylim(len(methods) - 0.5, -0.5)
    axes.set_xlim(left=0.0)
    axes.set_xlabel("recommended order (copies), one mark for each shop")
