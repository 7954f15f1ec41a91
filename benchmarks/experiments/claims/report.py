"""The verdicts, and the tables that they rest on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from benchmarks.experiments.claims.cases import CASES
from benchmarks.experiments.claims.compare import (
    difference,
    price_less_price,
    screening,
    verdict_of,
    verdicts,
)
from benchmarks.experiments.claims.judge import LAWS
from benchmarks.experiments.claims.learn import CHECKPOINTS, COMMON
from benchmarks.experiments.claims.picks import (
    AFTER_60,
    CLAIMS,
    common,
    own,
    relaxed,
    tense,
)
from benchmarks.experiments.claims.report_own import own_runs
from benchmarks.experiments.claims.tables import (
    GROUPS,
    blocks_text,
    case_by_case,
    cases_lines,
    claims_table,
    rules_table,
    tested_text,
)
from benchmarks.run.report import Report, Table
from benchmarks.study.compare import p_text


def make_report(table: pd.DataFrame) -> Report:
    """The report on a table of ``judged``."""
    blocks: list[str | Table] = [
        _ABOUT,
        "## The claims",
        claims_table({str(n): v for n, v in enumerate(verdicts(table), start=1)}),
        _AGAIN,
        _CASES,
        cases_lines(table, {str(n): c for n, c in enumerate(CLAIMS, start=1)}),
        "## What robustness is worth to somebody who knows the function",
        _KNOWN,
        _known(table),
    ]
    for told in CHECKPOINTS:
        if len(common("expected", told).of(table)):
            blocks += [f"## Common data: {told} random decisions", _RULES]
            blocks += [rules_table(table, lambda rule, t=told: common(rule, t))]
    blocks += list(_later(table))
    blocks += ["## Case by case: *robust* less *expected*, common data, 30 outcomes"]
    pair = common("robust"), common("expected")
    blocks += [case_by_case(table, *pair, ("*robust*", "*expected*"))]
    blocks += own_runs(table)
    blocks += ["## Does the model know what it does not know?", _BEYOND, _beyond(table)]
    blocks += ["### Case by case, 30 outcomes", _beyond_by_case(table)]
    blocks += ["## Against ignorance", *_ignorance(table)]
    return Report("Five claims, written down before the runs", blocks)


_ABOUT = """`python -m benchmarks claims`. Cases, designs, rules, claims and what is
called what: [claims.md](../../experiments/claims/claims.md). Losses in percent (0: the
best fixed decision of a law, 100: a blind guess). Differences are paired by block, the
first less the second, so that negative is better; mean ± standard error over the seeds
within cases, each case counting the same."""

_AGAIN = """Claims 1 and 4 first stood here after 178 of the 240 blocks that were
written down: -4.1 ± 1.8 and +5.2 ± 1.6 (p .0012 with Holm's correction). Then the
models of `edrbo` were found to differ from those of its authors' code (they scaled
inputs by the box), and all its rows were made again, with the blocks that were missing.
The losses of `erbo` with "ensemble" in the first blocks came out the same, to .1
points. At last one commit made all runs once more, which changed no verdict: before, p
with Holm's correction was .059 in claim 4, and the difference -4.6 in claim 1."""

_CASES = """The blocks of a case have one function in common, so a p over blocks is
about these cases. Over the means of the cases, which is about other functions of their
kind and was not written down before:"""

_KNOWN = """*Gain*: what the robust decision (a ball of one standard deviation) loses
less than the plain one if the mean moves badly by two; *price*: what it loses more if
nothing shifts. By dense lists of decisions and contexts, without any model; of random
functions the mean over the seeds."""

_RULES = """The first row has losses, the others differences to it, with the p value of
Wilcoxon's test after Holm's correction for the rows of a column. The test is about the
ranks of the blocks: a case with large differences moves a mean and hardly a p."""

_BEYOND = """The share of fresh outcomes of random decisions beyond two predicted
standard deviations (of a Gaussian: 4.6%), in contexts of the law and of the one that
moved."""


def _known(table: pd.DataFrame) -> Table:
    blocks: Any = table.drop_duplicates(["case", "seed"]).groupby("case")
    rows = []
    for name in (case for case in CASES if case in blocks.groups):
        block = blocks.get_group(name)
        case = CASES[name]
        seeds = f"{len(block)} functions" if case.random else ""
        worth = [f"{block[column].mean():.1f}" for column in ("gain", "price")]
        marks = ["yes" if case.tension else "", "yes" if case.seen else ""]
        rows.append([name, *marks, *worth, seeds])
    head = ["case", "tension", "in the development set", "gain", "price", ""]
    return Table(head, rows, left=3)


