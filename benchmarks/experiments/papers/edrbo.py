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
    by_problem,
    cells_of,
    rounds_of,
    size_of,
    verdict,
)
from benchmarks.run.published import PUBLISHED
from benchmarks.run.report import Table

_INITIAL = 5  # Sobol decisions, which count as the first
_THEIR_SIZE = "10 seeds of 195 rounds"
_STUDY = "edrbo"
_BATCH = "edrbo_batch"  # a slip in EDRBO: the name of the method, too
_SLIPS = "edrbo_slips"  # of other methods
_NAMES = (_STUDY, _BATCH, _SLIPS)
_OTHER_FUNCTIONS = ("six_hump_camel", "three_hump_camel")  # theirs are not ours
_SLIPS_OF = {
    ("edrbo", _BATCH): "EDRBO has less regret than with one penalty "
    "for a whole batch (their slip)",
    ("stable_opt", "stable_opt_shifted"): "StableOpt has less regret than with the "
    "interval [m - 3 s, m - s] (their slip)",
    ("gp_ucb", "gp_ucb_twice_rooted"): "GP-UCB has less regret than with the root of "
    "the width taken twice (their slip)",
}


def claims_of_edrbo() -> Iterator[Claim]:
    """Its claims."""
    total = _their_totals().rank(axis="columns", ascending=False)
    yield Claim(
        "In the authors' files, not in the text: EDRBO is first of nine methods on "
        "most of nine problems",
        f"holds in their files: {(total['edrbo'] == 1).sum()} of {len(total)}",
        "by the sum of the values of the decisions 6 to 200, ten seeds, theirs",
        "their StableOpt, DRBO-KDE and MMD carry slips; ERBO and SBO-KDE do not",
        "theirs: 10 seeds, 200 rounds",
        "../published/edrbo.csv",
    )
    for part in parts_of_runs():
        yield from _claims_of_order(part)
    yield from _claims_of_regret()
    claim = cells_of("tournament/claims.md", "## The claims")["4"]
    yield Claim(
        "Not in the text: after 15 outcomes it loses less than ERBO with our ensemble",
        f"{claim[5].strip('*')} hold (p {claim[4]})"
        if claim[5] == "**does not**"
        else claim[5].strip("*"),
        f"{claim[2]} points ({claim[1]})",
        "kernels without priors are overconfident with few outcomes: the priors matter "
        "as much as the ensemble",
        claim[1].split(",")[0],
        "tournament/claims.md",
    )


class Part(NamedTuple):
    """Mean values of one published part of the decisions that all our runs have.

    Args:
        theirs: Problem and method -> value.
        ours: The same for each seed: a column.
        first: The number of the first decision; the first five of all were Sobol's.
        last: The number of the last.
    """

    theirs: pd.Series
    ours: pd.DataFrame
    first: int
    last: int


@cache
def parts_of_runs() -> list[Part]:
    """The published parts, each with those of our runs that reach its end."""
    published: Any = pd.read_csv(PUBLISHED / "edrbo.csv")
    parts = []
    for (first, last), theirs in published.groupby(["first", "last"]):
        whole = [rounds_of(name) for name in _NAMES if _end(name) >= last]
        rows: Any = pd.concat(whole)
        number = rows["iteration"] + 1 + _INITIAL
        cells = rows[(number >= first) & (number <= last)].groupby(
            ["problem", "algorithm", "seed"], sort=False
        )
        values = theirs.set_index(["problem", "algorithm"])["value"]
        parts.append(
            Part(
                values,
                cells["expected"].mean().unstack(),
                first,
                last,
            )
        )
    return parts


def _end(name: str) -> int:
    """The number of the last decision of each run."""
    return rounds_of(name)["iteration"].max() + 1 + _INITIAL


def _size(name: str) -> str:
    return (
        f"{rounds_of(name)['seed'].nunique()} seeds of {_end(name) - _INITIAL} rounds"
    )


def _file(name: str) -> str:
    return f"{name}/results.parquet"


