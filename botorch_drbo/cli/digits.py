"""Suggestions with the digits that their columns have."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING

from botorch_drbo.cli.columns import as_decimal
from botorch_drbo.cli.csv_file import CsvFile
from botorch_drbo.problem.equalities import EXACT
from botorch_drbo.problem.feasible import feasible
from botorch_drbo.space import Category, Continuous, Integer, Log, Space, Variable
from botorch_drbo.space.table import to_tensor

if TYPE_CHECKING:
    import pandas as pd

_STEP, _STEP_OF_AN_EMPTY_COLUMN = 1e-2, 1e-4  # of the side of a box, at most
_SIGNIFICANT = 3  # digits of a logarithmic number, at least
_MOST_SIGNIFICANT = 17  # digits of a number, as many as tell any two apart
_MOST_ROUNDED = 10  # columns: two choices for each


def in_digits(
    x: pd.DataFrame, pending: pd.DataFrame, file: CsvFile, space: Space
) -> list[dict[str, str]]:
    r"""Decisions as they are written: rounded to the digits of their columns.

    Each number becomes the nearest one with so many digits, or the next one on its
    other side where bounds, constraints or pending decisions leave no choice. If that
    does not help either, the decision keeps all its digits. A number of an interval is
    rounded to a hundredth of its bounds at the coarsest, whatever its column holds.

    Args:
        x: Decisions in the user's units, ``q`` rows.
        pending: Those that are pending.
        file: The file, for the digits of its columns.
        space: The decisions, their bounds and constraints.

    Returns:
        The words of each row.
    """
    names = list(space.decisions)
    taken = _points(pending, space)
    ahead = _points(x, space)
    written: list[dict[str, str]] = []
    for row in x.to_dict("records"):
        ahead = ahead[1:]
        options = [
            _options(row[name], space.decisions[name], _cells(file, name))
            for name in names
        ]
        if sum(len(words) > 1 for words in options) > _MOST_ROUNDED:
            options = [words[:1] for words in options]
        exact = tuple(_exact(row[name]) for name in names)
        tried = [*product(*options), exact]
        columns = {
            name: [
                word if isinstance(space.decisions[name], Category) else float(word)
                for word in words
            ]
            for name, words in zip(names, zip(*tried, strict=True), strict=True)
        }
        X = to_tensor(columns, space.decisions, "x")
        allowed = feasible(space.search_space, X, EXACT).tolist()
        points, apart = X.tolist(), [*taken, *ahead]
        free = (i for i, ok in enumerate(allowed) if ok and points[i] not in apart)
        i = next(free, len(tried) - 1)
        taken.append(points[i])
        written.append(dict(zip(names, tried[i], strict=True)))
    return written


def as_values(
    words: Mapping[str, str], variables: Mapping[str, Variable]
) -> dict[str, str | float | int]:
    """Words as JSON has them: the name of a category, a whole number, or a number."""
    found: dict[str, str | float | int] = {}
    for name, word in words.items():
        if isinstance(variables[name], Category):
            found[name] = word
        else:
            number = float(word)
            whole = number.is_integer() and abs(number) < 2**53
            found[name] = int(number) if whole else number
    return found


def _points(x: pd.DataFrame, space: Space) -> list[list[float]]:
    return to_tensor(x, space.decisions, "x").tolist()


def _options(value: object, variable: Variable, cells: Sequence[str]) -> list[str]:
    """The nearest numbers with the digits of a column, the nearest first."""
    if not isinstance(value, (int, float)):  # the name of a category
        return [_exact(value)]
    if not isinstance(variable, (Continuous, Log)):
        digits = _decimals(cells) if isinstance(variable, Integer) else 0
        digits = min(digits, _MOST_SIGNIFICANT)
        return [f"{value:.{digits}f}" if digits else _exact(value)]
    lower, upper = variable.lower, variable.upper
    if isinstance(variable, Log):
        significant = max([_SIGNIFICANT, *map(_num_digits, cells)])
        significant = min(significant, _MOST_SIGNIFICANT)
        digits = significant - 1 - math.floor(math.log10(value))
    else:
        step = _STEP if cells else _STEP_OF_AN_EMPTY_COLUMN
        digits = math.ceil(-math.log10(step * (upper - lower)))
        lead = math.floor(math.log10(max(abs(lower), abs(upper))))
        digits = max(min(_decimals(cells), _MOST_SIGNIFICANT - 1 - lead), digits)
    digits = max(0, digits)
    near = Decimal(f"{value:.{digits}f}") + 0  # a zero without a sign
    unit = Decimal(1).scaleb(-digits)
    words = [f"{n:f}" for n in (near, near + unit.copy_sign(Decimal(value) - near))]
    inside = [word for word in words if lower <= float(word) <= upper]
    return inside or [_exact(value)]


def _cells(file: CsvFile, name: str) -> list[str]:
    return [word for word in file.column(name).values() if word]


def _decimals(cells: Sequence[str]) -> int:
    """The most digits behind the point."""
    return max([0, *(_digits_behind(as_decimal(word)) for word in cells)])


def _digits_behind(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)  # a finite number
    return -exponent


def _num_digits(word: str) -> int:
    return len(as_decimal(word).normalize().as_tuple().digits)


def _exact(value: object) -> str:
    """All digits, and none behind the point of a whole number."""
    return f"{value!r}".removesuffix(".0") if isinstance(value, float) else str(value)
