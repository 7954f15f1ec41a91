"""The rules and the data by which a claim is judged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.run.statistics import wilcoxon
from benchmarks.run.storage import load

RESULTS = Path(__file__).parents[2] / "results"
MMD = ("drbo_mmd", "drbo_mmd_minimax")


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, and what there is to judge it by.

    Args:
        text: What the text says.
        verdict: Of ``verdict``, or a fact.
        measured: The numbers.
        why: What explains them.
        size: Seeds and rounds finished, of those of the paper.
        file: Below ``benchmarks/results``.
    """

    text: str
    verdict: str
    measured: str
    why: str
    size: str
    file: str


def verdict(differences: Sequence[float]) -> str:
    """By the rule of this module; negative differences go the claim's way."""
    p = wilcoxon(differences)
    if p >= 0.05:
        return f"cannot be decided (p {p:.2f})"
    shown = "p < .001" if p < 0.001 else f"p {p:.2g}"
    side = "holds" if sum(differences) < 0 else "does not hold"
    return f"{side} ({shown})"


def rounds_of(name: str) -> Any:
    """All rounds of a committed benchmark."""
    rows, _ = load(RESULTS / name)
    return rows  # pandas' annotations leave open what most expressions are


def ranks_of(name: str, problems: Sequence[str] = ()) -> tuple[pd.DataFrame, str]:
    """Ranks by problem and seed, and the size of what was run."""
    rows = rounds_of(name)
    size = f"{rows.seed.nunique()} seeds, {rows.iteration.max() + 1} rounds"
    if problems:
        rows = rows[rows["problem"].isin(problems)]
    groups: Any = rows.groupby(["problem", "seed", "algorithm"])
    # The mixture of Hartmann functions is judged by what was seen.
    scores = groups["regret"].sum().unstack()
    rewards = groups["y"].sum().unstack()
    if "complicated_hartmann" in scores.index:
        scores.loc["complicated_hartmann"] = -rewards.loc[
            ["complicated_hartmann"]
        ].to_numpy()
    return scores.rank(axis="columns"), size


def before(ranks: pd.DataFrame, first: Sequence[str], second: Sequence[str]) -> Any:
    """Mean rank of the first less that of the second, by block."""
    return ranks[list(first)].mean(axis=1) - ranks[list(second)].mean(axis=1)


def means_of(ranks: pd.DataFrame, *methods: str) -> str:
    means = ranks.mean()
    return ", ".join(f"`{m}` {means[m]:.1f}" for m in methods)


def size_of(size: str, paper: str) -> str:
    return f"{size}; the paper: {paper}"


def cells_of(path: str, title: str) -> dict[str, list[str]]:
    """First cell of a row -> the others, of the table behind a line of a report."""
    text = (RESULTS / path).read_text(encoding="utf-8")
    lines = text[text.index(title) :].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|"))
    rows = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        first, *cells = (c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1])
        rows[first] = cells
    return rows
