"""Tables as Markdown, the same in all reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1
) -> list[str]:
    """The lines of a table.

    Args:
        head: The names of the columns.
        rows: A cell for each column.
        left: How many columns stand at the left; the others, which are numbers, at the
            right.
    """
    rule = "|---" * left + "|---:" * (len(head) - left) + "|"
    return [_line(head), rule, *map(_line, rows)]


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
