"""What EDRBO's authors publish beside our runs: mean values of the decisions."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import pandas as pd

from benchmarks.experiments.papers.judge import runs_of
from benchmarks.run.published import PUBLISHED
from benchmarks.run.report import Table
from benchmarks.run.tables import KEY, mean_value

STUDY = "edrbo"
BATCH = "edrbo_batch"  # a slip in EDRBO: the name of the method, too
NAMES = (STUDY, BATCH, "edrbo_slips", "edrbo_diagonal", "edrbo_detached")
"""The experiments: the study, and those with slips of their code."""
OTHER_FUNCTIONS = ("six_hump_camel", "three_hump_camel")
"""Theirs are not ours."""
SLIPS = {
    ("edrbo", BATCH): "EDRBO has less regret than with one penalty for a whole batch",
    ("stable_opt", "stable_opt_shifted"): "StableOpt has less regret than with the "
    "interval [m - 3 s, m - s]",
    ("gp_ucb", "gp_ucb_twice_rooted"): "GP-UCB has less regret than with the root of "
    "the width taken twice",
    (
        "drbo_mmd",
        "drbo_mmd_diagonal",
    ): "DRBO-MMD has less regret than with the diagonal of the grid of contexts",
    ("wdrbo", "wdrbo_detached"): "WDRBO has less regret than with the penalty without "
    "its gradient",
}
"""A method, and it with a slip of theirs -> what holds if the slip does harm."""
WITHOUT_SLIP = {slip: method for method, slip in SLIPS}
_INITIAL = 5  # Sobol decisions, which count as the first


def their_rows() -> Any:
    """The file: a row for each problem, method, seed and part of the decisions."""
    return pd.read_csv(PUBLISHED / "edrbo.csv")


class Part(NamedTuple):
    """Mean values of one published part of the decisions.

    Args:
        theirs: Problem and method -> a column for each seed.
        ours: The same.
        first: The number of the first decision; the first five of all were Sobol's.
        last: The number of the last.
    """

    theirs: pd.DataFrame
    ours: pd.DataFrame
    first: int
    last: int


@cache
def parts_of_runs() -> list[Part]:
    """The published parts, each with those of our runs."""
    runs: Any = pd.concat([runs_of(name) for name in NAMES])
    parts = []
    for (first, last), theirs in their_rows().groupby(["first", "last"]):
        own = mean_value(runs, first - _INITIAL, last - _INITIAL)
        ours = runs.assign(value=own).groupby(KEY, sort=False)["value"].mean().unstack()
        values = theirs.set_index(KEY)["value"].unstack()
        parts.append(Part(values, ours, first, last))
    return parts


def size_of_runs(name: str) -> str:
    """Seeds and rounds of an experiment."""
    runs = runs_of(name)
    return f"{runs['seed'].nunique()} seeds of {runs['rounds'].max()} rounds"


def gaps_of(part: Part) -> Any:
    """How far our mean values are from theirs: problems by methods.

    A method with a slip is held against theirs of the same name without. The two
    problems that are not the same functions are left out.
    """
    ours: Any = part.ours.mean(axis=1).unstack().drop(index=[*OTHER_FUNCTIONS])
    return ours.sub(_beside(ours, part.theirs.mean(axis=1))).abs()


def _beside(ours: Any, theirs: Any) -> Any:
    """Theirs by problem and method, as columns with the names of ours."""
    table = theirs.unstack()
    names = {name: WITHOUT_SLIP.get(name, name) for name in ours}
    return pd.DataFrame({n: table[m] for n, m in names.items() if m in table})


def _distances() -> Table:
    """How far ours are from theirs, in standard errors of the difference."""
    parts, cells = parts_of_runs(), []
    for part in parts:
        gaps = gaps_of(part)
        own: Any = part.ours.sem(axis=1).unstack() ** 2
        errors = gaps / (own + _beside(own, part.theirs.sem(axis=1) ** 2)) ** 0.5
        errors = errors.loc[gaps.index].dropna(axis="columns", how="all")
        cells.append(
            {
                name: [f"{each.median():.1f}", f"{each.max():.1f} ({each.idxmax()})"]
                for name, each in errors.items()
            }
        )
    slips = ", ".join(f"`{slip}` by `{method}`" for method, slip in SLIPS)
    head = [
        f"decisions {part.first} to {part.last}: {word}"
        for part in parts
        for word in ("median", "largest")
    ]
    return Table(
        ["ours", *head],
        [
            [f"`{name}`", *(cell for each in cells for cell in each[name])]
            for name in cells[0]
        ],
        "How far the mean values of ours are from theirs, in standard errors of the "
        "difference (seeds of both), over those of the seven problems without the "
        "camels that were run. What has a slip switched on is measured by their "
        f"method: {slips}.",
    )


def values_tables() -> str:
    """How far ours are from theirs, and the mean values of each published part."""
    tables = [_distances(), *(_table(part) for part in parts_of_runs())]
    return "\n\n".join(map(str, tables))


def _table(part: Part) -> Table:
    methods = list(dict.fromkeys(part.ours.index.get_level_values("algorithm")))
    lines = []
    for problem in dict.fromkeys(part.ours.index.get_level_values("problem")):
        line = [problem]
        for method in methods:
            key = (problem, method)
            sides = [s.loc[key] for s in (part.theirs, part.ours) if key in s.index]
            line.append(" / ".join(f"{s.mean():.3g} ± {s.sem():.1g}" for s in sides))
        lines.append(line)
    title = (
        f"Mean value of the decisions {part.first} to {part.last} ± standard error, "
        "theirs / ours (higher is better). Theirs: 10 seeds of 195 rounds; ours: "
        f"{size_of_runs(STUDY)}."
    )
    return Table(["problem", *methods], lines, title)
