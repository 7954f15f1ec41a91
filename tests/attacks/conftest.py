"""The summary of a run: how many random problems of each kind."""

from __future__ import annotations

from tests.attacks.counted import CASES


def pytest_terminal_summary(terminalreporter):
    """Print the counts, where there are any."""
    if CASES:
        terminalreporter.section("random problems")
        for name, number in sorted(CASES.items()):
            terminalreporter.write_line(f"{number:7,d}  {name}")
        terminalreporter.write_line(f"{sum(CASES.values()):7,d}  together")
