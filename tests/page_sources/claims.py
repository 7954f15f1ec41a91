"""The five claims of the tournament."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from benchmarks.experiments.claims.cases import TENSION
from benchmarks.experiments.claims.compare import difference
from benchmarks.experiments.claims.picks import Cases, everywhere, own, tense
from tests.page_numbers import numbers
from tests.page_sources.files import RESULTS, Row, committed_table


def claims_cells(table: str, cells: Sequence[tuple[str, int, int]]) -> Row:
    """Numbers of the claims' report: row, column, and how many of the cell."""
    rows = committed_table("tournament/claims.md", table)
    return [x.value for row, i, n in cells for x in numbers(rows[row][i])[:n]]


def claims() -> list[Row]:
    """The losses of *robust* less those of *expected*, as sizes."""
    both, moved, settled = 2, 1, 0
    table = "## Common data: {} random decisions"
    many, few = table.format(30), table.format(15)
    saves_costs = [("robust", moved, both), ("robust", settled, both)]
    row = [30, *claims_cells(many, saves_costs)]
    row += claims_cells(many, [("expected", moved, 1), ("expected", settled, 1)])
    row += [15, *claims_cells(few, saves_costs)]
    row += [30, *claims_cells(many, [("robust", 3, both), ("robust", 4, both)])]
    return [[abs(value) for value in row]]


FOUR = "### Four questions"  # about longer own runs


def saves_and_costs(told: int) -> Row:
    """A robust method's own run: what it saves, of what, costs, and both together."""
    own = f"### {told} outcomes"
    row = claims_cells(FOUR, [(f"1, {told} outcomes", 2, 2)])
    row += claims_cells(own, [("`erbo`", 1, 1), ("`wdrbo_exact, sd`", 0, 2)])
    return row + claims_cells(FOUR, [(f"2, {told} outcomes", 2, 2)])


def decided_robustly(told: int) -> Row:
    """From the rows of `erbo`: what *robust* saves and costs, as sizes."""
    rules = f"## The same rules on the rows of `erbo`'s own runs, {told} outcomes"
    row = claims_cells(rules, [("robust", 1, 2), ("robust", 0, 2)])
    return [abs(value) for value in row]


def costs_without_tension() -> Row:
    """From the rows of `erbo`, 30 outcomes: what *robust* costs."""
    rules = "## The same rules on the rows of `erbo`'s own runs, 30 outcomes"
    assert claims_cells(rules, [("robust", 4, 1)])[0] > 0  # it saves nothing
    return claims_cells(rules, [("robust", 3, 2)])


def over_problems(section: str, *claims: str) -> Row:
    """The p of claims over the means of the cases, in a section of the report."""
    text = (RESULTS / "tournament" / "claims.md").read_text()
    text = text[text.index(section) :]
    return [
        float(re.findall(rf"^- {claim}: lower on .*, p (\S+)$", text, re.MULTILINE)[0])
        for claim in claims
    ]


def learnt_by_erbo() -> list[Row]:
    """README: what *robust* saves and costs after 30 and after 60 of its outcomes."""
    few, many = decided_robustly(30), decided_robustly(60)
    p = over_problems(FOUR, "3, 30 outcomes", "3, 60 outcomes")
    relaxed = costs_without_tension()
    return [[*few[:2], 30, *many[:2], 60, *few[2:], *many[2:], *p, *relaxed, 30]]


def longer_own_runs() -> list[Row]:
    """docs/radius.md: own runs of 30 and 60 outcomes, and the rows of `erbo`."""
    row = []
    for told in (30, 60):
        saved, error, _, *cost = saves_and_costs(told)[:5]
        row += [told, -saved, error, *cost]
    rows = [*decided_robustly(30), 30, *decided_robustly(60), 60]
    name = "`wdrbo_exact, sd`"
    asked = claims_cells("### 30 outcomes", [(name, 3, 2)])
    return [[*row, *rows, 30, *asked, *costs_without_tension()]]


