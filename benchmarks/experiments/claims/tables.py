"""The tables of the claims' report, and its way of writing numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from benchmarks.experiments.claims.cases import CASES
from benchmarks.experiments.claims.compare import (
    Verdict,
    by_case,
    difference,
    over_cases,
)
from benchmarks.experiments.claims.judge import LAWS
from benchmarks.experiments.claims.learn import COMMON
from benchmarks.experiments.claims.picks import (
    Cases,
    Claim,
    Pick,
    common,
    relaxed,
    tense,
)
from benchmarks.experiments.claims.rules import RULES
from benchmarks.run.report import Table
from benchmarks.run.statistics import holm, wilcoxon
from benchmarks.study.compare import Comparison, p_text

GROUPS: Mapping[str, Cases] = {"with tension": tense, "without": relaxed}


def claims_table(found: Mapping[str, Verdict]) -> Table:
    """What became of each claim.

    Args:
        found: The first cell of its row -> the verdict.
    """
    rows = []
    for name, v in found.items():
        cells, needed = ["", "", "", ""], ""
        if v.found is not None:
            if v.verdict == "not decided":
                needed = f"{v.found.blocks_for(v.found.difference)} blocks"
            blocks = f"{blocks_text(v.found)}, {v.found.wins} lower"
            cells = [blocks, str(v.found), p_text(v.found.p), p_text(v.p)]
        rows.append([name, v.claim.text, *cells, f"**{v.verdict}**", needed])
    head = ["", "claim", "blocks", "difference", "p", "Holm", "verdict"]
    head += ["would show it, if it is as large"]
    return Table(head, rows, left=2)


def cases_lines(table: pd.DataFrame, claims: Mapping[str, Claim]) -> str:
    """On how many cases the first of a claim loses less, and a test of their means."""
    lines = []
    for name, claim in claims.items():
        pair = claim.first, claim.second
        means = over_cases(table, *pair, claim.laws, claim.cases)
        if means:
            lower = sum(mean < 0 for mean in means)
            lines.append(
                f"- {name}: lower on {lower} of {len(means)} cases, p "
                f"{p_text(wilcoxon(means))}"
            )
    return "\n".join(lines)


def case_by_case(
    table: pd.DataFrame, first: Pick, second: Pick, names: tuple[str, str]
) -> Table:
    """Two sides on each case, beside what is so with the function known.

    Args:
        table: As ``judged`` makes it.
        first: Whose losses.
        second: Less whose.
        names: What they are called.
    """
    rows = []
    blocks: Any = table.drop_duplicates(["case", "seed"]).groupby("case")
    for name, case in CASES.items():

        def only(other: Any, this: Any = case) -> bool:
            return other is this

        price, gain = (
            difference(table, first, second, [column], only)
            for column in ("settled", "shifted")
        )
        if price is None or gain is None:
            continue
        block = blocks.get_group(name)
        losses = [
            f"{second.of(table)[column].loc[name].mean():.1f}"
            for column in ("settled", "shifted")
        ]
        known = [f"{block['price'].mean():+.1f}", f"{-block['gain'].mean():+.1f}"]
        gained = tested_text(gain)
        row = [name, str(price.blocks), losses[0], str(price), known[0]]
        rows.append([*row, losses[1], gained, known[1]])
    one, other = names
    head = ["case", "seeds", f"nothing shifts: {other} loses", f"{one} less that"]
    head += ["with f known", f"mean moves badly: {other} loses"]
    head += [f"{one} less that (p, not corrected)", "with f known"]
    return Table(head, rows)


def rules_table(table: pd.DataFrame, pick_of: Callable[[str], Pick]) -> Table:
    """Every rule against *expected*, by law and group of cases.

    Args:
        table: As ``judged`` makes it.
        pick_of: The recommendations of a rule.
    """
    base = pick_of("expected")
    others = {f"*{rule}*": pick_of(rule) for rule in RULES if rule != "expected"}
    if base.learner == COMMON:
        for surrogate, text in (("botorch", "botorch"), ("kernels", "`edrbo`")):
            pick = common("expected", base.told, surrogate)
            others[f"*expected*, {text}"] = pick
    return against(table, "*expected*", base, others)


def against(
    table: pd.DataFrame, name: str, base: Pick, others: Mapping[str, Pick]
) -> Table:
    """The losses of one side, and the differences of others to it.

    Args:
        table: As ``judged`` makes it.
        name: What the one is called.
        base: Whose losses.
        others: Name -> whose losses less that.
    """
    head, columns = [""], []
    names = [name, *others]
    losses = base.of(table)
    for group, cases in GROUPS.items():
        counted = [cases(CASES[c]) for c in losses.index.get_level_values("case")]
        if not any(counted):
            continue
        for law, column in LAWS.items():
            found = [
                difference(table, pick, base, [column], cases)
                for pick in others.values()
            ]
            loss = by_case(losses.loc[counted, column])
            head.append(f"{group}: {law}")
            columns.append([f"loss {loss:.1f}", *_cells(found)])
    rows = [list(row) for row in zip(names, *columns, strict=True)]
    return Table(head, [row for row in rows if any(row[1:])])


def _cells(found: Sequence[Comparison | None]) -> Iterator[str]:
    p = iter(holm([each.p for each in found if each is not None]))
    for each in found:
        yield "" if each is None else tested_text(each, next(p))


def tested_text(found: Comparison, p: float | None = None) -> str:
    """The same with the p value in brackets, or with a corrected one."""
    return f"{found} ({p_text(found.p if p is None else p)})"


def blocks_text(found: Comparison) -> str:
    """How many blocks were compared."""
    return f"{found.blocks} blocks"
