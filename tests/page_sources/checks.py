"""Accuracy, the search, constraints and reliability."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tests.page_numbers import numbers
from tests.page_sources.files import RESULTS, Row, committed_table


def search() -> list[Row]:
    lines = (RESULTS / "search.md").read_text().splitlines()
    rows = [numbers(line) for line in lines if "| all |" in line]
    values = [[number.value for number in row] for row in rows]
    few, tried, time, missed, _, full_time = zip(*values, strict=True)
    assert sum(missed) == 0
    cheaper = [100 * (1 - a / b) for a, b in zip(time, full_time, strict=True)]
    bound = 100 * (1 - 0.05 ** (1 / sum(tried)))  # exact, of none missed
    assert bound < 1
    return [[sum(tried), 1, 95, min(cheaper), max(cheaper), sum(few), sum(tried)]]


def certainty() -> list[Row]:
    name = "lipschitz_gradients.md"
    lines = (RESULTS / name).read_text().splitlines()
    cells = [line.split(" | ") for line in lines if re.match(r"\| \d", line)]
    percent = [[float(row[i].strip("%")) for i in (4, 9)] for row in cells]
    slopes = [sum(int(row[2]) for row in cells)]
    slopes += [max(row[0] for row in percent) / 100, max(row[1] for row in percent)]
    lines = (RESULTS / "accuracy.md").read_text().splitlines()
    errors = [line.split(" | ")[5:7] for line in lines if re.match(r"\| \d", line)]
    moments = [max(float(row[i]) for row in errors) for i in (0, 1)]
    return [[], [], [], slopes, [], moments, [], [], [], [], []]


def constraints() -> list[Row]:
    table = committed_table("constraints.md", "| constraint |")
    cells = (table[name][:4] for name in table)
    return [[x.value for cell in row for x in numbers(cell)] for row in cells]


def constraints_text() -> list[Row]:
    text = (RESULTS / "constraints.md").read_text()
    best = [float(x) for x in re.findall(r"(?:value|law) (0\.\d+)", text)]
    level = float(re.findall(r"probability (0\.\d+)", text)[0])
    outcomes = sum(int(n) for n in re.findall(r"(\d+) (?:decisions|more)", text))
    return [[level, 0.01, outcomes, *best, best[1] - best[0]]]


def attacks(title: str) -> list[Row]:
    """A table of the attacks, as it stands."""
    table = committed_table("reliability.md", title)
    return [[n.value for c in cells for n in numbers(c)] for cells in table.values()]


SOURCES: Mapping[str, Callable[[], list[Row]]] = {
    "search.md": search,
    "lipschitz_gradients.md, accuracy.md": certainty,
    "constraints.md": constraints,
    "constraints.md, text": constraints_text,
    "reliability.md, problems": lambda: attacks("## Random problems"),
    "reliability.md, mutants": lambda: attacks("## Mutants"),
    "reliability.md, coverage": lambda: attacks("## Coverage"),
    "reliability.md, soak": lambda: attacks("## A long run"),
}
