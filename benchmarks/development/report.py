"""The tables of the development set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from benchmarks.development.compare import (
    FRESH_FROM,
    METHOD,
    PRIMARY,
    SECOND,
    SecondVerdict,
    Verdict,
    against_baseline,
    asks,
    ends,
    second_verdict,
    verdict,
)
from benchmarks.development.learn import CHECKPOINTS, METHODS
from benchmarks.development.surrogates import BASELINE, CANDIDATES
from benchmarks.run.markdown import markdown_table
from benchmarks.run.statistics import holm
from benchmarks.run.storage import Row
from benchmarks.study.cases import INITIAL
from benchmarks.study.compare import Difference, p_text

_HALVES = {"half A": ("A",), "half B": ("B",), "both halves": ("A", "B")}
_FRESH = "fresh seeds of both halves"


def report(rows: Sequence[Row], command: str) -> str:
    """The report as Markdown.

    Args:
        rows: Runs, as ``Runs.collect`` gives them.
        command: What made them.
    """
    first = [row for row in rows if row["seed"] < FRESH_FROM]
    fresh = [row for row in rows if row["seed"] >= FRESH_FROM]
    ended, asked = ends(first), asks(first)
    parts = ["# The development set", _explanation(rows, command), "## The rule"]
    parts += [_words(verdict(ended)), _second_words(second_verdict(ends(fresh)))]
    parts += _tables(ended, asked, _HALVES)
    if fresh:
        parts += _tables(ends(fresh), asks(fresh), {_FRESH: ("A", "B")})
    parts += ["## Case by case", *_by_case(ended)]
    return "\n\n".join(parts) + "\n"


def _tables(
    ended: pd.DataFrame, asked: pd.DataFrame, groups: Mapping[str, Sequence[str]]
) -> list[str]:
    """Titles and tables by group of halves, method and number of outcomes."""
    parts, there = [], set(ended["half"])
    for name, halves in groups.items():
        if not there.issuperset(halves):
            continue
        for method in METHODS:
            for told in CHECKPOINTS:
                here: list[Any] = [
                    frame[
                        frame["half"].isin(halves)
                        & (frame["method"] == method)
                        & (frame["told"] == told)
                    ]
                    for frame in (ended, asked)
                ]
                if not here[0].empty:
                    title = f"## `{method}`, {told} outcomes, {name}"
                    parts += [title, _table(*here, worst=method != METHOD)]
    return parts


def _explanation(rows: Sequence[Row], command: str) -> str:
    commits = sorted({commit for row in rows for commit in row["commits"]})
    return f"""`{command}`; commits {", ".join(commits)}; {len(rows)} runs.

What is measured, the two halves and the rule: `benchmarks/development/claims.md`, for
seeds 0 to {FRESH_FROM - 1}. The second claim, on the seeds from {FRESH_FROM} upwards:
`benchmarks/development/claims_second.md`. What was run later and decides nothing, such
as `wdrbo_exact`: `benchmarks/development/claims_third.md`.
Losses and regret in percent of a blind guess's; *less botorch* is the mean paired
difference ± its standard error over the blocks (functions and seeds) that both have; p
is one-sided, by Wilcoxon's test, with Holm's correction over the candidates of the
table. The first {INITIAL} decisions are random. *Beyond 1* and *beyond 2*: how many
outcomes lay beyond one and two predicted standard deviations (of a Gaussian 31.7% and
4.6%). Seconds of processor time, the median of an ask."""


def _table(ended: pd.DataFrame, asked: pd.DataFrame, *, worst: bool) -> str:
    there = set(ended["surrogate"])
    names = [name for name in CANDIDATES if name in there]
    measures = ["loss", "worst_loss", "regret"] if worst else ["loss", "regret"]
    found = {m: _differences(ended, names, m) for m in measures}
    head = ["surrogate", "blocks"]
    for measure in measures:
        head += [measure.replace("_", " "), "less botorch"]
        head += ["p"] if measure != "regret" else []
    head += ["beyond 1", "beyond 2", "NLPD", "s/ask"]
    rows = []
    for name in names:
        own: Any = ended[ended["surrogate"] == name]
        said: Any = asked[asked["surrogate"] == name]
        cells = [name, str(len(own))]
        for measure in measures:
            d, p = found[measure].get(name, (None, 1.0))
            cells += [f"{own[measure].mean():.1f}", "" if d is None else str(d)]
            if measure != "regret":
                cells.append("" if d is None else p_text(p))
        cells += calibration_cells(said)
        rows.append([*cells, f"{said['seconds'].median():.2g}"])
    return "\n".join(markdown_table(head, rows))


def calibration_cells(asked: pd.DataFrame) -> list[str]:
    """Shares beyond one and two deviations, and the NLPD, of rows of ``asks``."""
    distance: Any = asked["deviations"]
    shares = [f"{100 * (distance > k).mean():.0f}%" for k in (1, 2)]
    return [*shares, f"{asked['nlpd'].mean():.2f}"]


def _differences(
    ended: pd.DataFrame, names: Sequence[str], measure: str
) -> dict[str, tuple[Difference, float]]:
    """Candidate -> its difference, and p after Holm's correction."""
    found = {
        name: d
        for name in names
        if name != BASELINE
        and (d := against_baseline(ended, name, measure)) is not None
    }
    corrected = holm([d.p for d in found.values()])
    return {name: (d, p) for (name, d), p in zip(found.items(), corrected, strict=True)}


def _words(found: Verdict | None) -> str:
    if found is None:
        return "Half A has not been run with two surrogates yet: nothing is chosen."
    losses = ", ".join(f"{name} {loss:.1f}" for name, loss in found.losses.items())
    lines = [f"Mean end loss on half A: {losses}. Chosen: **{found.chosen}**."]
    for told, d in found.confirmed.items():
        lines.append(
            f"On half B, {told} outcomes, it is {d} against {BASELINE} "
            f"({d.wins} of {d.blocks} blocks, p {p_text(d.p)})."
        )
    if found.chosen != BASELINE and PRIMARY not in found.confirmed:
        lines.append("Half B has not been run with it yet: nothing is confirmed.")
    else:
        lines.append(f"By the rule the default is **{found.default}**.")
    return "\n".join(lines)


def _second_words(found: SecondVerdict | None) -> str:
    if found is None:
        return "The second claim has not been run."
    lines = [
        f"The second claim, {told} outcomes, seeds from {FRESH_FROM}: **{SECOND}** is "
        f"{d} against {BASELINE} ({d.wins} of {d.blocks} blocks, "
        f"p {p_text(d.p)})."
        for told, d in found.differences.items()
    ]
    return "\n".join([*lines, f"By its rule the default is **{found.default}**."])


def _by_case(ended: pd.DataFrame) -> list[str]:
    tables = []
    for method in METHODS:
        for told in CHECKPOINTS:
            at: Any = ended[(ended["method"] == method) & (ended["told"] == told)]
            if at.empty:
                continue
            means = at.pivot_table("loss", "case", "surrogate", sort=False)
            names = [name for name in CANDIDATES if name in means]
            rows = [
                [str(case), *(f"{value:.1f}" for value in means.loc[case, names])]
                for case in means.index
            ]
            title = f"**`{method}`, {told} outcomes**: mean end loss"
            tables.append(
                "\n".join([title, "", *markdown_table(["case", *names], rows)])
            )
    return tables
