"""BOCU (Tay et al. 2024) and misspecified GP bandits (Bogunovic and Krause 2021)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.experiments.papers.judge import (
    RESULTS,
    Claim,
    before,
    cells_of,
    means_of,
    size_of,
    verdict,
)


def claims_of_bocu() -> Iterator[Claim]:
    """Its claims."""
    files = sorted((RESULTS / "bocu").glob("*/iterations.csv"))
    every = pd.concat(
        [pd.read_csv(path).assign(problem=path.parent.name) for path in files]
    )
    ends: Any = every.groupby("problem")["decision"].transform("max")
    last = every[every["decision"] == ends]
    totals: Any = last.pivot(
        index=["problem", "objective", "distance"], columns="method", values="mean"
    )
    # Under DRO both versions of UCB-BOCU are one.
    totals["ucb_bocu_2"] = totals["ucb_bocu_2"].fillna(totals["ucb_bocu_1"])
    ranks = totals.rank(axis="columns")
    others = [m for m in ranks if m != "ts_bocu"]
    run = sizes_of_bocu([path.parent for path in files])
    finished = size_of(f"{run}, {len(ranks)} settings", "10 seeds, decisions not told")
    thompson = ranks["ts_bocu"]
    yield Claim(
        "Figure 2: TS-BOCU has low regret in most settings",
        verdict(before(ranks, ["ts_bocu"], others).tolist()),
        f"mean rank {thompson.mean():.1f} of 6; first in "
        f"{(thompson == 1).sum()}, before `random` in "
        f"{(totals['ts_bocu'] < totals['random']).sum()}, last in "
        f"{(thompson == 6).sum()} of {len(ranks)}",
        "with a lengthscale of .1 nearly all of the prior's variance is left after so "
        "few decisions; a block is a setting",
        finished,
        "bocu/*/iterations.csv",
    )
    struggling = ["random", "ucb_so"]
    rest = [m for m in ranks if m not in struggling]
    yield Claim(
        "Figure 2: Random and UCB-SO struggle",
        verdict([-d for d in before(ranks, struggling, rest)]),
        "mean ranks " + means_of(ranks, *struggling, *rest),
        "the same; their code sets the beta of the UCB baselines to 0 under DRO",
        finished,
        "bocu/*/iterations.csv",
    )
    title = "**DRO, TV**"
    found = cells_of("bocu_ten/table.md", title)
    finished = size_of("10 seeds, 200 decisions, TS and random", "10 seeds")
    yield Claim(
        "Figure 2: TS-BOCU's regret is sublinear",
        "holds under DRO",
        f"GP samples, DRO, TV: regret of the last quarter by that of the first "
        f"{found['ts_bocu'][2]} (`random` {found['random'][2]}); level with random "
        "under WCS",
        "200 decisions are few for four dimensions; their functions interpolate 1,000 "
        "points, of which the model can learn half",
        finished,
        "bocu_ten/table.md",
    )
    right = wrong = 0
    for path in sorted((RESULTS / "bocu").glob("*/table.md")):
        for distance in ("TV", "MMD"):
            table = cells_of(
                f"bocu/{path.parent.name}/table.md",
                f"**ts_bocu judged by every objective, {distance}**",
            )
            means = [[float(c.split(" ")[0]) for c in table[k]] for k in table]
            for objective in range(3):
                column = [row[objective] for row in means]
                right += column.index(min(column)) == objective
                wrong += 1
    yield Claim(
        "Figure 3: the right parameters are best",
        "cannot be decided",
        f"the right ones have the lowest mean in {right} of {wrong} columns (a third "
        "would be chance)",
        "nearly all differences are within the standard errors",
        size_of(run, "10 seeds"),
        "bocu/*/table.md",
    )


def sizes_of_bocu(folders: Sequence[Path]) -> str:
    """Seeds and decisions, by what the tables of the functions say."""
    functions: dict[tuple[str, str], list[str]] = {}
    for folder in folders:
        text = (folder / "table.md").read_text(encoding="utf-8")
        found = re.search(r"\*\*: (\d+) seeds, (\d+) decisions", text)
        if found is None:
            raise ValueError(f"{folder / 'table.md'} does not say its seeds.")
        functions.setdefault((found[1], found[2]), []).append(folder.name)
    sizes = {
        f"{seeds} seeds, {decisions} decisions": names
        for (seeds, decisions), names in functions.items()
    }
    if len(sizes) == 1:
        return next(iter(sizes))
    return "; ".join(f"{', '.join(names)}: {size}" for size, names in sizes.items())


def claims_of_misspecified() -> Iterator[Claim]:
    """Its claims."""
    waves = cells_of("misspecified/table.md", "**waves**")
    plain, enlarged, phased = (
        waves[m][2].split(" \\|")[0] for m in ("gp_ucb", "ec_gp_ucb", "phased_gp_us")
    )
    yield Claim(
        "No experiments. Theorem 1 bounds the regret of EC-GP-UCB",
        "holds",
        f"error .3, waves: `ec_gp_ucb` {enlarged}, `phased_gp_us` {phased}, plain "
        f"`gp_ucb` {plain}; the bound is far above (`bounds.png`)",
        "a bound for the worst function; on these the error costs less than the guard",
        "10 seeds, 300 rounds",
        "misspecified/table.md",
    )
    balanced = cells_of("action_sets/table.md", "**waves**")
    first, own, known = (
        balanced[m][-1].split(" \\|")[0]
        for m in ("regret_balancing", "regret_balancing, own guesses", "ec_gp_ucb")
    )
    yield Claim(
        "Algorithm 3 adapts to an error that nobody knows",
        "cannot be decided",
        f"error .3, waves: {first}; with guesses down to zero {own}; "
        f"`ec_gp_ucb`, which knows the error, {known}",
        "no base breaks its bound in 300 rounds, so none is eliminated",
        "3 seeds, 300 rounds",
        "action_sets/table.md",
    )
