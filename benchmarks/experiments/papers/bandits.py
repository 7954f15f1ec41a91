"""BOCU (Tay et al. 2024) and misspecified GP bandits (Bogunovic and Krause 2021)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
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
        "clear on Hartmann and on the plants; on the other two functions, with a "
        "lengthscale of .1 in four and five dimensions, nearly all of the prior's "
        "variance is left, and all methods are near `random`. A block is a setting",
        finished,
        "bocu/*/iterations.csv",
    )
    struggling = ["random", "ucb_so"]
    rest = [m for m in ranks if m not in struggling]
    yield Claim(
        "Figure 2: Random and UCB-SO struggle",
        verdict([-d for d in before(ranks, struggling, rest)]),
        "mean ranks " + means_of(ranks, *struggling, *rest),
        "not everywhere: `ucb_so` is first under DRO on Hartmann and on the GP sample "
        "(their code sets the beta of the UCB baselines to 0 there, ours is 2)",
        finished,
        "bocu/*/iterations.csv",
    )
    bends = quarters(every)
    yield Claim(
        "Figure 2: TS-BOCU's regret is sublinear",
        verdict(np.log(bends["ts_bocu"]).tolist()),
        "regret of the last quarter of the decisions by that of the first, median of "
        f"{len(bends)} settings: `ts_bocu` {bends['ts_bocu'].median():.2f} (below .8 "
        f"in {(bends['ts_bocu'] < 0.8).sum()}), `random` "
        f"{bends['random'].median():.2f}",
        "linear regret has 1; a block is a setting",
        finished,
        "bocu/*/iterations.csv",
    )
    crossed = crossed_objectives([path.parent for path in files])
    wrong = crossed[["wrong", "other_wrong"]]
    yield Claim(
        "Figure 3: the right parameters are best",
        verdict(np.log(crossed["right"] / wrong.min(axis=1)).tolist()),
        "the right ones have the lowest mean in "
        f"{(crossed['right'] < wrong.min(axis=1)).sum()} of {len(crossed)} columns (a "
        "third would be chance)",
        "against the better of the two wrong ones, so no claim of the mean; a block is "
        "a function, an objective and a distance",
        size_of(run, "10 seeds"),
        "bocu/*/table.md",
    )
    two = crossed.drop(index="GEN", level="objective")
    yield Claim(
        "Figure 3: TS-GEN is the better of the two wrong ones, under DRO and WCS",
        verdict(np.log(two["wrong"] / two["other_wrong"]).tolist()),
        f"lower in {(two['wrong'] < two['other_wrong']).sum()} of {len(two)} columns",
        "the general objective has the worst case and its slope in it, each of the "
        "others one of them",
        size_of(run, "10 seeds"),
        "bocu/*/table.md",
    )


def quarters(every: pd.DataFrame) -> Any:
    """Regret of the last quarter of the decisions by that of the first.

    Args:
        every: Cumulative means, a row for each problem, objective, distance, method and
            decision.

    Returns:
        A row for each setting, a column for each method.
    """
    setting = ["problem", "objective", "distance"]
    totals: Any = every.pivot(
        index="decision", columns=[*setting, "method"], values="mean"
    )
    found = {}
    for column in totals:
        total = totals[column].dropna()
        number = len(total)
        first, third = total.iloc[number // 4 - 1], total.iloc[number - number // 4 - 1]
        found[column] = (total.iloc[-1] - third) / first
    return pd.Series(found).rename_axis([*setting, "method"]).unstack()


def crossed_objectives(folders: Sequence[Path]) -> Any:
    """Regret of Thompson sampling that aimed at the right objective and at two others.

    Args:
        folders: Of the functions.

    Returns:
        A row for each function, distance and objective; ``right``, ``wrong`` (which
        aimed at the general objective, or for that at the worst case) and
        ``other_wrong``.
    """
    rows = {}
    for folder in folders:
        for distance in ("TV", "MMD"):
            table = cells_of(
                f"bocu/{folder.name}/table.md",
                f"**ts_bocu judged by every objective, {distance}**",
            )
            for column, right in enumerate(table):
                means = {aim: float(table[aim][column].split(" ")[0]) for aim in table}
                others = [aim for aim in ("GEN", "DRO", "WCS") if aim != right]
                rows[folder.name, distance, right] = [
                    means[aim] for aim in (right, *others)
                ]
    columns = ["right", "wrong", "other_wrong"]
    found = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    index = pd.MultiIndex.from_tuples(found.index)
    return found.set_axis(index.set_names(["problem", "distance", "objective"]))


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
