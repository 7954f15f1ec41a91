"""What the commands say. A name or a cell of a file is never markup of the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text


def plain(text: str) -> str:
    r"""A text in which each character is shown; none of them steers the terminal.

    Example:
        >>> plain("price \x1b[31m")
        'price \\x1b[31m'
    """
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode()
        for c in text
    )


def say(text: str, style: str = "", *, error: bool = False) -> None:
    """Print a text as it is, its lines as long as they are.

    Args:
        text: What to print.
        style: A colour of ``rich``, for the whole text.
        error: Whether it belongs to the errors and notes, not to the answer.
    """
    Console(stderr=error).print(Text(plain(text), style), soft_wrap=True)


def show(rows: Sequence[Mapping[str, str]], title: str) -> None:
    """Print a table; a word that is too long goes on below, and is never cut.

    Args:
        rows: At least one, each with the same columns.
        title: What stands above.
    """
    say(title)
    table = Table()
    for name in rows[0]:
        table.add_column(Text(plain(name)), overflow="fold")
    for row in rows:
        table.add_row(*(Text(plain(word)) for word in row.values()))
    Console().print(table)
