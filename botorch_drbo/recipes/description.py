"""The description of a recipe: one sentence, a formula, its source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Description:
    r"""One sentence, a formula in LaTeX, remarks, and where it comes from.

    Attributes:
        summary: One plain sentence.
        formula: What its next decision maximises, in LaTeX; empty if words do.
        remarks: Further sentences, where the method has a peculiarity.
        source: The citation, as in docstrings; empty for our own combinations.
    """

    summary: str
    formula: str = ""
    remarks: str = ""
    source: str = ""
