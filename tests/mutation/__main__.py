"""Mutation testing: how many small faults do the tests of a module notice?

    python -m tests.mutation --sample 200 --seed 1 --out build/mutants.jsonl
    python -m tests.mutation --report build/mutants.jsonl

A mutant is one module with one fault (``mutants.py``); no file is changed. It runs in a
process of its own, forked from one that has imported torch and BoTorch already, so that
a mutant takes as long as the tests that it needs. It runs the tests of its module
(``test_<module>*.py``), then the other tests of its package, slow ones left out, and
stops at the first that fails. Killed: a test fails, or the process dies. Survived: all
pass. Undecided: the limit of ``--limit`` seconds of processor time came first. The same
command goes on with a sample that was stopped.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.abc
import importlib.util
import json
import os
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.mutation.mutants import Mutant, mutant, num_mutants

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "botorch_drbo"
PACKAGES = (
    "acquisition",
    "adversaries",
    "policies",
    "surrogate",
    "recommendation",
    "problem",
    "space",
    "optimizer",
)

# Imported once: seconds, of which a mutant needs none.
BEFORE_THE_FORKS = (
    "pytest",
    "hypothesis",
    "pandas",
    "scipy.optimize",
    "torch",
    "gpytorch",
    "botorch.models",
    "botorch.acquisition",
    "botorch.optim",
    "botorch.fit",
    "botorch.models.map_saas",
)


class Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from another source."""

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


def files_for(path: str) -> list[str]:
    """The tests of a module first, then the others of its package."""
    package, module = Path(path).parts[0], Path(path).stem
    folder = ROOT / "tests" / package
    own = sorted(folder.glob(f"test_{module.strip('_')}*.py"))
    others = [file for file in sorted(folder.glob("test_*.py")) if file not in own]

    def mentions(file: Path) -> int:
        return file.read_text().count(module)

    others.sort(key=lambda file: (-mentions(file), file.stat().st_size))
    return [str(file.relative_to(ROOT)) for file in (*own, *others)]


def run(fault: Mutant, source: str, limit: int) -> dict[str, object]:
    """Fork, import the mutant, run its tests."""
    start = time.perf_counter()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        sys.meta_path.insert(0, Mutated(fault.path, source))
        import pytest

        class First:
            def pytest_runtest_logreport(self, report):
                if report.failed:
                    os.write(writer, report.nodeid.encode()[:300])

            def pytest_collectreport(self, report):
                if report.failed:
                    os.write(writer, f"import of {report.nodeid}".encode()[:300])

        options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
        options += ["-p", "no:randomly", "--hypothesis-seed=0"]
        # One file after the other: the first often decides, and imports take long.
        for file in files_for(fault.path):
            code = int(pytest.main([*options, file], plugins=[First()]))
            if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
                os._exit(1)
        os._exit(0)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    by = os.read(reader, 1000).decode(errors="replace")
    os.close(reader)
    if os.WIFSIGNALED(status):
        out_of_time = os.WTERMSIG(status) in (9, 24)  # SIGKILL, SIGXCPU
        outcome = "undecided" if out_of_time else "killed"
        by = by or f"signal {os.WTERMSIG(status)}"
    else:
        outcome = "survived" if os.WEXITSTATUS(status) == 0 else "killed"
    return {
        **asdict(fault),
        "outcome": outcome,
        "by": by,
        "seconds": round(time.perf_counter() - start, 1),
    }


def sample(packages: Sequence[str], num: int, seed: int) -> list[tuple[Mutant, str]]:
    """A random sample of all mutants; every one is as likely as every other."""
    sources = {
        file.relative_to(LIBRARY).as_posix(): file.read_text()
        for package in packages
        for file in sorted((LIBRARY / package).rglob("*.py"))
    }
    every = [(p, k) for p, text in sources.items() for k in range(num_mutants(text))]
    chosen = random.Random(seed).sample(every, min(num, len(every)))
    return [mutant(path, sources[path], number) for path, number in chosen]


def report(file: Path) -> str:
    """How many were killed, package by package, and the survivors."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        counts.setdefault(row["path"].split("/")[0], Counter())[row["outcome"]] += 1
    lines = [
        "| package | mutants | killed | survived | undecided |",
        "|---|--:|--:|--:|--:|",
    ]
    total: Counter[str] = Counter()
    for package, count in [*sorted(counts.items()), ("all", total)]:
        if package != "all":
            total += count
        cells = (count.total(), count["killed"], count["survived"], count["undecided"])
        lines.append(f"| {package} | " + " | ".join(map(str, cells)) + " |")
    share = 100 * total["killed"] / max(total.total(), 1)
    lines.append(
        f"\nKilled: {share:.0f}% of all; undecided ones count as not killed.\n"
    )
    lines += [
        f"- {row['outcome']}: `{row['path']}:{row['line']}` {row['what']}"
        for row in rows
        if row["outcome"] != "killed"
    ]
    return "\n".join(lines)


def main() -> None:
    """Parse the arguments, and run or report."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--package", action="append", choices=PACKAGES)
    parser.add_argument("--limit", type=int, default=120, help="processor seconds each")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "mutants.jsonl")
    parser.add_argument("--report", type=Path)
    arguments = parser.parse_args()
    if arguments.report:
        print(report(arguments.report))
        return
    for name in BEFORE_THE_FORKS:
        importlib.import_module(name)
    assert "botorch_drbo" not in sys.modules  # each mutant imports its own
    os.chdir(ROOT)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    done = set()
    if arguments.out.exists():
        for line in arguments.out.read_text().splitlines():
            row = json.loads(line)
            done.add((row["path"], row["number"]))
    packages = arguments.package or PACKAGES
    for fault, source in sample(packages, arguments.sample, arguments.seed):
        if (fault.path, fault.number) in done:
            continue
        row = run(fault, source, arguments.limit)
        with arguments.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row["outcome"], f"{fault.path}:{fault.line}", fault.what, row["by"])
        sys.stdout.flush()


if __name__ == "__main__":
    main()
