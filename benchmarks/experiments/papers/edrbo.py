"""EDRBO (Ramazyan and Derkach 2026)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import pandas as pd

from benchmarks.experiments.papers.judge import (
    Claim,
    before,
    cells_of,
    means_of,
    rounds_of,
    size_of,
    verdict,
)
from benchmarks.run.published import PUBLISHED
from benchmarks.run.report import Table

_INITIAL = 5  # Sobol decisions, which count as the first


def claims_of_edrbo() -> Iterator[Claim]:
    """Its claims."""
    theirs = pd.read_csv(PUBLISHED / "edrbo.csv")
    length = theirs["last"] - theirs["first"] + 1
    total: Any = (
        theirs.assign(total=theirs["value"] * length)
        .pivot_table(
            index="problem", columns="algorithm", values="total", aggfunc="sum"
        )
        .rank(axis="columns", ascending=False)
    )
    yield Claim(
        "EDRBO is first of nine methods on most of nine problems",
        f"holds in their files: {(total['edrbo'] == 1).sum()} of {len(total)}",
        "by the sum of the values of the decisions 6 to 200, ten seeds, theirs",
        "their StableOpt, DRBO-KDE and MMD carry slips; ERBO and SBO-KDE do not",
        "theirs: 10 seeds, 200 rounds",
        "../published/edrbo.csv",
    )
    yield from _claims_of_order()
    rows = rounds_of("edrbo")
    regret: Any = (
        rows.groupby(["problem", "seed", "algorithm"])["regret"].sum().unstack()
    )
    ranks = regret.rank(axis="columns")
    size = f"{rows.seed.nunique()} seeds, {rows.iteration.max() + 1} rounds"
    finished = size_of(
        f"{size}, {rows.problem.nunique()} problems", "10 seeds, 195 rounds"
    )
    for other, words in (
        ("erbo", "EDRBO has less regret than ERBO"),
        ("erbo_ensemble", "Not in the text: than ERBO with our ensemble"),
        ("edrbo_batch", "Not in the text: than with the slip (one penalty a batch)"),
    ):
        if other not in regret:
            continue
        both = ranks[["edrbo", other]].dropna()
        yield Claim(
            words,
            verdict(before(both, ["edrbo"], [other]).tolist()),
            f"lower in {(both['edrbo'] < both[other]).sum()} of {len(both)} runs; mean "
            "ranks " + means_of(both, "edrbo", other),
            "30 decisions are few: in their files, too, ERBO is level on most problems "
            "by then",
            finished,
            "edrbo/results.parquet",
        )
    claim = cells_of("tournament/claims.md", "## The claims")["4"]
    yield Claim(
        "Not in the text: after 15 outcomes it loses less than ERBO with our ensemble",
        "does not hold",
        f"{claim[2]} points ({claim[1]}, Holm {claim[4]})",
        "kernels without priors are overconfident with few outcomes: the priors matter "
        "as much as the ensemble",
        "178 blocks",
        "tournament/claims.md",
    )


class Values(NamedTuple):
    """Mean values of the first published part of the decisions.

    Args:
        theirs: Problem and method -> value.
        ours: The same for each seed: a column.
        first: The number of the first decision; those before were Sobol's.
        last: The number of the last.
        size: Seeds and rounds of ours.
    """

    theirs: pd.Series
    ours: pd.DataFrame
    first: int
    last: int
    size: str


@cache
def first_values() -> Values:
    """Theirs, and ours by seed."""
    published: Any = pd.read_csv(PUBLISHED / "edrbo.csv")
    rows = rounds_of("edrbo")
    first, last = int(published["first"].min()), int(published["last"].min())
    part = published[published["first"] == first]
    number = rows["iteration"] + 1 + _INITIAL
    own = rows[(number >= first) & (number <= last)]
    ours = own.groupby(["problem", "algorithm", "seed"], sort=False)["expected"].mean()
    return Values(
        part.set_index(["problem", "algorithm"])["value"],
        ours.unstack(),
        first,
        last,
        f"{rows['seed'].nunique()} seeds of {rows['iteration'].max() + 1} rounds",
    )


def _claims_of_order() -> Iterator[Claim]:
    """Which method is first, and how alike the order of all is, theirs and ours."""
    values = first_values()
    pairs: Any = pd.DataFrame(
        {"theirs": values.theirs, "ours": values.ours.mean(axis=1)}
    ).dropna()
    groups = pairs.groupby(level="problem")
    firsts = {
        side: Counter(group[side].idxmax()[1] for _, group in groups)
        for side in ("theirs", "ours")
    }
    others = ", ".join(
        f"`{name}` on {count}"
        for name, count in firsts["ours"].most_common()
        if name != "edrbo"
    )
    alike = groups.apply(lambda group: group["theirs"].corr(group["ours"], "spearman"))
    number = pairs.index.get_level_values("algorithm").nunique()
    size = size_of(values.size, "10 seeds of 195 rounds")
    span = f"decisions {values.first} to {values.last}"
    yield Claim(
        f"The same of {number} methods in our runs, {span}",
        f"first on {firsts['ours']['edrbo']} of {len(groups)} problems",
        "by the mean value over seeds; theirs, the same decisions: "
        f"{firsts['theirs']['edrbo']} of {len(groups)}",
        f"first on the others: {others}",
        size,
        "edrbo/results.parquet",
    )
    yield Claim(
        f"Not in the text: our {number} methods stand in the order of their files, "
        f"{span}",
        f"rank correlation {alike.median():.2f} (median of {len(groups)} problems)",
        ", ".join(f"{name} {value:.2f}" for name, value in alike.items()),
        "their three-hump and six-hump camels are not the same functions as here",
        size,
        "edrbo/results.parquet",
    )


def values_table() -> Table:
    """Mean value of the first published part of the decisions, theirs and ours."""
    values = first_values()
    methods = list(dict.fromkeys(values.ours.index.get_level_values("algorithm")))
    lines = []
    for problem in dict.fromkeys(values.ours.index.get_level_values("problem")):
        line = [problem]
        for method in methods:
            cell, key = "", (problem, method)
            if key in values.ours.index:
                own: Any = values.ours.loc[key]
                cell = f"{own.mean():.3g} ± {own.sem():.1g}"
            if key in values.theirs.index:
                cell = f"{values.theirs[key]:.3g} / {cell}"
            line.append(cell)
        lines.append(line)
    title = (
        f"Mean value of the decisions {values.first} to {values.last}, theirs / ours ± "
        "its standard error (higher is better). Theirs: 10 seeds of 195 rounds; ours: "
        f"{values.size}."
    )
    return Table(["problem", *methods], lines, title)