def _claims_of_order(part: Part) -> Iterator[Claim]:
    """Which method is first, and how alike the order of all is, theirs and ours."""
    means: Any = part.ours.mean(axis=1)
    pairs: Any = pd.DataFrame({"theirs": part.theirs, "ours": means}).dropna()
    groups = pairs.groupby(level="problem")
    number = pairs.index.get_level_values("algorithm").nunique()
    span = f"decisions {part.first} to {part.last}"
    alone, shared = (_firsts(pairs["theirs"], s)["edrbo"] for s in (False, True))
    runs = [(f"The same of {number} methods in our runs", _STUDY, pairs["ours"])]
    if _BATCH in means.index.get_level_values("algorithm"):
        slip = means.drop("edrbo", level="algorithm").rename({_BATCH: "edrbo"})
        words = "The same with their slip in EDRBO (one penalty for a whole batch)"
        runs.append((words, _BATCH, slip[slip.index.isin(pairs.index)]))
    for words, name, ours in runs:
        firsts = _firsts(ours, shared=False)
        others = ", ".join(
            f"`{method}` on {count}"
            for method, count in firsts.most_common()
            if method != "edrbo"
        )
        yield Claim(
            f"{words}, {span}",
            f"first on {firsts['edrbo']} of {len(groups)} problems",
            f"by the mean value over seeds; theirs, the same decisions: {alone} of "
            f"{len(groups)}" + (f", and level with others on {shared}" * (shared > 0)),
            f"first on the others: {others}",
            size_of(_size(name), _THEIR_SIZE),
            _file(name),
        )
    alike = groups.apply(lambda group: group["theirs"].corr(group["ours"], "spearman"))
    yield Claim(
        f"Not in the text: our {number} methods stand in the order of their files, "
        f"{span}",
        f"rank correlation {alike.median():.2f} (median of {len(groups)} problems)",
        ", ".join(f"{name} {value:.2f}" for name, value in alike.items()),
        "their three-hump and six-hump camels are not the same functions as here",
        size_of(_size(_STUDY), _THEIR_SIZE),
        _file(_STUDY),
    )


def _firsts(values: pd.Series, shared: bool) -> Counter[str]:
    """On how many problems each method has the highest value, alone or with others.

    Theirs have three digits, so some are equal.
    """
    best: Any = values[values == values.groupby(level="problem").transform("max")]
    number = best.groupby(level="problem").transform("size")
    found = best[(number > 1) == shared]
    return Counter(found.index.get_level_values("algorithm"))


def _claims_of_regret() -> Iterator[Claim]:
    """One method against another, over the rounds that both have."""
    words = "EDRBO has less regret than ERBO"
    with_slips = [
        (method, slip, f"Not in the text: {text}", _nearer(method, slip))
        for (method, slip), text in _SLIPS_OF.items()
    ]
    for first, other, text, why in (
        ("edrbo", "erbo", f"Not in the text: {words}", _in_their_files()),
        (
            "edrbo",
            "erbo_ensemble",
            f"Not in the text: {words} with our ensemble",
            "the model matters more than the penalty",
        ),
        (
            "erbo_ensemble",
            "erbo",
            "Not in the text: ERBO has less regret with our ensemble",
            "an ensemble of four in place of one model",
        ),
        *with_slips,
    ):
        rows = _rows_of(first, other)
        groups: Any = rows.groupby(["problem", "seed", "algorithm"])
        regret: Any = groups["regret"].sum().unstack().dropna()
        less = before(regret.rank(axis="columns"), [first], [other])
        same = less.drop(index=list(_OTHER_FUNCTIONS), level="problem")
        number = rows["iteration"].max() + 1
        size = f"{rows['seed'].nunique()} seeds, {number} rounds"
        yield Claim(
            text,
            verdict(less.tolist()),
            f"`{first}` lower than `{other}` in {(less < 0).sum()} of {len(less)} "
            f"runs; without the two camels in {(same < 0).sum()} of {len(same)}: "
            f"{verdict(same.tolist())}; regret, problem by problem: "
            + by_problem(regret[first] - regret[other]),
            why,
            size_of(f"{size}, {rows['problem'].nunique()} problems", _THEIR_SIZE),
            next(_file(n) for n in _NAMES if other in set(rounds_of(n)["algorithm"])),
        )


