"""Tests of over half a second of the processor are slow: `make test` leaves them out.

``tests/slow.txt`` lists them; ``make slow`` measures all tests and writes it anew. A
test that is not listed and takes several times the limit is an error.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("slow.txt")
LIMIT = 0.5  # seconds of the processor, with those of processes that a test waits for
# An error. The first test of a process pays for imports and for fits that others share,
# and shared cores count up to twice as much as idle ones: less would be noise.
MOST = 40 * LIMIT
_CPU = "seconds of the processor"


def listed() -> set[str]:
    """The tests that are slow, by the names that pytest gives them."""
    return set(LIST.read_text(encoding="utf-8").splitlines())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-slow", action="store_true", help="write tests/slow.txt")
    parser.addoption("--tenth", type=int, help="of the slow tests, one tenth: 0 to 9")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # the process that reports
        config.pluginmanager.register(Durations())


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    slow, tenth = listed(), config.getoption("--tenth")
    for item in items:
        if item.nodeid in slow:
            item.add_marker(pytest.mark.slow)
    if tenth is not None:
        others = [i for i in items if zlib.crc32(i.nodeid.encode()) % 10 != tenth % 10]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in set(others)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before = sum(os.times()[:4])
    item.user_properties.append((_CPU, lambda: sum(os.times()[:4]) - before))
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[pytest.TestReport]:
    report = yield
    report.user_properties = [
        (name, value() if name == _CPU else value)
        for name, value in item.user_properties
    ]
    return report


class Durations:
    """The seconds of each test, in the process that reports."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.slow: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = dict(report.user_properties).get(_CPU, 0.0)
        if "slow" in report.keywords:
            self.slow.add(report.nodeid)

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        over = {name: s for name, s in self.seconds.items() if s > LIMIT}
        if config.getoption("--record-slow"):
            LIST.write_text("".join(f"{name}\n" for name in sorted(over)))
            return
        fast = sorted(over.keys() - self.slow, key=lambda name: -over[name])
        if fast:
            terminalreporter.section("not marked slow, and over half a CPU second")
        for name in fast[:20]:
            terminalreporter.write_line(f"{over[name]:6.1f} s  {name}")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        found = [n for n, s in self.seconds.items() if s > MOST and n not in self.slow]
        if found and not session.config.getoption("--record-slow"):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