def which_method() -> list[Row]:
    """README: own runs, claims 2 and 3, `random`, claims 5, 4, 1, and regret of 1."""
    many = "## Common data: 30 random decisions"
    row = claims_cells("## The claims", [("2", 2, 2)])
    row += claims_cells(many, [("expected", 1, 1), ("robust", 0, 2)])
    first = [30, *row, *claims_cells("## The claims", [("3", 2, 2)])]
    box = claims_cells("## The claims", [("5", 2, 2)])
    edrbo = claims_cells("## The claims", [("4", 2, 2), ("4", 4, 1)])
    text = (RESULTS / "tournament" / "claims.md").read_text()
    (regret,) = re.findall(r"`erbo` with botorch: .* \((\+\S+ ± \S+) less", text)
    on_the_way = [number.value for number in numbers(regret)]
    on_the_way[0] *= -1  # the default's less BoTorch's
    last = claims_cells("## The claims", [("1", 2, 2), ("1", 4, 1)])
    own_runs = text[text.index("### 15 outcomes") :]
    (more,) = re.findall(r"`random`: .*?, (\+\S+ ± \S+) ", own_runs.split("###")[1])
    shown = [number.value for number in numbers(more)]
    # "15 outcomes" stands in the cell of the last row.
    own = [saves_and_costs(30), saves_and_costs(60)]
    return [*own, first[1:], shown, box, edrbo, [15, *last, *on_the_way]]


def without_tension() -> list[Row]:
    """README: the rule of the six problems, the six others, and p of *together*."""
    name = "`wdrbo_exact, sd`"
    row = claims_cells("### 30 outcomes", [(name, 4, 2), (name, 3, 2)])
    p = over_problems(FOUR, "2, 30 outcomes", "2, 60 outcomes")
    p += over_problems("## The claims", "3")
    return [[TENSION, 30, *(abs(value) for value in row), *p]]


def break_even() -> list[Row]:
    """README: own runs of *robust* less those of `erbo`, also over all cases.

    It pays from the probability of the shift on at which it saves what it costs.
    """
    losses = pd.read_csv(RESULTS / "tournament" / "claims.csv")

    def less(told: int, cases: Cases, *laws: str) -> Row:
        pair = own("wdrbo_exact, sd", told), own("erbo", told)
        found = difference(losses, *pair, laws, cases)
        assert found is not None
        return [found.difference, found.error]

    def likelier(cases: Cases) -> float:
        costs = less(30, cases, "settled")[0]
        return 100 * costs / (costs - less(30, cases, "shifted")[0])

    both = ("settled", "shifted")
    row = [*less(15, tense, *both), 15, *less(30, everywhere, *both), 30, 30]
    return [
        [*row, likelier(tense), likelier(everywhere), *less(30, everywhere, "rare")]
    ]


def newsvendor() -> list[Row]:
    title = "## Case by case"
    row = [("newsvendor", i, n) for i, n in ((1, 1), (2, 2), (3, 1))]
    shifted = [("newsvendor", i, n) for i, n in ((4, 1), (5, 2), (6, 1))]
    return [claims_cells(title, cells) for cells in (row, shifted)]


def claims_ignorance() -> list[Row]:
    table = "All options less"
    options = committed_table("tournament/claims.md", table)
    every = [(column, 2) for column in range(4)]
    return [claims_cells(table, [(name, *c) for c in every]) for name in options]


def claims_own_rows() -> list[Row]:
    both = [(name, 3, 2) for name in ("robust", "home")]
    both += [(name, 1, 2) for name in ("robust", "home")]
    row = claims_cells("## The same rules on the rows of", both)
    return [[15, *(abs(value) for value in row)]]


def claims_half_b() -> list[Row]:
    text = (RESULTS / "tournament" / "claims.md").read_text()
    found = numbers(text[text.index("Chosen: ") :].split("\n\n")[0])
    settled, error, _, _, shifted, its_error, _ = (x.value for x in found)
    return [[settled, error, shifted, its_error]]


SOURCES: Mapping[str, Callable[[], list[Row]]] = {
    "tournament/claims.md": claims,
    "tournament/claims.md, which method": which_method,
    "tournament/claims.md, without tension": without_tension,
    "tournament/claims.csv, break-even": break_even,
    "tournament/claims.md, learnt by erbo": learnt_by_erbo,
    "tournament/claims.md, longer own runs": longer_own_runs,
    "tournament/claims.md, newsvendor": newsvendor,
    "tournament/claims.md, ignorance": claims_ignorance,
    "tournament/claims.md, half B": claims_half_b,
    "tournament/claims.md, own rows": claims_own_rows,
}
