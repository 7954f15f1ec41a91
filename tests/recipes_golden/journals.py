"""Journals that 0.2.0 wrote: three trials of each recipe, and each kind of option."""

from __future__ import annotations

from pathlib import Path

from botorch_drbo import RobustOptimizer
from tests.recipes_golden.cases import described, exactly


def follow(path: Path, lines: list[str]) -> list[str]:
    """What the resumed run recommends and asks next, in hexadecimal."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    optimizer = RobustOptimizer.resume(path)
    return [*described(optimizer.recommend()), *exactly(optimizer.ask())]
