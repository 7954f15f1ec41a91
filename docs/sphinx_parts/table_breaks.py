"""Names in tables break after punctuation; code ends without an empty line."""

from __future__ import annotations

import re

_TABLE = re.compile(r'<table class="docutils.*?</table>', re.S)
_CODE = re.compile(r'(?<=<span class="pre">)[^<]+(?=</span>)')
# After punctuation, and between the humps of a class; not inside ``&quot;``.
_PLACE = re.compile(r"(?<=[._/=(,])(?=\w)|(?<=[a-z])(?=[A-Z])")

# A doctest in Markdown needs an empty line before the fence.
_END_OF_CODE = re.compile(r"\n+</pre>")


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


def without_empty_ends(html: str) -> str:
    r"""Leave out the empty line at the end of a block of code.

    Args:
        html: The body of a page.
    """
    return _END_OF_CODE.sub("\n</pre>", html)


def add_breaks(app, pagename, templatename, context, doctree) -> None:
    """Sphinx calls it with each page before it is written."""
    if "body" in context:
        context["body"] = without_empty_ends(with_breaks(context["body"]))
