"""Printing. A name or a cell of a file is never read as markup of the terminal."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text


def plain(text: str) -> str:
    """A text in which each character is shown; none of them steers the terminal."""
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode()
        for c in text
    )


def say(text: str, style: str = "", *, error: bool = False) -> None:
    """Print a text as it is, its lines as long as they are."""
    Console(stderr=error).print(Text(plain(text), style), soft_wrap=True)


def show(rows: Sequence[Mapping[str, str]], title: str) -> None:
    """Print a table; a word that is too long goes on below, and is never cut."""
    say(title)
    table = Table()
    for name in rows[0]:
        table.add_column(Text(plain(name)), overflow="fold")
    for row in rows:
        table.add_row(*(Text(plain(word)) for word in row.values()))
    Console().print(table)


def answer(document: object, *, as_json: bool, text: Callable[[], None]) -> None:
    """Give the answer of a command on stdout."""
    if not as_json:
        text()
        return
    print(json.dumps(_without_nan(document), ensure_ascii=False, allow_nan=False))


def _without_nan(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _without_nan(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
