"""Tables and pictures of one benchmark, to look at and to commit."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from matplotlib import pyplot as plt
from rich import box
from rich.console import Console
from rich.table import Table
from torch import Tensor

from benchmarks.run.storage import load
from botorch_drbo.plotting import plot_regret

LAST = 10  # iterations over which the last instantaneous regret is averaged


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds and its standard error; the error of one seed is not known."""

    mean: float
    error: float | None

    def __str__(self) -> str:
        """The error to two digits, the mean to as many decimals."""
        if self.error is None or self.error == 0:
            return f"{self.mean:.4g}"
        decimals = max(0, 1 - math.floor(math.log10(self.error)))
        return f"{self.mean:.{decimals}f} ± {self.error:.{decimals}f}"


@dataclass(frozen=True)
class Row:
    """The line of one algorithm on one problem.

    Args:
        label: The algorithm.
        seeds: How many finished runs it has.
        cumulative: Cumulative expected regret after the last iteration.
        last: Mean instantaneous expected regret of the last 10 iterations.
        difference: Cumulative regret minus the baseline's, paired by seed, over the
            seeds that both have finished; None for the baseline.
        wins: In how many of the paired seeds its cumulative regret is below the
            baseline's; None for the baseline.
        pairs: How many seeds are paired; None for the baseline.
        seconds: Median seconds of one ``ask``.
        warned: How many calls of ``ask`` raised a warning.
        warning: The warning that most of them raised.
    """

    label: str
    seeds: int
    cumulative: Estimate
    last: Estimate
    difference: Estimate | None
    wins: int | None
    pairs: int | None
    seconds: float
    warned: int
    warning: str = ""


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and standard error (sample standard deviation by the root of the count)."""
    if len(values) == 1:
        return Estimate(values[0], None)
    return Estimate(
        statistics.fmean(values), statistics.stdev(values) / len(values) ** 0.5
    )


def by_seed(rows: pd.DataFrame, field: str) -> pd.DataFrame:
    """``seeds x iterations`` of a field of one algorithm on one problem."""
    return rows.pivot(index="seed", columns="iteration", values=field)


def summarise(rows: pd.DataFrame, baseline: str) -> list[Row]:
    """One row per algorithm, of the rows of one problem, in their order."""
    regrets = {
        label: by_seed(group, "regret")
        for label, group in rows.groupby("algorithm", sort=False)
    }
    base = regrets[baseline].sum(axis=1) if baseline in regrets else pd.Series()
    summary = []
    for label, regret in regrets.items():
        total = regret.sum(axis=1)  # seeds
        paired = (total - base).dropna()
        compare = label != baseline and len(paired) > 0
        own = rows[rows.algorithm == label]
        texts = own.warnings.explode().dropna()
        summary.append(
            Row(
                label=str(label),
                seeds=len(total),
                cumulative=estimate(total.tolist()),
                last=estimate(regret.iloc[:, -LAST:].mean(axis=1).tolist()),
                difference=estimate(paired.tolist()) if compare else None,
                wins=int((paired < 0).sum()) if compare else None,
                pairs=len(paired) if compare else None,
                seconds=float(own.seconds.median()),
                warned=int((own.warnings.str.len() > 0).sum()),
                warning=str(texts.mode().iloc[0]) if len(texts) else "",
            )
        )
    return summary


def warning_notes(rows: Sequence[Row], iterations: int) -> list[str]:
    """One line per algorithm whose ``ask`` warned: how often, with which text."""
    return [
        f"{row.label}: {row.warned} of {row.seeds * iterations} asks warned, mostly "
        f"{row.warning!r}"
        for row in rows
        if row.warned
    ]


def curves(rows: pd.DataFrame, field: str) -> dict[str, Tensor]:
    """Label -> ``seeds x iterations`` of ``regret``, ``cumulative`` or ``simple``.

    ``simple`` is the least regret so far.
    """
    found = {}
    for label, group in rows.groupby("algorithm", sort=False):
        regret = torch.tensor(by_seed(group, "regret").to_numpy())
        if field == "cumulative":
            regret = regret.cumsum(-1)
        elif field == "simple":
            regret = regret.cummin(-1).values
        found[str(label)] = regret
    return found


def _cells(rows: Sequence[Row], baseline: str) -> tuple[list[str], list[list[str]]]:
    head = [
        "algorithm",
        "seeds",
        "cumulative regret",
        f"regret, last {LAST}",
        f"minus {baseline}, paired",
        f"below {baseline}",
        "s/ask",
    ]
    body = [
        [
            row.label,
            str(row.seeds),
            str(row.cumulative),
            str(row.last),
            "" if row.difference is None else str(row.difference),
            "" if row.wins is None else f"{row.wins} of {row.pairs}",
            f"{row.seconds:.2g}",
        ]
        for row in rows
    ]
    return head, body


def rich_table(title: str, rows: Sequence[Row], baseline: str) -> Table:
    """The table for the terminal."""
    head, body = _cells(rows, baseline)
    table = Table(
        title=title,
        caption="mean ± standard error over seeds",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,  # seven columns in 80 characters
        pad_edge=False,
    )
    for i, name in enumerate(head):
        heading = name.replace(" ", "\n")
        table.add_column(heading, justify="left" if i == 0 else "right", no_wrap=True)
    for cells in body:
        table.add_row(*cells)
    return table


def markdown_table(
    rows: Sequence[Row], baseline: str, notes: Sequence[str] = ()
) -> str:
    """The table for the repository."""
    head, body = _cells(rows, baseline)
    lines = [
        "| " + " | ".join(head) + " |",
        "|" + "|".join(["---"] + ["---:"] * (len(head) - 1)) + "|",
        *("| " + " | ".join(cells) + " |" for cells in body),
    ]
    lines += [f"\n{note}." for note in notes]
    return "\n".join(lines) + "\n"


def print_tables(results: Path, console: Console) -> None:
    """Show one table per problem."""
    rows, about = load(results)
    config = about["config"]
    for problem, group in rows.groupby("problem", sort=False):
        summary = summarise(group, config["baseline"])
        console.print(rich_table(_title(config, problem), summary, config["baseline"]))
        for note in warning_notes(summary, config["iterations"]):
            console.print(note, style="dim")


def write_tables(out: Path) -> None:
    """Write ``table.md`` and ``regret.png`` beside the results.

    Raises:
        ConfigError: There are no results.
    """
    rows, about = load(out)
    config = about["config"]
    problems = list(rows.groupby("problem", sort=False))
    one = len(problems) == 1
    lines = [
        f"# {_title(config, problems[0][0]) if one else _title(config)}",
        "",
        "Mean ± standard error over seeds; lower is better. Contexts, noise and "
        "initial decisions are the same for all algorithms of a seed.",
    ]
    for problem, group in problems:
        summary = summarise(group, config["baseline"])
        notes = warning_notes(summary, config["iterations"])
        lines += [""] if one else ["", f"**{problem}**", ""]
        lines.append(markdown_table(summary, config["baseline"], notes).rstrip())
    (out / "table.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    draw(rows, _title(config), out / "regret.png")


def draw(rows: pd.DataFrame, title: str, path: Path) -> None:
    """Save the regret curves: cumulative on the left, instantaneous on the right."""
    problems = list(rows.groupby("problem", sort=False))
    figure, axes = plt.subplots(
        len(problems),
        2,
        figsize=(10.5, 4.2 * len(problems)),
        layout="constrained",
        squeeze=False,
    )
    for (problem, group), (left, right) in zip(problems, axes, strict=True):
        plot_regret(curves(group, "cumulative"), left)
        plot_regret(
            curves(group, "regret"), right, ylabel="instantaneous expected regret"
        )
        right.get_legend().remove()
        left.set_title(problem)
    figure.suptitle(f"{title}: mean and standard error")
    figure.savefig(path, dpi=110 if len(problems) > 1 else 150)
    plt.close(figure)


def _title(config: dict[str, Any], problem: Any = "") -> str:
    name = (
        config["name"]
        if problem in ("", config["name"])
        else (f"{config['name']}: {problem}")
    )
    size = f" ({config['size']})" if config["size"] else ""
    return (
        f"{name}{size}, {len(config['seeds'])} seeds, {config['iterations']} "
        f"iterations after {config['initial']} random decisions"
    )
