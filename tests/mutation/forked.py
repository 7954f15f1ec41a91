"""Runs tests on one mutant, in a process of its own that is forked from this one."""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.util
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from enum import IntEnum
from pathlib import Path

from tests.mutation.record import LIBRARY

FIRST = 25  # tests that are collected before the others: most mutants die here
IMPORTS = 120.0  # processor seconds of the imports, at most


class Outcome(IntEnum):
    """The exit code of the forked process."""

    SURVIVED = 0
    KILLED = 1
    UNDECIDED = 2


class Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from another source.

    Args:
        path: The module, relative to the library's folder.
        source: What it shall contain.
    """

    def __init__(self, path: str, source: str) -> None:
        self.name = ".".join(["botorch_drbo", *Path(path).with_suffix("").parts])
        self.name = self.name.removesuffix(".__init__")
        self.path, self.source = path, source

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(
            fullname, LIBRARY / self.path, loader=self
        )

    def exec_module(self, module) -> None:
        code = compile(self.source, str(LIBRARY / self.path), "exec")
        exec(code, module.__dict__)  # what an import does

    def create_module(self, spec):
        return None


class FirstFailure:
    """Plugin of pytest: sends the name of what fails, and ends what takes too long.

    Args:
        send: Where names go.
        seconds: What each test takes without a fault.
        limit: Processor seconds of all tests together.
    """

    def __init__(self, send: int, seconds: Mapping[str, float], limit: float) -> None:
        self.send, self.seconds, self.limit = send, seconds, limit
        self.failed = False

    def tell(self, what: str) -> None:
        self.failed = True
        os.write(self.send, what.encode()[:300] + b"\n")

    def pytest_sessionstart(self) -> None:
        """A failure is enough: hypothesis need not look for a simpler one."""
        from hypothesis import Phase, settings

        signal.setitimer(signal.ITIMER_PROF, IMPORTS)
        settings.register_profile(
            "mutant", settings(), phases=(Phase.explicit, Phase.generate)
        )
        settings.load_profile("mutant")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if time.process_time() > self.limit:
            os._exit(Outcome.UNDECIDED)
        usual = self.seconds.get(nodeid, 1.0)
        # The signals' default action ends the process: the fault made an endless loop.
        signal.setitimer(signal.ITIMER_PROF, 20 + 10 * usual)
        signal.setitimer(signal.ITIMER_REAL, 300 + 50 * usual)

    def pytest_runtest_logreport(self, report) -> None:
        if report.failed:
            self.tell(report.nodeid)

    def pytest_collectreport(self, report) -> None:
        if report.failed:
            self.tell(f"import of {report.nodeid}")


def run(
    path: str,
    source: str,
    tests: Sequence[str],
    seconds: Mapping[str, float],
    limit: float,
) -> tuple[Outcome, str]:
    """Whether a test fails, and which.

    Args:
        path: The module, relative to the library's folder.
        source: What it shall contain.
        tests: Which to run, one after the other until one fails.
        seconds: What each takes without a fault. One that takes ten times as long, and
            20 seconds more, kills the mutant.
        limit: Processor seconds; the last test may end after it.
    """
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os._exit(_in_child(path, source, tests, FirstFailure(send, seconds, limit)))
    os.close(send)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # processes that a test had started
    by = os.read(receive, 1000).decode(errors="replace").partition("\n")[0]
    os.close(receive)
    if os.WIFSIGNALED(status):
        return Outcome.KILLED, by or signal.Signals(os.WTERMSIG(status)).name
    return Outcome(os.WEXITSTATUS(status)), by


def _in_child(
    path: str, source: str, tests: Sequence[str], plugin: FirstFailure
) -> Outcome:
    import pytest

    signal.setitimer(signal.ITIMER_PROF, IMPORTS)
    mutated = Mutated(path, source)
    sys.meta_path.insert(0, mutated)
    try:
        importlib.import_module(mutated.name)
    except Exception as error:
        plugin.tell(f"import: {type(error).__name__}")
        return Outcome.KILLED
    options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    for some in (tests[:FIRST], tests[FIRST:]):
        if not some:
            break
        code = pytest.main([*options, *some], plugins=[plugin])
        if code in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED):
            if plugin.failed:  # a file of tests cannot be imported
                return Outcome.KILLED
            plugin.tell("a test does not exist")
            return Outcome.UNDECIDED
        if code != pytest.ExitCode.OK:
            return Outcome.KILLED
    return Outcome.SURVIVED
