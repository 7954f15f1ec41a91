"""The experiment on what a limit on the price buys."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.page_numbers import numbers
from tests.page_sources.files import Row, column, committed_table

PAGE, RULE = "price/README.md", "ball within 10%"


def floors() -> list[float]:
    """What the floor gains on each function, the least first."""
    rows = column(PAGE, f"floor: {RULE}", "## By function")
    return sorted(gain for (gain,) in rows.values())


def p_over_functions(claim: str) -> float:
    return float(committed_table(PAGE, "- D:")[claim][3])


def sentence() -> list[Row]:
    """Runs, the limit, the floor and the price, what is lost, p over functions."""
    found = floors()
    assert len(found) == 12
    assert sum(found[-4:]) > 0.95 * sum(found) and found[3] < 0.0 <= found[4]
    told = "## Less *expected*, after 30 outcomes"
    price, floor = (committed_table(PAGE, told)[RULE][i] for i in (0, 1))
    runs = float(committed_table(PAGE, "- D:")["A"][4])
    gain, paid = (numbers(cell)[0].value for cell in (floor, price))
    p = [p_over_functions(claim) for claim in "AD"]
    return [[runs, 10, gain, paid, -found[0], *p]]


def claims() -> list[Row]:
    table = committed_table(PAGE, "- D:")
    assert {cells[-1] for cells in table.values()} == {"holds"}
    return [
        [numbers(cells[0])[0].value, float(cells[1]), float(cells[3])]
        for cells in table.values()
    ]


def misses() -> list[Row]:
    """The lowest floor, and the price there of the dearest of those that lose."""
    gains = column(PAGE, f"floor: {RULE}", "## By function")
    prices = column(PAGE, f"price: {RULE}", "## By function")
    dearest = max(prices[name][0] for name, (gain,) in gains.items() if gain < 0.0)
    return [[-floors()[0], dearest]]


SOURCES: Mapping[str, Callable[[], list[Row]]] = {
    f"{PAGE}, in a sentence": sentence,
    f"{PAGE}, claims": claims,
    f"{PAGE}, misses": misses,
}
