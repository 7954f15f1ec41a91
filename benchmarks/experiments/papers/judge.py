"""The rules and the data by which a claim is judged."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from benchmarks.run.statistics import holm, wilcoxon
from benchmarks.run.tables import load_tables

RESULTS = Path(__file__).parents[2] / "results"
MMD = ("drbo_mmd", "drbo_mmd_minimax")
LEVEL = 0.05
DEFAULT = "_ensemble"
"""Ends the name of a method with this library's default model."""
SPEED, SPEED_TABLE = "iteration_speed.md", "### Whole iterations"


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
    if p >= LEVEL:
        return f"cannot be decided (p {p:.2f})"
    side = "holds" if _rank_sum(differences) < 0 else "does not hold"
    return f"{side} ({p_text(p)})"


def p_text(p: float) -> str:
    return "p < .001" if p < 0.001 else f"p {p:.2g}"


def _rank_sum(differences: Sequence[float]) -> float:
    """The sum of the signed ranks: the side of Wilcoxon's test, not that of a mean."""
    d = np.asarray(differences)
    return float(np.sign(d) @ rankdata(np.abs(d)))


class Tests(NamedTuple):
    """Several tests with Holm's correction; negative differences go the claim's way.

    Args:
        p: Name of the test -> corrected p.
        shown: The names of those that go the claim's way, significantly.
        against: Of those that go the other way.
    """

    p: Mapping[str, float]
    shown: Sequence[str]
    against: Sequence[str]

    @classmethod
    def of(cls, differences: Mapping[str, Sequence[float]]) -> Tests:
        """Name of the test -> differences."""
        corrected = holm([wilcoxon(each) for each in differences.values()])
        p = dict(zip(differences, corrected, strict=True))
        sides = {n: _rank_sum(each) for n, each in differences.items() if p[n] < LEVEL}
        shown = [name for name, side in sides.items() if side < 0]
        return cls(p, shown, [name for name in sides if name not in shown])

    def text(self) -> str:
        """Which of them go the other way, and which are not decided."""
        against = [f"{name} ({p_text(self.p[name])})" for name in self.against]
        decided = {*self.shown, *self.against}
        open_ = [f"{n} ({p_text(p)})" for n, p in self.p.items() if n not in decided]
        parts = [f"the other way for {', '.join(against)}"] if against else []
        parts += [f"not decided for {', '.join(open_)}"] if open_ else []
        return "; ".join(parts) or "each pair is decided"


def each_pair(
    ranks: pd.DataFrame, first: Sequence[str], second: Sequence[str]
) -> tuple[str, str]:
    """Whether each of the first is before each of the second, by Holm's correction.

    Returns:
        The verdict, and the pairs that do not show it.
    """
    tests = Tests.of(_pairs(ranks, first, second))
    number = len(tests.p)
    if tests.against:
        found = f"does not hold for {len(tests.against)} of {number} pairs"
    elif len(tests.shown) == number:
        found = f"holds ({p_text(max(tests.p.values()))})"
    elif tests.shown:
        found = f"holds for {len(tests.shown)} of {number} pairs"
    else:
        found = "cannot be decided"
    return found, tests.text()


def each_pair_by_problem(
    ranks: pd.DataFrame, first: Sequence[str], second: Sequence[str]
) -> tuple[str, str]:
    """The same on each problem; one correction for all pairs and problems.

    Args:
        ranks: By problem and seed.
        first: The methods that the claim has before the others.
        second: The others.

    Returns:
        On which problems each pair shows it, and the pairs that do not.
    """
    groups: Any = ranks.groupby(level="problem", sort=False)
    names = list(_pairs(ranks, first, second))
    tests = Tests.of(
        {
            f"{problem}: {name}": each
            for problem, group in groups
            for name, each in _pairs(group, first, second).items()
        }
    )
    parts = {}
    for problem, _ in groups:
        own = [f"{problem}: {name}" for name in names]
        if all(name in tests.shown for name in own):
            parts.setdefault("holds", []).append(str(problem))
        elif any(name in tests.against for name in own):
            parts.setdefault("does not hold", []).append(str(problem))
        else:
            parts.setdefault("not decided", []).append(str(problem))
    found = "; ".join(f"{word} on {', '.join(on)}" for word, on in parts.items())
    return found, tests.text()


def _pairs(
    ranks: pd.DataFrame, first: Sequence[str], second: Sequence[str]
) -> dict[str, list[float]]:
    return {
        f"`{a}` and `{b}`": (ranks[a] - ranks[b]).tolist()
        for a in first
        for b in second
    }


def by_problem(
    differences: pd.Series, lower: str = "lower", higher: str = "higher"
) -> str:
    """On which problems a difference is significant, over seeds, by Holm's correction.

    Args:
        differences: The first less the second, by problem and seed.
        lower: What is said where the first is lower.
        higher: What is said where it is higher.
    """
    groups: Any = differences.groupby(level="problem", sort=False)
    tests = Tests.of({str(name): each.tolist() for name, each in groups})
    sides = ((lower, tests.shown), (higher, tests.against))
    parts = [f"{side} on {', '.join(names)}" for side, names in sides if names]
    number = len(tests.p)
    open_ = number - len(tests.shown) - len(tests.against)
    parts += [f"not decided on {open_} of {number}"] if open_ else []
    return "; ".join(parts)


def runs_of(name: str) -> Any:
    """All runs of a committed benchmark; see ``load_tables``."""
    return load_tables(RESULTS / name)[0]


def ranks_of(name: str, problems: Sequence[str] = ()) -> tuple[pd.DataFrame, str]:
    """Ranks of the paper's methods by problem and seed, and the size of the runs."""
    scores, size = scores_of(name, problems)
    own = [method for method in scores.columns if not method.endswith(DEFAULT)]
    of_the_paper: Any = scores[own]
    return of_the_paper.rank(axis="columns"), size


def with_our_default(name: str, method: str, paper: str) -> Iterator[Claim]:
    """A method with this library's default model against itself with the paper's.

    Args:
        name: Of the results.
        method: That has a column of either kind, if the former has been run.
        paper: The size that the paper states.
    """
    scores, size = scores_of(name)
    if f"{method}{DEFAULT}" not in scores:
        return
    difference: Any = (scores[f"{method}{DEFAULT}"] - scores[method]).dropna()
    yield Claim(
        f"Not in the text: `{method}` has less regret with this library's default "
        "model",
        verdict(difference.tolist()),
        f"lower in {(difference < 0).sum()} of {len(difference)} runs; problem by "
        f"problem: {by_problem(difference)}",
        "an ensemble of four in place of one model of BoTorch",
        size_of(size, paper),
        f"{name}/results.parquet",
    )


def scores_of(name: str, problems: Sequence[str] = ()) -> tuple[pd.DataFrame, str]:
    """Cumulative regret by problem and seed, and the size of what was run."""
    runs = runs_of(name)
    size = f"{runs.seed.nunique()} seeds, {runs.rounds.max()} rounds"
    if problems:
        runs = runs[runs["problem"].isin(problems)]
    runs = runs.set_index(["problem", "seed", "algorithm"])
    # The mixture of Hartmann functions is judged by what was seen.
    scores = runs["regret"].unstack()
    rewards = runs["reward"].unstack()
    if "complicated_hartmann" in scores.index:
        scores.loc["complicated_hartmann"] = -rewards.loc[
            ["complicated_hartmann"]
        ].to_numpy()
    return scores, size


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
