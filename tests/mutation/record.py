"""Which tests execute a line of the library, and how long each test takes."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "botorch_drbo"


class Durations:
    """Seconds of each test, with its fixtures."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration


def record(folder: Path, tests: Sequence[str], processes: int) -> int:
    """Run tests under coverage, lines and branches, and keep who executed what.

    Args:
        folder: Gets ``coverage.sqlite`` (``coverage report --data-file=``) and
            ``durations.json``.
        tests: Files, folders or tests; slow ones are left out.
        processes: Of pytest-xdist, if there is more than one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["COVERAGE_FILE"] = str(folder / "coverage.sqlite")
    durations = Durations()
    options = ["-q", "-m", "not slow", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    if processes > 1:  # with `-n 0` pytest-cov would forget the names of the tests
        options += ["-n", str(processes), "--dist", "worksteal"]
    options += ["--cov=botorch_drbo", "--cov-branch", "--cov-context=test"]
    code = pytest.main([*options, "--cov-report=", *tests], plugins=[durations])
    (folder / "durations.json").write_text(json.dumps(durations.seconds, indent=0))
    return int(code)


@dataclass(frozen=True)
class Recorded:
    """What ``record`` wrote.

    Attributes:
        contexts: Of each module, relative to the library's folder: line -> who executes
            it, as coverage names them: ``test|phase``, and an empty name for imports.
        seconds: Of each test.
    """

    contexts: Mapping[str, Mapping[int, Sequence[str]]]
    seconds: Mapping[str, float]

    def tests_of(self, path: str, lines: Iterable[int]) -> list[str]:
        """Tests that execute one of the lines of a module, the fastest first.

        What an import alone executes belongs to no test: then those of the module.

        Args:
            path: The module, relative to the library's folder.
            lines: From 1.
        """
        by_line = self.contexts[path]
        contexts = {context for line in lines for context in by_line.get(line, ())}
        if "" in contexts:  # executed by an import
            contexts = {context for each in by_line.values() for context in each}
        tests = {context.rpartition("|")[0] for context in contexts} - {""}
        own = f"tests/{Path(path).parts[0]}/"

        def cost(test: str) -> tuple[float, str]:
            further_file = 0.0 if test.startswith(own) else 0.5
            return self.seconds.get(test, 1.0) + further_file, test

        return sorted(tests, key=cost)


def read(folder: Path, paths: Iterable[str]) -> Recorded:
    """Read what ``record`` wrote, whole: a fork must not use its parent's database.

    Args:
        folder: Where it did.
        paths: Modules, relative to the library's folder.

    Raises:
        ValueError: Nothing was recorded, or without the names of tests.
    """
    from coverage import CoverageData

    data = CoverageData(basename=str(folder / "coverage.sqlite"))
    data.read()
    if not data.measured_contexts() - {""}:
        raise ValueError(f"{folder} names no test: record again")
    contexts = {
        path: data.contexts_by_lineno(str(LIBRARY / path)) for path in set(paths)
    }
    data.close()
    return Recorded(contexts, json.loads((folder / "durations.json").read_text()))
