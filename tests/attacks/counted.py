"""How many random problems were tried; ``conftest.py`` prints it at the end."""

from __future__ import annotations

from collections import Counter

CASES: Counter[str] = Counter()


def count(name: str) -> None:
    """One more problem of this name."""
    CASES[name] += 1
