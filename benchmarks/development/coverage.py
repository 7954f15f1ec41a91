"""Cells of tables of intervals: their coverage, width and optimism."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from benchmarks.development.cases import CASES
from benchmarks.run.markdown import markdown_table


def interval_cells(table: Any, truth: str) -> list[str]:
    """Share inside, median width, mean optimism, and both first without widening.

    Args:
        table: A row for each interval, with ``mean``, ``low``, ``high``, ``widening``,
            ``spread`` and the truth.
        truth: The column of the truth.

    Returns:
        Five cells; shares and optimism with a standard error over the rows.
    """
    plain = narrowed(table)
    optimism = (table["mean"] - table[truth]) / table["spread"]
    return [
        share(inside(table, truth)),
        _width(table),
        f"{optimism.mean():+.2f} ± {optimism.sem():.2f}",
        share(inside(plain, truth)),
        _width(plain),
    ]


def inside(table: Any, truth: str) -> Any:
    """Which intervals hold the truth."""
    return (table["low"] <= table[truth]) & (table[truth] <= table["high"])


def narrowed(table: Any) -> pd.DataFrame:
    """The intervals as the model says: stretching is around the mean."""
    middle, factor = table["mean"], table["widening"]
    ends = {end: middle + (table[end] - middle) / factor for end in ("low", "high")}
    return table.assign(**ends)


def share(held: Any) -> str:
    """A share in percent, ± its standard error.

    Example:
        >>> share(pd.Series([True, True, True, False]))
        '75% ± 22'
    """
    found = held.mean()
    error = (found * (1.0 - found) / len(held)) ** 0.5
    return f"{100 * found:.0f}% ± {100 * error:.0f}"


def by_case(table: Any, truth: str, columns: Sequence[tuple[str, str]]) -> str:
    """How many intervals of each function hold the truth, of how many.

    Args:
        table: As in ``interval_cells``, with ``case``, ``surrogate``, ``promised``.
        truth: The column of the truth.
        columns: Surrogates and promises.
    """
    rows = []
    for case in CASES:
        own = table[table["case"] == case]
        cells = [case]
        for surrogate, promised in columns:
            of = (own["surrogate"] == surrogate) & (own["promised"] == promised)
            held = inside(own[of], truth)
            cells.append(f"{held.sum()} of {len(held)}")
        if len(own):
            rows.append(cells)
    head = ["case", *(f"{surrogate}, {promised}" for surrogate, promised in columns)]
    return "\n".join(markdown_table(head, rows))


def _width(table: Any) -> str:
    return f"{((table['high'] - table['low']) / table['spread']).median():.2f}"
