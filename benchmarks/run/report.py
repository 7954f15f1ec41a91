"""The parts of every report: estimates, tables as Markdown, pictures."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from benchmarks.run.markdown import markdown_table


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds and its standard error; the error of one seed is not known."""

    mean: float
    error: float | None

    def __str__(self) -> str:
        """The error to two digits, the mean to as many decimals."""
        if self.error is None or self.error == 0:
            return f"{self.mean:.4g}"
        decimals = max(0, 1 - math.floor(math.log10(self.error)))
        return f"{self.mean:.{decimals}f} ± {self.error:.{decimals}f}"


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and standard error (sample standard deviation by the root of the count)."""
    if len(values) == 1:
        return Estimate(values[0], None)
    return Estimate(
        statistics.fmean(values), statistics.stdev(values) / len(values) ** 0.5
    )


@dataclass(frozen=True)
class Table:
    """A table of a report.

    Args:
        head: The names of the columns.
        rows: A cell for each column.
        title: What stands above it; nothing if empty.
        left: How many columns stand at the left; see ``markdown_table``.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    left: int = 1

    def __str__(self) -> str:
        """As Markdown."""
        title = [self.title, ""] if self.title else []
        return "\n".join(
            [*title, *markdown_table(self.head, self.rows, left=self.left)]
        )


@dataclass(frozen=True)
class Report:
    """A page, and the pictures and tables beside it.

    Args:
        title: Its first line.
        blocks: Paragraphs and tables, in their order.
        figures: Name of the file -> picture; ``write`` closes them.
        texts: Name of the file -> what else is written beside the page.
    """

    title: str
    blocks: Sequence[str | Table]
    figures: Mapping[str, Figure] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """As Markdown."""
        return "\n\n".join([f"# {self.title}", *map(str, self.blocks)]) + "\n"

    def write(self, page: Path) -> Path:
        """Write the page, and beside it all else; return the page."""
        page.parent.mkdir(parents=True, exist_ok=True)
        for name, text in {**self.texts, page.name: str(self)}.items():
            (page.parent / name).write_text(text, encoding="utf-8")
        for name, figure in self.figures.items():
            figure.savefig(page.parent / name, dpi=100)
            plt.close(figure)
        return page