def _rows_of(first: str, other: str) -> Any:
    """All rounds of two methods that both have."""
    rows: Any = pd.concat([rounds_of(name) for name in _NAMES])
    rows = rows[rows["algorithm"].isin([first, other])]
    number = rows.groupby("algorithm")["iteration"].max().min() + 1
    seeds: Any = rows.groupby("algorithm")["seed"].unique()
    both = set(seeds[first]) & set(seeds[other])
    return rows[(rows["iteration"] < number) & rows["seed"].isin(both)]


def _nearer(method: str, slip: str) -> str:
    """On how many problems the slip brings our values nearer to theirs."""
    found = []
    for part in parts_of_runs():
        ours: Any = part.ours.mean(axis=1).unstack()
        if slip not in ours:
            continue
        theirs = part.theirs.unstack()[method]
        gap = ours[[method, slip]].sub(theirs, axis="index").abs().dropna()
        gap = gap.drop(index=list(_OTHER_FUNCTIONS))
        found.append(
            f"on {(gap[slip] < gap[method]).sum()} of {len(gap)} problems (decisions "
            f"{part.first} to {part.last})"
        )
    return (
        "with the slip the mean value is nearer to theirs "
        + ", ".join(found)
        + "; without the two camels"
    )


def _their_totals() -> pd.DataFrame:
    """Sum of the values of their decisions 6 to 200: problems by methods."""
    theirs = pd.read_csv(PUBLISHED / "edrbo.csv")
    length = theirs["last"] - theirs["first"] + 1
    return theirs.assign(total=theirs["value"] * length).pivot_table(
        index="problem", columns="algorithm", values="total", aggfunc="sum"
    )


def _in_their_files() -> str:
    """EDRBO less ERBO: cumulative regret, and decisions part by part."""
    total = _their_totals()
    regrets = ", ".join(  # the optimum is the same in both sums
        f"{problem} {more:.3g}"
        for problem, more in (total["erbo"] - total["edrbo"]).items()
    )
    published: Any = pd.read_csv(PUBLISHED / "edrbo.csv")
    values = published.pivot(
        index=["first", "last", "problem"], columns="algorithm", values="value"
    )
    sign = (values["edrbo"] - values["erbo"]).groupby(level=["first", "last"])
    parts = ", ".join(
        f"{(part > 0).sum()} and equal on {(part == 0).sum()} of {len(part)} "
        f"(decisions {first} to {last})"
        for (first, last), part in sign
    )
    return (
        f"in their files its regret less ERBO's is {regrets} (means of ten seeds, from "
        f"values of three digits); its mean value is higher on {parts}"
    )


def values_tables() -> str:
    """Mean values of each published part of the decisions, theirs and ours."""
    return "\n\n".join(str(_table(part)) for part in parts_of_runs())


def _table(part: Part) -> Table:
    methods = list(dict.fromkeys(part.ours.index.get_level_values("algorithm")))
    lines = []
    for problem in dict.fromkeys(part.ours.index.get_level_values("problem")):
        line = [problem]
        for method in methods:
            cell, key = "", (problem, method)
            if key in part.ours.index:
                own: Any = part.ours.loc[key]
                cell = f"{own.mean():.3g} ± {own.sem():.1g}"
            if key in part.theirs.index:
                cell = f"{part.theirs[key]:.3g} / {cell}"
            line.append(cell)
        lines.append(line)
    shorter = [
        f"`{method}`: {_size(name)}"
        for name in _NAMES
        for method in rounds_of(name)["algorithm"].unique()
        if method in methods and _end(name) < _end(_STUDY)
    ]
    title = (
        f"Mean value of the decisions {part.first} to {part.last}, theirs / ours ± "
        "its standard error (higher is better). Theirs: 10 seeds of 195 rounds; ours: "
        + "; ".join([_size(_STUDY), *shorter])
        + "."
    )
    return Table(["problem", *methods], lines, title)
