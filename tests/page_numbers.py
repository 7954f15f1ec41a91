"""The numbers of README.md, docs/*.md and the tutorials, and how they are compared.

A page names the source of a table, or of a paragraph, in a line before it, as in
``<!-- numbers: benchmarks/results/demo/shops.csv -->``: a committed file or a pattern,
and behind a comma which part of it, where there are several. ``SOURCES`` of the
folder ``page_sources`` has for each a function of the numbers that stand there, row by
row without the first column; a paragraph is one row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))),
    *(f"tutorials/{path.name}" for path in sorted((ROOT / "tutorials").glob("*.py"))),
)

_MARK = re.compile(r"<!-- numbers: (.*?) -->")
_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`[^`]*`|\]\([^)]*\)|\$[^$]*\$")
# 1,024 or .5 or 2e-8; no part of a word (W1) or of a version (0.18.1).
_NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.\d+|\d+)(?:e[-+]?\d+)?"
    r"(?!\d|\.\d|,\d{3})"
)


@dataclass(frozen=True)
class Printed:
    """A number as it stands on a page."""

    text: str

    @property
    def value(self) -> float:
        return float(self.text.replace(",", ""))

    @property
    def unit(self) -> float:
        """One in its last digit."""
        mantissa, _, exponent = self.text.replace(",", "").partition("e")
        return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))

    def is_rounded(self, value: float) -> bool:
        """Whether ``value``, rounded to these digits, is this number."""
        return math.isclose(
            self.value, value, rel_tol=1e-9, abs_tol=0.5 * self.unit * (1 + 1e-6)
        )


@dataclass(frozen=True)
class Passage:
    """A table or a paragraph of a page.

    Args:
        line: Where it begins, from 1.
        source: What the comment before it says; empty without one.
        rows: Its numbers.
        is_table: Else a paragraph.
    """

    line: int
    source: str
    rows: list[list[Printed]]
    is_table: bool


def text_of(page: str) -> str:
    """A page as it is read; of a tutorial the text between its cells, line for line."""
    text = (ROOT / page).read_text()
    if not page.endswith(".py"):
        return text
    comments = (line if line.startswith("# ") else "" for line in text.splitlines())
    return "\n".join(line.removeprefix("# ") for line in comments)


def numbers(text: str) -> list[Printed]:
    """The numbers of a text; code, formulas and links have none."""
    return [Printed(found) for found in _NUMBER.findall(_CODE.sub(" ", text))]


def passages(page: str) -> Iterator[Passage]:
    """The tables of a page, and the paragraphs that name a source."""
    text = _FENCE.sub(lambda found: "\n" * found.group().count("\n"), page)
    lines, start = text.splitlines(), 0
    while start < len(lines):
        if not lines[start].strip():
            start += 1
            continue
        end = start
        while end < len(lines) and lines[end].strip():
            end += 1
        block, first = lines[start:end], start + 1
        mark = _MARK.fullmatch(block[0].strip())
        source = mark.group(1) if mark else ""
        if mark:
            block = block[1:]
        if block and block[0].startswith("|"):
            yield Passage(first, source, [_cells(row) for row in block[2:]], True)
        elif mark:
            yield Passage(first, source, [numbers(" ".join(block))], False)
        start = end


def _cells(row: str) -> list[Printed]:
    """The numbers of a row of a table, without its first cell."""
    cells = re.split(r"(?<!\\)\|", row.strip().strip("|"))[1:]
    return [number for cell in cells for number in numbers(cell)]


def wrong_numbers(found: Passage, rows: Sequence[Sequence[float]]) -> list[str]:
    """What differs between a passage and its source, a line for each difference."""
    if len(rows) != len(found.rows):
        return [f"{len(found.rows)} rows, the source has {len(rows)}"]
    wrong = []
    for i, (page, source) in enumerate(zip(found.rows, rows, strict=True)):
        texts = [number.text for number in page]
        if len(page) != len(source):
            wrong.append(f"row {i}: {texts}, the source has {list(source)}")
            continue
        wrong += [
            f"row {i}: {number.text}, the source has {value:.6g}"
            for number, value in zip(page, source, strict=True)
            if not number.is_rounded(value)
        ]
    return wrong
