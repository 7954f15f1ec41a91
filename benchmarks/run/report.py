"""The numbers of a report, and its table for the terminal."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from rich import box
from rich.console import Console
from rich.table import Table
from torch import Tensor

from benchmarks.run.statistics import holm, wilcoxon
from benchmarks.run.storage import load

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
        simple: The least regret of a decision so far, after the last iteration.
        recommended: Regret of the decision that is recommended at the end.
        difference: Cumulative regret minus the baseline's, paired by seed, over the
            seeds that both have finished; None for the baseline.
        wins: In how many of the paired seeds its cumulative regret is below the
            baseline's; None for the baseline.
        pairs: How many seeds are paired; None for the baseline.
        p_value: Of Wilcoxon's test of the paired differences, with Holm's correction
            for all algorithms that are compared with the baseline; None for it.
        seconds: Median seconds of one ``ask``.
        fit: Mean seconds of the fit of the model in one ``ask``.
        acquisition: Mean seconds of all else but the inner problem.
        inner: Mean seconds of the inner problem.
        warned: How many calls of ``ask`` raised a warning.
        warning: The warning that most of them raised.
    """

    label: str
    seeds: int
    cumulative: Estimate
    last: Estimate
    simple: Estimate
    recommended: Estimate
    difference: Estimate | None
    wins: int | None
    pairs: int | None
    p_value: float | None
    seconds: float
    fit: float
    acquisition: float
    inner: float
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


def summarise(
    rows: pd.DataFrame, recommended: pd.DataFrame, baseline: str
) -> list[Row]:
    """One row per algorithm on one problem.

    Args:
        rows: All rounds on the problem.
        recommended: ``problem``, ``algorithm``, ``seed``, ``regret`` of what was
            recommended at the end of each run.
        baseline: The algorithm that the others are compared with.
    """
    regrets = {
        label: by_seed(group, "regret")
        for label, group in rows.groupby("algorithm", sort=False)
    }
    base = regrets[baseline].sum(axis=1) if baseline in regrets else pd.Series()
    paired = {
        label: (regret.sum(axis=1) - base).dropna()
        for label, regret in regrets.items()
        if label != baseline
    }
    compared = [label for label, differences in paired.items() if len(differences)]
    p_values = holm([wilcoxon(paired[label].tolist()) for label in compared])
    p_value = dict(zip(compared, p_values, strict=True))
    there = recommended[recommended.problem == rows.problem.iloc[0]]
    regret_of = there.groupby("algorithm").regret
    summary = []
    for label, regret in regrets.items():
        total = regret.sum(axis=1)  # seeds
        compare = label in compared
        own = rows[rows.algorithm == label]
        texts = own.warnings.explode().dropna()
        summary.append(
            Row(
                label=str(label),
                seeds=len(total),
                cumulative=estimate(total.tolist()),
                last=estimate(regret.iloc[:, -LAST:].mean(axis=1).tolist()),
                simple=estimate(regret.min(axis=1).tolist()),
                recommended=estimate(regret_of.get_group(label).tolist()),
                difference=estimate(paired[label].tolist()) if compare else None,
                wins=int((paired[label] < 0).sum()) if compare else None,
                pairs=len(paired[label]) if compare else None,
                p_value=p_value.get(label),
                seconds=float(own.seconds.median()),
                fit=float(own.fit_seconds.mean()),
                acquisition=float(
                    (own.seconds - own.fit_seconds - own.inner_seconds).mean()
                ),
                inner=float(own.inner_seconds.mean()),
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


def print_tables(results: Path, console: Console) -> None:
    """Show one table per problem."""
    rows, about = load(results)
    config, recommended = about["config"], pd.DataFrame(about["recommended"])
    for problem, group in rows.groupby("problem", sort=False):
        summary = summarise(group, recommended, config["baseline"])
        title = title_of(config, problem)
        console.print(rich_table(title, summary, config["baseline"]))
        for note in warning_notes(summary, config["iterations"]):
            console.print(note, style="dim")


def rich_table(title: str, rows: Sequence[Row], baseline: str) -> Table:
    """The table for the terminal."""
    table = Table(
        title=title,
        caption="mean ± standard error over seeds",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,  # seven columns in 80 characters
        pad_edge=False,
    )
    head = ("algorithm", "seeds", "cumulative regret", f"regret, last {LAST}")
    head += (f"minus {baseline}, paired", f"below {baseline}", "s/ask")
    for i, name in enumerate(head):
        heading = name.replace(" ", "\n")
        table.add_column(heading, justify="left" if i == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(
            row.label,
            str(row.seeds),
            str(row.cumulative),
            str(row.last),
            "" if row.difference is None else str(row.difference),
            "" if row.wins is None else f"{row.wins} of {row.pairs}",
            f"{row.seconds:.2g}",
        )
    return table


def title_of(config: Mapping[str, Any], problem: Any = "") -> str:
    """What a benchmark is, in one line."""
    other = problem not in ("", config["name"])
    name = f"{config['name']}: {problem}" if other else config["name"]
    size = f" ({config['size']})" if config["size"] else ""
    return (
        f"{name}{size}, {len(config['seeds'])} seeds, {config['iterations']} "
        f"iterations after {config['initial']} random decisions"
    )
