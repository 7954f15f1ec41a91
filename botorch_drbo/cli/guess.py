"""What the columns of a CSV file are likely to be."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import pairwise

from botorch_drbo.cli.columns import as_decimal, as_number
from botorch_drbo.cli.csv_file import CsvFile
from botorch_drbo.cli.options import STATUS
from botorch_drbo.space import Category, Continuous, Integer, Log, Variable

_LOW_IS_GOOD = ("cost", "costs", "loss", "error", "waste", "emissions", "regret")
_OUTCOMES = (
    *("outcome", "yield", "profit", "revenue", "score", "result", "y", "objective"),
    *("accuracy", "return", "sales", "output", "strength"),
    *_LOW_IS_GOOD,
)
_MET = (
    *("rain", "rainfall", "temp", "temperature", "weather", "wind", "humidity", "soil"),
    *("sun", "sunshine", "climate", "ambient", "season", "demand", "market"),
)
_MOST_NAMES = 20  # of a category
_FACTOR = 1000.0  # between the ends of a decision of which factors are said to count


@dataclass(frozen=True)
class Guess:
    """What a column seems to hold.

    Attributes:
        variable: Its kind; None for a column to leave alone.
        why: What was seen of it, for a comment.
    """

    variable: Variable | None
    why: str


def guess_variable(words: Mapping[int, str], *, chosen: bool) -> Guess:
    r"""The kind of a column, by what it holds.

    Args:
        words: Its cells by the numbers of their lines.
        chosen: Whether it is a decision: a number over three orders of magnitude is
            then taken for one of which factors count.

    Returns:
        Numbers with bounds that are rounded outwards, or a category.

    Example:
        >>> guess_variable({2: "20.5", 3: "61"}, chosen=True).variable
        Continuous(lower=20.0, upper=65.0)
        >>> guess_variable({2: "sun", 3: "rain", 4: "sun"}, chosen=False).variable
        Category(choices=('rain', 'sun'))
    """
    filled = [word for word in words.values() if word]
    numbers = [as_number(word) for word in filled]
    if len(set(filled)) < 2:
        return Guess(None, f"always {filled[0]}" if filled else "empty")
    if None in numbers:
        return _names(filled, numbers)
    values = [as_decimal(word) for word in filled]
    low, high = min(values), max(values)
    if low == high:
        return Guess(None, f"always {low}")
    seen = f"{low} to {high} in the file"
    whole = all(re.fullmatch(r"[+-]?\d+", word) for word in filled)
    in_order = [int(value) for value in values] if whole else []
    if len(in_order) > 2 and all(b - a == 1 for a, b in pairwise(in_order)):
        return Guess(None, "counts the rows")
    if chosen and low > 0 and high >= low * Decimal(_FACTOR):
        ends = 10.0 ** math.floor(low.log10()), 10.0 ** math.ceil(high.log10())
        return Guess(Log(*ends), f"{seen}: taken for a number of which factors count")
    lower, upper = _outwards(low, high)
    if whole:
        lower, upper = lower.to_integral(ROUND_FLOOR), upper.to_integral(ROUND_CEILING)
        return Guess(Integer(int(lower), int(upper)), f"{seen}, whole numbers")
    return Guess(Continuous(float(lower), float(upper)), seen)


def is_known(name: str, file: CsvFile, outcome: str) -> bool:
    """Whether a column has no empty cell in the rows with an outcome."""
    outcomes, cells = file.column(outcome), file.column(name)
    return all(cells[line] for line, word in outcomes.items() if word)


def guess_outcome(file: CsvFile) -> str | None:
    """The column of the outcome by its name; None if none is called like one."""
    for word in _OUTCOMES:
        for name in file.header:
            if word in _parts(name) and _has_numbers(file, name):
                return name
    return None


def guess_minimize(outcome: str) -> bool:
    """Whether low outcomes are good, by the name."""
    return not _parts(outcome).isdisjoint(_LOW_IS_GOOD)


def guess_contexts(names: list[str], file: CsvFile, outcome: str) -> list[str]:
    """The columns that are met: empty where the outcome is out, or called like it."""
    # A row with a status has failed, or was withdrawn: its context may have been met.
    over = file.column(STATUS) if STATUS in file.header else {}
    waiting = [
        line for line, y in file.column(outcome).items() if not (y or over.get(line))
    ]
    cells = {name: file.column(name) for name in names}
    empty = [n for n in names if waiting and not any(cells[n][i] for i in waiting)]
    if empty and len(empty) < len(names):
        return empty
    return [name for name in names if not _parts(name).isdisjoint(_MET)]


def _names(filled: list[str], numbers: list[float | None]) -> Guess:
    choices = sorted(set(filled))
    if any(number is not None for number in numbers):
        i = next(i for i, number in enumerate(numbers) if number is None)
        return Guess(None, f"numbers, and {filled[i]}")
    if len(choices) > min(_MOST_NAMES, max(2, len(filled) // 2)):
        return Guess(None, "nearly each row has another text")
    return Guess(Category(choices), "the names in the file")


def _outwards(low: Decimal, high: Decimal) -> tuple[Decimal, Decimal]:
    """Ends that are rounded to about a tenth of what lies between."""
    size = (high - low).log10().to_integral(ROUND_FLOOR)
    lead = (high - low).scaleb(-int(size))
    part = Decimal("0.1") if lead < 2 else Decimal("0.5") if lead < 5 else Decimal(1)
    step = part.scaleb(int(size))
    lower = (low / step).to_integral(ROUND_FLOOR) * step
    upper = (high / step).to_integral(ROUND_CEILING) * step
    return lower, upper


def _has_numbers(file: CsvFile, name: str) -> bool:
    filled = [word for word in file.column(name).values() if word]
    return bool(filled) and all(as_number(word) is not None for word in filled)


def _parts(name: str) -> set[str]:
    return set(re.split(r"[^a-z]+", name.lower()))
