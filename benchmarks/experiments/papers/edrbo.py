"""EDRBO (Ramazyan and Derkach 2026)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pandas as pd

from benchmarks.experiments.papers.edrbo_values import (
    BATCH,
    NAMES,
    OTHER_FUNCTIONS,
    SLIPS,
    STUDY,
    WITHOUT_SLIP,
    Part,
    gaps_of,
    parts_of_runs,
    size_of_runs,
    their_rows,
)
from benchmarks.experiments.papers.judge import (
    Claim,
    by_problem,
    cells_of,
    runs_of,
    size_of,
    verdict,
)
from benchmarks.run.report import estimate

_THEIR_SIZE = "10 seeds of 195 rounds"


def claims_of_edrbo() -> Iterator[Claim]:
    """Its claims."""
    yield from _claims_of_their_files()
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


def _file(name: str) -> str:
    return f"{name}/results.parquet"


def _claims_of_order(part: Part) -> Iterator[Claim]:
    """Which method is first, and how alike the order of all is, theirs and ours."""
    means: Any = part.ours.mean(axis=1)
    theirs: Any = part.theirs.mean(axis=1)
    pairs: Any = pd.DataFrame({"theirs": theirs, "ours": means}).dropna()
    groups = pairs.groupby(level="problem")
    number = pairs.index.get_level_values("algorithm").nunique()
    span = f"decisions {part.first} to {part.last}"
    known = _firsts(pairs["theirs"])["edrbo"]
    slip = means.drop("edrbo", level="algorithm").rename({BATCH: "edrbo"})
    same = slip[slip.index.isin(pairs.index)]
    for words, name, ours in (
        (f"The same of {number} methods in our runs", STUDY, pairs["ours"]),
        (
            "The same with their slip in EDRBO (one penalty for a whole batch)",
            BATCH,
            same,
        ),
    ):
        firsts = _firsts(ours)
        others = ", ".join(
            f"`{method}` on {count}"
            for method, count in firsts.most_common()
            if method != "edrbo"
        )
        yield Claim(
            f"{words}, {span}",
            f"first on {firsts['edrbo']} of {len(groups)} problems",
            f"by the mean value over seeds; theirs, the same decisions: {known} of "
            f"{len(groups)}",
            f"first on the others: {others}",
            size_of(size_of_runs(name), _THEIR_SIZE),
            _file(name),
        )
    alike = groups.apply(lambda group: group["theirs"].corr(group["ours"], "spearman"))
    yield Claim(
        f"Not in the text: our {number} methods stand in the order of their files, "
        f"{span}",
        f"rank correlation {alike.median():.2f} (median of {len(groups)} problems)",
        ", ".join(f"{name} {value:.2f}" for name, value in alike.items()),
        "their three-hump and six-hump camels are not the same functions as here",
        size_of(size_of_runs(STUDY), _THEIR_SIZE),
        _file(STUDY),
    )


def _firsts(values: Any) -> Counter[str]:
    """On how many problems each method has the highest value."""
    return Counter(method for _, method in values.groupby(level="problem").idxmax())


def _claims_of_regret() -> Iterator[Claim]:
    """One method against another, on the problems that both have."""
    runs: Any = pd.concat([runs_of(name) for name in NAMES])
    number = runs["rounds"].max()
    regret = runs.set_index(["problem", "seed", "algorithm"])["regret"].unstack()
    words = "EDRBO has less regret than ERBO"
    for first, other, text, why in (
        ("edrbo", "erbo", words, "without their slip; with it: the next row"),
        (
            BATCH,
            "erbo",
            "with their slip (one penalty for a whole batch) "
            "EDRBO has less regret than ERBO",
            "their files have the slip, and there it holds: not explained",
        ),
        (
            "edrbo",
            "erbo_ensemble",
            f"{words} with our ensemble",
            "four other models and a penalty; with their slip: the next row",
        ),
        (
            BATCH,
            "erbo_ensemble",
            "with their slip EDRBO has less regret than ERBO with our ensemble",
            "in effect no penalty: the four models, without priors",
        ),
        (
            "erbo_ensemble",
            "erbo",
            "ERBO has less regret with our ensemble",
            "an ensemble of four in place of one model",
        ),
        *(
            (method, slip, f"{claim} (their slip)", _nearer(method, slip))
            for (method, slip), claim in SLIPS.items()
        ),
    ):
        less = (regret[first] - regret[other]).dropna()
        problems, seeds = (
            less.index.get_level_values(level).nunique()
            for level in ("problem", "seed")
        )
        size = f"{seeds} seeds, {number} rounds, {problems} problems"
        source = first if first in WITHOUT_SLIP else other
        yield Claim(
            f"Not in the text: {text}",
            verdict(less.transform("sign").tolist()),
            _fewer(first, other, less),
            why,
            size_of(size, _THEIR_SIZE),
            next(_file(n) for n in NAMES if source in set(runs_of(n)["algorithm"])),
        )


def _nearer(method: str, slip: str) -> str:
    """On how many problems the slip brings our values nearer to theirs."""
    found = []
    for part in parts_of_runs():
        gap = gaps_of(part)[[method, slip]].dropna()
        found.append(
            f"on {(gap[slip] < gap[method]).sum()} of {len(gap)} problems "
            f"(decisions {part.first} to {part.last})"
        )
    return (
        "with the slip the mean value is nearer to theirs "
        + ", ".join(found)
        + "; without the two camels"
    )


def _claims_of_their_files() -> Iterator[Claim]:
    """What their values say, before ours."""
    rows = their_rows()
    sums = rows["value"] * (rows["last"] - rows["first"] + 1)
    cells = rows.assign(total=sums).groupby(["problem", "seed", "algorithm"])
    total = cells["total"].sum().unstack()
    firsts = _firsts(total.groupby(level="problem").mean().stack())
    span = f"the decisions {rows['first'].min()} to {rows['last'].max()}, ten seeds"
    size, file = "theirs: 10 seeds, 200 decisions", "../published/edrbo.csv"
    yield Claim(
        "In the authors' files, not in the text: EDRBO is first of nine methods on "
        "most of nine problems",
        f"holds in their files: {firsts['edrbo']} of {firsts.total()}",
        f"by the sum of the values of {span}, theirs",
        "all but their ERBO and SBO-KDE carry slips",
        size,
        file,
    )
    more = total["erbo"] - total["edrbo"]  # the optimum is in both regrets
    by = more.groupby(level="problem", sort=False)
    yield Claim(
        "In the authors' files, not in the text: EDRBO has less regret than ERBO",
        verdict(more.transform("sign").tolist()),
        f"{_fewer('edrbo', 'erbo', more)}; mean, problem by problem: "
        + ", ".join(f"{name} {estimate([*each])}" for name, each in by),
        "not explained: with the slip of their EDRBO, one penalty for a whole batch, "
        "it is not decided here (below)",
        size,
        file,
    )


def _fewer(first: str, other: str, difference: pd.Series) -> str:
    """In how many runs the first is lower, and by the rule of the page, twice."""
    found = f"`{first}` lower than `{other}` in {(difference < 0).sum()} of "
    found += f"{len(difference)} runs"
    same = difference.drop(index=[*OTHER_FUNCTIONS], level="problem", errors="ignore")
    if len(same) < len(difference):
        found += f"; without the two camels in {(same < 0).sum()} of {len(same)}: "
        found += verdict(same.transform("sign").tolist())
    return f"{found}; regret, problem by problem: {by_problem(difference)}"
