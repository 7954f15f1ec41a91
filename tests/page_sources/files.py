"""Reading the committed results."""

from __future__ import annotations

import pandas as pd

from benchmarks.experiments.papers.judge import cells_of
from benchmarks.run.tables import load_tables
from tests.page_numbers import ROOT, numbers

RESULTS = ROOT / "benchmarks" / "results"


def words_of(page: str) -> str:
    """A page in one line, to look for a sentence in."""
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


Row = list[float]


def mean_and_error(values: pd.Series) -> Row:
    """Mean and standard error."""
    return [values.mean(), values.std(ddof=1) / len(values) ** 0.5]


def committed_table(path: str, title: str = "") -> dict[str, list[str]]:
    """First cell of a row -> the other cells, of a committed Markdown table.

    Args:
        path: The file, below benchmarks/results.
        title: A line of it; the first table behind it is meant.
    """
    return {
        first.strip("*"): [cell.strip("*") for cell in cells]
        for first, cells in cells_of(path, title).items()
    }


def column(path: str, name: str, title: str = "") -> dict[str, Row]:
    """First cell of a row -> the numbers of one named column."""
    text = (RESULTS / path).read_text()
    lines = text[text.index(title) :].splitlines()
    head = next(line for line in lines if line.startswith("|"))
    column = [c.strip() for c in head.strip("|").split(" | ")].index(name) - 1
    return {
        first: [number.value for number in numbers(cells[column])]
        for first, cells in committed_table(path, title).items()
    }


def runs(name: str) -> pd.DataFrame:
    """All runs of a committed benchmark."""
    return load_tables(RESULTS / name)[0]
