"""Names in tables break after a dot or an underscore, not after any letter."""

from __future__ import annotations

import re

_TABLE = re.compile(r'<table class="docutils.*?</table>', re.S)
_CODE = re.compile(r'(?<=<span class="pre">)[^<]+(?=</span>)')
# After punctuation, and between the humps of a class; not inside ``&quot;``.
_PLACE = re.compile(r"(?<=[._/=(,])(?=\w)|(?<=[a-z])(?=[A-Z])")


def with_breaks(html: str) -> str:
    r"""Say where a browser may break the code in tables.

    Without it a browser makes a narrow column one letter wide, or a table wider than a
    telephone. The text that a reader copies, and the search index, stay as they are.

    Args:
        html: The body of a page.
    """
    return _TABLE.sub(
        lambda table: _CODE.sub(lambda code: _PLACE.sub("<wbr>", code[0]), table[0]),
        html,
    )


def add_breaks(app, pagename, templatename, context, doctree) -> None:
    """Sphinx calls it with each page before it is written."""
    if "body" in context:
        context["body"] = with_breaks(context["body"])
