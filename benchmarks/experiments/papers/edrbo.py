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
