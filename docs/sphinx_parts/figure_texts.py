"""A text for the figures of notebooks, which have none of their own."""

from __future__ import annotations

from docutils import nodes
from sphinx.transforms import SphinxTransform


class FigureTexts(SphinxTransform):
    """Name each figure without a text by the section in which a cell drew it."""

    default_priority = 900

    def apply(self, **kwargs: object) -> None:
        for image in self.document.findall(nodes.image):
            if not image.get("alt"):
                image["alt"] = f"Figure of the section {_section(image)!r}"


def _section(node: nodes.Node) -> str:
    """The title above a node; of the page if there is no section."""
    parent = node.parent
    while parent is not None and not isinstance(parent, nodes.section):
        parent = parent.parent
    title = None if parent is None else parent.next_node(nodes.title)
    return "" if title is None else title.astext()
