"""WDRBO (Micheli et al. 2025)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.experiments.papers.judge import (
    MMD,
    Claim,
    before,
    means_of,
    ranks_of,
    rounds_of,
    size_of,
    verdict,
)
from benchmarks.run.report import estimate


def claims_of_wdrbo() -> Iterator[Claim]:
    """Its claims."""
    rows = rounds_of("figure1")
    total: Any = rows.groupby(["seed", "algorithm"])["regret"].sum().unstack()
    less = (total["wdrbo"] - total["erbo"]).tolist()
    half = rows["iteration"].max() // 2
    late: Any = rows[rows["iteration"] > half].groupby("algorithm")["regret"].mean()
    early: Any = rows[rows["iteration"] <= half].groupby("algorithm")["regret"].mean()
    ratio = late / early
    size = f"{len(less)} seeds, {rows['iteration'].max() + 1} rounds"
    yield Claim(
        "Figure 1: less cumulative regret than ERBO where the reference is wrong",
        verdict(less),
        f"WDRBO less ERBO {estimate(less)}, lower in {sum(d < 0 for d in less)} of "
        f"{len(less)} seeds",
        "the radius .1 is what the penalty needs here: the mean distance to .5 is .08 "
        "by the reference and .18 in truth",
        size_of(size, "100 rounds, seeds not told"),
        "figure1/results.parquet",
    )
    yield Claim(
        "Figure 1: linear growth, since the radius is constant",
        "holds" if ratio.min() > 0.5 else "does not hold",
        f"regret a round in the second half: {late['wdrbo']:.3f} (WDRBO), "
        f"{late['erbo']:.3f} (ERBO), {ratio['wdrbo']:.2f} and "
        f"{ratio['erbo']:.2f} of that in the first (1: linear)",
        "neither method learns the true law in the general setting",
        size_of(size, "100 rounds, seeds not told"),
        "figure1/results.parquet",
    )
    ranks, size = ranks_of("wdrbo")
    finished = size_of(f"{size}, 8 problems", "15 seeds, 100 rounds")
    bad = (*MMD, "stable_opt")
    for names, words in (
        (
            ["erbo", "sbo_kde"],
            "ERBO and SBO-KDE do well: before MMD, its minimax "
            "approximation and StableOpt",
        ),
        (["wdrbo"], "WDRBO does well: before the same three"),
    ):
        yield Claim(
            words,
            verdict(before(ranks, names, bad).tolist()),
            "mean ranks " + means_of(ranks, *names, *bad),
            "the MMD radius is above one for 17 rounds, in which they guard against "
            "every law, and shrinks slowly",
            finished,
            "wdrbo/results.parquet",
        )
    yield Claim(
        "WDRBO is not behind ERBO (both *compelling*)",
        verdict(before(ranks, ["wdrbo"], ["erbo"]).tolist()),
        "mean ranks " + means_of(ranks, "wdrbo", "erbo", "gp_ucb"),
        "where nothing shifts a radius has a price and no use; in EDRBO's published "
        "runs, too, WDRBO has more regret than ERBO on eight of nine problems. Their "
        "code lacks the gradient of L and stops near ERBO; by itself that slip changes "
        "nothing here (`ablations/table.md`)",
        finished,
        "wdrbo/results.parquet",
    )
    yield Claim(
        "StableOpt is not competitive",
        verdict([-d for d in before(ranks, ["stable_opt"], ["wdrbo", "erbo"])]),
        "mean ranks " + means_of(ranks, "stable_opt", "wdrbo", "erbo"),
        "their interval is [m - 3 s, m - s]; with that slip switched on StableOpt is "
        f"last on the newsvendor here: {_slip('newsvendor')}, Branin "
        f"{_slip('branin_2_2')}",
        finished,
        "wdrbo/results.parquet",
    )
    rows = rounds_of("wdrbo")
    seconds: Any = (
        rows[rows["problem"].isin(["ackley_1_1", "branin_2_2"])]
        .groupby(["problem", "seed", "algorithm"])["seconds"]
        .median()
        .unstack()
    )
    dearer = seconds["wdrbo"] / seconds["erbo"]
    yield Claim(
        "Tables 1, 2: at a cost near ERBO's (1.0 and 1.2 times)",
        "holds" if dearer.max() < 1.25 else "does not hold",
        f"{dearer.min():.1f} to {dearer.max():.1f} times an ask of ERBO, with the fit",
        "L is searched to its maximum with its gradient; busy machine",
        size_of(size, "100 rounds"),
        "wdrbo/results.parquet",
    )


def _slip(problem: str) -> str:
    """What StableOpt's shifted interval adds to its regret, paired."""
    rows = rounds_of("ablations")
    rows = rows[rows["problem"] == problem]
    total: Any = rows.groupby(["seed", "algorithm"])["regret"].sum().unstack()
    found = estimate((total["stable_opt_shifted"] - total["stable_opt"]).tolist())
    return f"+{found}"