def _later(table: pd.DataFrame) -> Iterator[str]:
    """The two questions of 60 outcomes, which were added before those runs."""
    claim = AFTER_60
    saved = difference(table, claim.first, claim.second, claim.laws, claim.cases)
    dearer = price_less_price(table, 60, 30, tense)
    if saved is None or dearer is None:
        return
    yield "## Two questions, added before the runs of 60 outcomes"
    yield (
        f"1. {claim.text}: {saved} ({blocks_text(saved)}, "
        f"{saved.wins} lower, p {p_text(saved.p)}): "
        f"**{verdict_of(claim, saved, saved.p)}**.\n"
        "2. What *robust* costs there if nothing shifts, after 60 outcomes less after "
        f"30: {dearer} ({blocks_text(dearer)}, {dearer.wins} lower, p "
        f"{p_text(dearer.p)})."
    )


def _beyond(table: pd.DataFrame) -> Table:
    head = ["surrogate", "outcomes", "rows of", "blocks", "in the law", "moved"]
    rows = []
    keys = ["case", "seed", "learner", "told", "surrogate"]
    for learner in (COMMON, "erbo"):
        for told in CHECKPOINTS:
            for surrogate in ("botorch", "ensemble", "kernels"):
                found: Any = table[
                    (table["learner"] == learner)
                    & (table["told"] == told)
                    & (table["surrogate"] == surrogate)
                ]
                found = found.drop_duplicates(keys)
                if not len(found):
                    continue
                shares = [
                    f"{100 * found[c].mean():.1f} ± {100 * found[c].sem():.1f}%"
                    for c in ("beyond_settled", "beyond_shifted")
                ]
                of = "random decisions" if learner == COMMON else "`erbo`"
                rows.append([surrogate, str(told), of, str(len(found)), *shares])
    return Table(head, rows, left=3)


def _beyond_by_case(table: pd.DataFrame) -> Table:
    """The same in contexts of the law, after 30 outcomes."""
    sides = [
        common("expected", 30, name) for name in ("botorch", "ensemble", "kernels")
    ]
    sides += [own("erbo", 30)]
    head = [f"{side.surrogate}, random decisions" for side in sides[:-1]]
    shares = [side.of(table)["beyond_settled"].groupby("case") for side in sides]
    rows = []
    for case in CASES:
        found = [each.get_group(case) for each in shares if case in each.groups]
        if len(found) == len(sides):
            cells = [f"{100 * s.mean():.1f} ± {100 * s.sem():.1f}%" for s in found]
            rows.append([case, *cells])
    return Table(["case", *head, "ensemble, rows of `erbo`"], rows)


def _ignorance(table: pd.DataFrame) -> Iterator[str | Table]:
    found = screening(table)
    rows = [
        [f"*{rule}*", f"{settled:.1f}", f"{shifted:.1f}", f"{settled + shifted:.1f}"]
        for rule, (settled, shifted) in found.losses.items()
    ]
    yield "Screening on half A, common data, 30 outcomes: mean losses."
    yield Table(["", "nothing shifts", "mean moves 2 sd, badly", "sum"], rows)
    if found.settled is None or found.shifted is None:
        yield f"Chosen: *{found.chosen}*. Nothing is confirmed, so nothing is shipped."
        return
    yield (
        f"Chosen: *{found.chosen}*. On half B, less *robust*: "
        f"{found.settled} if nothing shifts "
        f"({blocks_text(found.settled)}, one-sided p {p_text(found.p)}), "
        f"{found.shifted} under the shift where there is tension "
        f"({blocks_text(found.shifted)}). It "
        f"**{'is shipped' if found.ships else 'is not shipped'}**."
    )
    yield "All options less *robust*, all cases (not corrected; half A chose):"
    rows = []
    for rule in [name for name in found.losses if name != "robust"]:
        cells = []
        for cases in (tense, relaxed):
            for column in ("settled", "shifted"):
                each = difference(
                    table, common(rule), common("robust"), [column], cases
                )
                cells.append("" if each is None else tested_text(each))
        rows.append([f"*{rule}*", *cells])
    head = ["", *(f"{g}: {law}" for g in GROUPS for law in list(LAWS)[:2])]
    yield Table(head, rows)
