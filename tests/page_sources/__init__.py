"""What the numbers of README.md, docs/*.md and the tutorials are computed from.

A module for each group of results; its ``SOURCES`` has a function for each table or
paragraph, by the file below benchmarks/results that the page names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.page_sources import (
    batches,
    checks,
    claims,
    demo,
    price,
    speed,
    studies,
    surrogates,
    tournament,
    wrong_model,
)
from tests.page_sources.files import Row

_MODULES = (
    demo,
    price,
    tournament,
    claims,
    studies,
    wrong_model,
    surrogates,
    speed,
    batches,
    checks,
)
SOURCES: Mapping[str, Callable[[], list[Row]]] = {
    f"benchmarks/results/{path}": source
    for module in _MODULES
    for path, source in module.SOURCES.items()
}
