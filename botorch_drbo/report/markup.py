"""Well-formed HTML in which the user's text is always escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import torch

from botorch_drbo.recommendation.numbers import shown


class Markup(str):
    """Text that is HTML already; any other string is escaped where it is put in."""


def tag(name: str, *children: str, **attributes: str) -> Markup:
    r"""An element with its children.

    Args:
        name: Its name.
        children: What is in it; what is no ``Markup`` is escaped.
        attributes: Its attributes; ``class_`` is ``class``, and ``_`` is ``-``.

    Returns:
        The element.

    Example:
        >>> tag("p", "price < 3 & ", tag("b", "stock"), class_="note")
        '<p class="note">price &lt; 3 &amp; <b>stock</b></p>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
    )
    return Markup(f"<{name}{given}>{joined(*children)}</{name}>")


def joined(*children: str) -> Markup:
    """Pieces one behind the other; what is no ``Markup`` is escaped."""
    return Markup("".join(c if isinstance(c, Markup) else escape(c) for c in children))


def paragraphs(*texts: str) -> Markup:
    """A paragraph of each text that is not empty."""
    return joined(*(tag("p", text) for text in texts if text))


def listed(items: Iterable[str]) -> Markup:
    """A list with a dot before each item."""
    return tag("ul", *(tag("li", item) for item in items))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    r"""A table, its cells as the reports show numbers.

    Args:
        head: The names of the columns.
        rows: A cell for each column; None is what is not known.

    Returns:
        The table, in a box that scrolls where the screen is narrow.

    Example:
        >>> print(table(["x"], [[1 / 3]]))
        <div class="scroll" tabindex="0"><table>...<td>0.3333</td>...</table></div>
    """
    body = [tag("tr", *(tag("td", cell(value)) for value in row)) for row in rows]
    names = tag("tr", *(tag("th", name, scope="col") for name in head))
    whole = tag("table", tag("thead", names), tag("tbody", *body))
    return tag("div", whole, class_="scroll", tabindex="0")


def cell(value: object) -> str:
    """A value as it stands in a table; a dash for what is not known."""
    if isinstance(value, str):  # also Markup, as it is
        return value
    if isinstance(value, torch.Tensor):
        value = value.item()
    unknown = value is None or value != value  # NaN
    return "–" if unknown else shown(value)


def rough(size: float) -> str:
    """A difference with two significant digits, and all of those before the point.

    Example:
        >>> rough(0.02159), rough(1234.5)
        ('0.022', '1234')
    """
    return shown(float(f"{size:.2g}")) if abs(size) < 100 else f"{size:.0f}"


def disclosed(title: str, *children: str) -> Markup:
    """What is read only if wanted; printed in full."""
    return tag("details", tag("summary", title), *children)
