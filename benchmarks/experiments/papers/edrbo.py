"""EDRBO (Ramazyan and Derkach 2026)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
    rows = rounds_of("edrbo")
    regret: Any = (
        rows.groupby(["problem", "seed", "algorithm"])["regret"].sum().unstack()
    )
    ranks = regret.rank(axis="columns")
    size = f"{rows.seed.nunique()} seed, {rows.iteration.max() + 1} rounds"
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


def values_table() -> Table:
    """Mean value of the first published part of the decisions, theirs and ours."""
    theirs = pd.read_csv(PUBLISHED / "edrbo.csv")
    rows = rounds_of("edrbo")
    first, last = theirs["first"].min(), theirs["last"].min()
    known: Any = theirs[theirs["first"] == first].set_index(["problem", "algorithm"])
    number = rows["iteration"] + 1 + _INITIAL
    ours = rows[(number >= first) & (number <= last)]
    means = ours.groupby(["problem", "algorithm"], sort=False)["expected"].mean()
    methods = list(dict.fromkeys(rows["algorithm"]))
    lines = []
    for problem in dict.fromkeys(rows["problem"]):
        line = [problem]
        for method in methods:
            own = means.get((problem, method))
            cell = "" if own is None else f"{own:.3g}"
            if (problem, method) in known.index:
                cell = f"{known.loc[(problem, method), 'value']:.3g} / {cell}"
            line.append(cell)
        lines.append(line)
    seeds, rounds = rows["seed"].nunique(), rows["iteration"].max() + 1
    title = (
        f"Mean value of the decisions {first} to {last}, theirs / ours (higher is "
        f"better). Theirs: 10 seeds of 195 rounds; ours: {seeds} seed of {rounds} "
        f"rounds, {len(means)} of {len(lines) * len(methods)} runs."
    )
    return Table(["problem", *methods], lines, title)
