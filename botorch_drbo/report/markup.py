"""Well-formed HTML in which the user's text is always escaped, and its pictures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from io import StringIO
from zlib import crc32

import torch
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from botorch_drbo.plotting.style import COLOURS
from botorch_drbo.recommendation.promise import shown


class Markup(str):
    """Text that is HTML already; any other string is escaped where it is put in."""


def tag(name: str, *children: str, **attributes: str) -> Markup:
    """An element with its children."""
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


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    """A table, its cells as the reports show numbers."""
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
    """A difference with two significant digits, and all of those before the point."""
    return shown(float(f"{size:.2g}")) if abs(size) < 100 else f"{size:.0f}"


def disclosed(title: str, *children: str) -> Markup:
    """What is read only if wanted; printed in full."""
    return tag("details", tag("summary", title), *children)


_INK, _GROUND = "#010203", "#fdfcfb"  # colours that nobody else draws with
_BLACK = ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor")
_BLACK += ("xtick.color", "ytick.color")
_STYLE: dict[str, object] = {
    "font.size": 10.0,
    "font.family": "sans-serif",
    "svg.fonttype": "none",  # text stays text: it can be searched, and is of the page
    "text.parse_math": False,  # a name may have two dollar signs
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.facecolor": _GROUND,
    "legend.edgecolor": "none",
    "legend.framealpha": 0.8,
    "legend.fontsize": 9.0,
    **dict.fromkeys(_BLACK, _INK),
}
_SIZE = (4.8, 3.3)  # inches of 96 CSS pixels


def figure(
    draw: Callable[[Axes], object], words: str, height: float = _SIZE[1]
) -> Markup:
    """Draw a picture for the page."""
    with style.context(_STYLE):
        drawn = Figure(figsize=(_SIZE[0], height), layout="constrained")
        draw(drawn.subplots())
        buffer = StringIO()
        drawn.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return tag("figure", _themed(buffer.getvalue(), words), tag("figcaption", words))


def _themed(svg: str, words: str) -> Markup:
    """An ``svg`` element without anything of the outside, its colours of the page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    (box,) = re.findall(r'viewBox="([^"]*)"', svg)
    inner = svg[svg.index(">") + 1 : svg.rindex("</svg>")]
    inner = inner.replace("xlink:href", "href")
    # Ids of all pictures of the page must differ.
    own = f"f{crc32((words + svg).encode()):08x}-"
    inner = re.sub(r'\bid="', f'id="{own}', inner)
    inner = re.sub(r'(href="#|url\(#)', rf"\g<1>{own}", inner)
    for i, colour in enumerate(COLOURS[:-1]):
        inner = inner.replace(colour.lower(), f"var(--plot-{i})")
    inner = inner.replace(_GROUND, "var(--ground)")
    for ink in (_INK, COLOURS[-1]):
        inner = inner.replace(ink, "currentColor")
    # Numbers of a picture are as wide as those of the page's own font.
    inner = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", inner)
    return Markup(
        f'<svg viewBox="{box}" role="img" aria-label="{escape(words)}" '
        f'fill="currentColor">{inner}</svg>'
    )
