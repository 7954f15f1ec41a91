"""Pictures of a report: SVG inside the page, in the colours of its theme."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from io import StringIO
from zlib import crc32

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from botorch_drbo.plotting.style import COLOURS
from botorch_drbo.report.markup import Markup, tag

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


def figure(draw: Callable[[Axes], object], words: str) -> Markup:
    r"""Draw a picture for the page.

    Args:
        draw: Draws on the axes that it is given.
        words: What the picture shows, in a sentence: its caption, also for those who
            cannot see it.

    Returns:
        A ``figure`` element. Text and lines that are black take the colour of the
        text of the page, others the CSS variables ``--plot-0`` to ``--plot-6``.
    """
    with style.context(_STYLE):
        drawn = Figure(figsize=_SIZE, layout="constrained")
        draw(drawn.subplots())
        buffer = StringIO()
        drawn.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    caption = tag("figcaption", words)
    return tag("figure", _themed(buffer.getvalue(), words), caption)


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
