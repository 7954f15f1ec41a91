"""The part of the report that is about the methods' own runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from benchmarks.experiments.claims.compare import by_case, difference, verdicts
from benchmarks.experiments.claims.learn import CHECKPOINTS, COMMON
from benchmarks.experiments.claims.picks import LONGER, OWN, Pick, own, unseen
from benchmarks.experiments.claims.tables import (
    against,
    blocks_text,
    case_by_case,
    cases_lines,
    claims_table,
    rules_table,
    tested_text,
)
from benchmarks.run.report import Table
from benchmarks.study.compare import p_text

_METHOD = {COMMON: "`random`", "erbo, botorch": "`erbo` with botorch"}


def own_runs(table: pd.DataFrame) -> Iterator[str | Table]:
    """What each method learnt for itself, and what other rules make of it."""
    yield from ("## Own runs", _OWN)
    yield from _methods(table)
    yield from _longer(table)
    for told in CHECKPOINTS:
        if len(own("erbo", told).of(table)):
            yield f"## The same rules on the rows of `erbo`'s own runs, {told} outcomes"
            yield rules_table(
                table, lambda rule, t=told: Pick("erbo", t, "ensemble", rule)
            )


_OWN = """Each method asks for its own decisions after five random ones; `random` goes
on with random ones, and recommends as `erbo` does. The first row has losses, the others
differences to it, with p after Holm's correction for the rows of a column. *Regret*:
the mean loss of the decisions asked, if nothing shifts."""

_LONGER = """The five claims are not judged by these runs. The eight tests have Holm's
correction together. The losses after 15 outcomes above are those of the runs that the
claims were judged by; those of the longer runs, on a processor of another kind, are in
`claims_repeated.parquet`.

What `benchmarks/experiments/claims/claims.md` says of the call that was made before
is not all: beside the regrets while learning, the mean loss of `erbo` after 15
outcomes and the shares beyond two deviations were on the screen, of the two blocks."""


def _longer(table: pd.DataFrame) -> Iterator[str | Table]:
    """The four questions about longer own runs, which were added before those runs."""
    found = verdicts(table, list(LONGER.values()))
    if all(each.found is None for each in found):
        return
    yield "### Four questions, added before the runs of 30 and 60 outcomes"
    yield _LONGER
    yield claims_table(dict(zip(LONGER, found, strict=True)))
    yield "Over the means of the cases:"
    yield cases_lines(table, LONGER)
    for told in (30, 60):
        claim = LONGER[f"4, {told} outcomes"]
        more = difference(table, claim.first, claim.second, ["settled"], claim.cases)
        if more is not None:
            yield (
                f"What it costs more to ask robustly, after {told} outcomes: "
                f"`wdrbo_exact, sd` less *robust* from the rows of `erbo`, if nothing "
                f"shifts: {tested_text(more)}, not corrected."
            )
    for told in (30, 60):
        pair = own("wdrbo_exact, sd", told), own("erbo", told)
        words = "`wdrbo_exact, sd` less `erbo`, own runs"
        yield f"### Case by case: {words}, {told} outcomes"
        yield case_by_case(table, *pair, ("`wdrbo_exact, sd`", "`erbo`"))


def _methods(table: pd.DataFrame) -> Iterator[str | Table]:
    for told in CHECKPOINTS:
        base = own("erbo", told)
        if not len(base.of(table)):
            continue
        others = {
            _METHOD.get(name, f"`{name}`"): own(name, told)
            for name in OWN
            if name != "erbo"
        }
        yield f"### {told} outcomes"
        yield against(table, "`erbo`", base, others)
        yield _blocks_of(table, told)


def _blocks_of(table: pd.DataFrame, told: int) -> str:
    lines, plain = [], own("erbo", told)
    for name in OWN:
        rows = own(name, told).of(table)
        if len(rows):
            seeds: Any = rows.reset_index().groupby("case")["seed"].nunique()
            text = f"{_METHOD.get(name, f'`{name}`')}: {len(rows)} blocks"
            few, many = seeds.min(), seeds.max()
            each = f"{few}" if few == many else f"{few} to {many}"
            text += f" ({each} seeds of {len(seeds)} cases)"
            more = difference(table, own(name, told), plain, ["settled"])
            if name == COMMON and more is not None:
                text += f", {tested_text(more)} less `erbo`, nothing shifts, all cases"
            if name != COMMON:
                regret = difference(table, own(name, told), plain, ["regret"])
                mean = by_case(rows["regret"])
                text += f", regret {mean:.1f}"
                if name != "erbo" and regret is not None:
                    less = str(regret)
                    text += f" ({less} less `erbo`'s, p {p_text(regret.p)})"
            lines.append(f"- {text}")
    if own("erbo, botorch", told).of(table).shape[0]:
        new = difference(
            table, own("erbo", told), own("erbo, botorch", told), ["settled"], unseen
        )
        if new is not None:
            lines.append(
                "- `erbo` less `erbo` with botorch, nothing shifts, on the cases that "
                f"are not in the development set ({blocks_text(new)}): "
                f"{new}, p {p_text(new.p)}, not corrected"
            )
    return "\n".join(lines)
