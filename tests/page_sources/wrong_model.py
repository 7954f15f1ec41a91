"""Functions that the model does not have."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.page_numbers import numbers
from tests.page_sources.files import Row, committed_table

WRONG_MODEL = (
    "ec_gp_ucb",
    "phased_gp_us",
    "regret_balancing",
    "regret_balancing, own guesses",
)


def misspecified() -> list[Row]:
    ratios: dict[str, Row] = {}
    for kind in ("**waves**", "**bumps**"):
        table = committed_table("misspecified/table.md", kind)
        for error in (1, 2):  # the columns of the two errors that are not zero
            regret = {name: numbers(table[name][error])[0].value for name in table}
            for name in regret:
                ratio = regret[name] / regret["gp_ucb"]
                ratios.setdefault(name, []).append(ratio)
    return [[f(ratios[name]) for name in WRONG_MODEL for f in (min, max)]]


def misspecified_text() -> list[Row]:
    waves = committed_table("misspecified/table.md", "**waves**")
    bumps = committed_table("misspecified/table.md", "**bumps**")
    plain = [[x.value for x in numbers(cell)] for cell in waves["gp_ucb"]]
    phased = [numbers(cell)[0].value for cell in bumps["phased_gp_us"]]
    ratio = plain[2][0] / plain[0][0]
    last = [plain[2][2], plain[0][2]]
    shares = [
        numbers(own)[0].value / numbers(first)[0].value
        for table in (waves, bumps)
        for own, first in zip(*(table[m] for m in WRONG_MODEL[:1:-1]), strict=True)
    ]
    saved = [100 * (1 - max(shares)), 100 * (1 - min(shares))]
    return [[0.3, ratio, *last, phased[0], phased[2], 0.3, 0.3, *saved]]


def action_sets() -> list[Row]:
    ratios: dict[str, list[float]] = {"own guesses": [], "lambda 1": []}
    for kind in ("**waves**", "**bumps**"):
        table = committed_table("action_sets/table.md", kind)
        for name, found in ratios.items():
            other = table[f"regret_balancing, {name}"]
            both = zip(table["regret_balancing"], other, strict=True)
            found += [numbers(a)[0].value / numbers(b)[0].value for a, b in both]
    own, wide = ratios.values()
    guesses = committed_table("action_sets/table.md", "| guesses |")["the paper's"][1]
    first, _, second, _ = (x.value for x in numbers(guesses.replace(":", " ")))
    return [[first, second, 300, min(own), max(own), min(wide), max(wide)]]


SOURCES: Mapping[str, Callable[[], list[Row]]] = {
    "misspecified/table.md, ratios": misspecified,
    "misspecified/table.md": misspecified_text,
    "action_sets/table.md": action_sets,
}
