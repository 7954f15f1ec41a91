"""The five claims, judged by the rules of ``claims.md``; and the options' screening."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from benchmarks.experiments.claims.cases import CASES, half_of
from benchmarks.experiments.claims.picks import (
    CLAIMS,
    Cases,
    Claim,
    Pick,
    common,
    everywhere,
    tense,
)
from benchmarks.experiments.claims.rules import OPTIONS
from benchmarks.run.statistics import holm
from benchmarks.study.compare import Comparison, compare, lower

_CERTAIN = 1.96  # standard errors


def difference(
    table: pd.DataFrame,
    first: Pick,
    second: Pick,
    laws: Sequence[str],
    cases: Cases = everywhere,
) -> Comparison | None:
    """The first less the second, over the blocks that both have.

    A case of which both have one seed only has no error yet, and does not count.

    Args:
        table: As ``judged`` makes it.
        first: Whose losses.
        second: Less whose.
        laws: Columns, whose differences are added.
        cases: Which cases count.

    Returns:
        The comparison, its p value without a correction; None if no case counts.
    """
    frame = _frame(_columns(table, first, second, laws), cases)
    return None if frame.empty else compare(frame, "second")["first"]


def over_cases(
    table: pd.DataFrame,
    first: Pick,
    second: Pick,
    laws: Sequence[str],
    cases: Cases = everywhere,
) -> list[float]:
    """The mean difference of each case, over the blocks of ``difference``."""
    frame = _frame(_columns(table, first, second, laws), cases)
    if frame.empty:
        return []
    less: Any = frame["first"] - frame["second"]
    return less.groupby("case").mean().tolist()


def _columns(
    table: pd.DataFrame, first: Pick, second: Pick, laws: Sequence[str]
) -> pd.DataFrame:
    return pd.DataFrame(
        {
            name: pick.of(table)[list(laws)].sum(axis="columns")
            for name, pick in (("second", second), ("first", first))
        }
    )


def _frame(blocks: pd.DataFrame, cases: Cases) -> pd.DataFrame:
    """The blocks that both have, of the cases that count and have two seeds."""
    frame: Any = blocks.dropna()
    counts = [cases(CASES[case]) for case in frame.index.get_level_values("case")]
    frame = frame[counts]
    return frame.groupby("case").filter(lambda block: len(block) > 1)


def price_less_price(
    table: pd.DataFrame, told: int, before: int, cases: Cases
) -> Comparison | None:
    """What *robust* loses more than *expected* if nothing shifts, less that before.

    Args:
        table: As ``judged`` makes it.
        told: After how many outcomes of the common data.
        before: Less the same after so many.
        cases: Which cases count.
    """
    columns = {}
    for name, number in (("second", before), ("first", told)):
        losses = [
            common(rule, number).of(table)["settled"] for rule in ("robust", "expected")
        ]
        columns[name] = losses[0] - losses[1]
    frame = _frame(pd.DataFrame(columns), cases)
    return None if frame.empty else compare(frame, "second")["first"]


def by_case(values: Any) -> float:
    """The mean of values by case and seed; each case counts the same."""
    return float(values.groupby("case").mean().mean())


@dataclass(frozen=True)
class Verdict:
    """What became of a claim.

    Args:
        claim: Which.
        found: The comparison; None without a block.
        p: After Holm's correction for all claims that have blocks.
        verdict: "holds", "does not", or "not decided".
    """

    claim: Claim
    found: Comparison | None
    p: float
    verdict: str


def verdicts(table: pd.DataFrame, claims: Sequence[Claim] = CLAIMS) -> list[Verdict]:
    """Judge claims by the rules that were written down.

    Args:
        table: As ``judged`` makes it.
        claims: All that are corrected together.
    """
    found = [difference(table, c.first, c.second, c.laws, c.cases) for c in claims]
    # A claim that was not run counts in the correction, as if it had shown nothing.
    corrected = holm([1.0 if each is None else each.p for each in found])
    return [
        Verdict(claim, each, p, verdict_of(claim, each, p))
        for claim, each, p in zip(claims, found, corrected, strict=True)
    ]


def verdict_of(claim: Claim, found: Comparison | None, p: float) -> str:
    """What is called what, as it was written down."""
    if found is None:
        return "not run"
    if found.difference < 0.0 and p < 0.05:
        return "holds"
    if found.difference - _CERTAIN * found.error > claim.excluded:
        return "does not"
    return "not decided"


@dataclass(frozen=True)
class Screening:
    """What became of the options against ignorance.

    Args:
        losses: On half A: rule -> mean losses if nothing shifts and under the shift.
        chosen: The one with the lowest sum, "robust" included.
        settled: On half B, less *robust*, if nothing shifts; None if that is chosen.
        p: Of Wilcoxon's test, one-sided, that this is lower.
        shifted: On half B, the cases with tension, under the shift.
        ships: Whether it is shipped.
    """

    losses: dict[str, tuple[float, float]]
    chosen: str
    settled: Comparison | None = None
    p: float = 1.0
    shifted: Comparison | None = None
    ships: bool = False


def screening(table: pd.DataFrame) -> Screening:
    """Choose on half A, confirm on half B."""
    halves: Any = table["case"].map(half_of)
    first: Any = table[halves == "A"]
    second: Any = table[halves == "B"]
    losses = {}
    for rule in ("robust", *OPTIONS):
        rows = common(rule).of(first)
        losses[rule] = (by_case(rows["settled"]), by_case(rows["shifted"]))
    chosen = min(losses, key=lambda rule: sum(losses[rule]))
    if chosen == "robust":
        return Screening(losses, chosen)
    pair = common(chosen), common("robust")
    settled = difference(second, *pair, ["settled"])
    shifted = difference(second, *pair, ["shifted"], tense)
    if settled is None or shifted is None:  # half B has no case of two seeds or more
        return Screening(losses, chosen)
    both = [pick.of(second)["settled"] for pick in pair]
    p = lower((both[0] - both[1]).dropna().to_numpy())
    ships = p < 0.05 and shifted.difference <= shifted.error
    return Screening(losses, chosen, settled, p, shifted, ships)
