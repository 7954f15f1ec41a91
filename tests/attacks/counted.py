"""How many random problems are tried, and how many were; the summary says the latter.

``make test`` tries few of each kind. ``make attacks`` sets the environment variable
``BOTORCH_DRBO_ATTACKS=many``, which is read here and nowhere else. The hooks of pytest
are registered by ``tests/conftest.py``.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

CASES: Counter[str] = Counter()
VARIABLE = "BOTORCH_DRBO_ATTACKS"


def num_cases(few: int, many: int) -> int:
    """``few``, or ``many`` where the variable says so.

    Args:
        few: For every change: some seconds of one core.
        many: For ``make attacks``.

    Raises:
        ValueError: If the variable is set to another word.
    """
    word = os.environ.get(VARIABLE, "few")
    if word not in ("few", "many"):
        raise ValueError(f"{VARIABLE} is 'few' or 'many', got {word!r}")
    return many if word == "many" else few


def count(name: str, num: int = 1) -> None:
    """More problems of this name."""
    CASES[name] += num


def pytest_sessionfinish(session):
    """A process of pytest-xdist sends its counts."""
    sent = getattr(session.config, "workeroutput", None)
    if sent is not None:
        sent["cases"] = dict(CASES)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Add the counts that a process sent; one that died sent none."""
    CASES.update(getattr(node, "workeroutput", {}).get("cases", {}))


def pytest_terminal_summary(terminalreporter):
    """Print the counts, where there are any."""
    if CASES:
        terminalreporter.section("random problems")
        for name, number in sorted(CASES.items()):
            terminalreporter.write_line(f"{number:7,d}  {name}")
        terminalreporter.write_line(f"{sum(CASES.values()):7,d}  together")
