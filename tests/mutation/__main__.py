"""Mutation testing: how many small faults do the tests notice?

    python -m tests.mutation --record
    python -m tests.mutation --sample 200 --seed 1
    python -m tests.mutation --report

``--record`` runs the tests, slow ones left out, and keeps which test executes which
line (``record.py``); it needs pytest-cov. A mutant is one module with one fault
(``mutants.py``); no file is changed. It runs in a process of its own, forked from one
that has imported torch and BoTorch already (``forked.py``), and runs the tests that
execute the line of the fault, the fastest first, up to the first that fails. Killed: a
test fails that passes without the fault, or takes ten times as long, or the process
dies. Survived: all pass, or no test executes the line. Undecided: the tests take more
than ``--limit`` seconds of processor time. The same command goes on with a sample that
was stopped; record again after a change.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.mutation.forked import Outcome, run
from tests.mutation.mutants import Mutant, mutant, num_mutants
from tests.mutation.record import LIBRARY, ROOT, Recorded, read, record

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


def work(
    faults: Sequence[tuple[Mutant, str]], recorded: Recorded, out: Path, limit: int
) -> None:
    """Run tests on one mutant after the other, and append what came of each."""
    sound: set[str] = set()
    for fault, source in faults:
        start = time.perf_counter()
        tests = recorded.tests_of(fault.path, fault.lines)
        while True:
            seconds = recorded.seconds
            outcome, by = run(fault.path, source, tests, seconds, limit)
            # A test that fails without the fault, too, decides nothing.
            if outcome is not Outcome.KILLED or by not in tests or by in sound:
                break
            plain = (LIBRARY / fault.path).read_text()
            if run(fault.path, plain, [by], seconds, limit)[0] is Outcome.SURVIVED:
                sound.add(by)
                break
            tests.remove(by)
        row = {**asdict(fault), "outcome": outcome.name.lower(), "by": by}
        row |= {"tests": len(tests), "seconds": round(time.perf_counter() - start, 1)}
        with out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row["outcome"], f"{fault.path}:{fault.line}", fault.what, by, flush=True)


def sample(packages: Sequence[str], num: int, seed: int) -> list[tuple[Mutant, str]]:
    """A random sample of all mutants; every one is as likely as every other."""
    sources = {
        file.relative_to(LIBRARY).as_posix(): file.read_text()
        for package in packages
        for file in sorted((LIBRARY / package).rglob("*.py"))
    }
    every = [(p, k) for p, text in sources.items() for k in range(num_mutants(text))]
    random.Random(seed).shuffle(every)  # a larger sample begins with the smaller one
    return [mutant(path, sources[path], number) for path, number in every[:num]]


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
    """Parse the arguments, and record, run or report."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="to record")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutation")
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--package", action="append", choices=PACKAGES)
    parser.add_argument("--limit", type=int, default=120, help="processor seconds each")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    out = arguments.folder / "mutants.jsonl"
    if arguments.record:
        sys.exit(record(arguments.folder, arguments.tests, arguments.jobs))
    if arguments.report:
        print(report(out))
        return
    os.chdir(ROOT)
    done = set()
    if out.exists():
        for line in out.read_text().splitlines():
            row = json.loads(line)
            done.add((row["path"], row["number"]))
    packages = arguments.package or PACKAGES
    faults = sample(packages, arguments.sample, arguments.seed)
    faults = [each for each in faults if (each[0].path, each[0].number) not in done]
    recorded = read(arguments.folder, [fault.path for fault, _ in faults])
    for name in BEFORE_THE_FORKS:
        importlib.import_module(name)
    assert "botorch_drbo" not in sys.modules  # each mutant imports its own
    for job in range(arguments.jobs):
        if os.fork() == 0:
            work(faults[job :: arguments.jobs], recorded, out, arguments.limit)
            os._exit(0)
    for _ in range(arguments.jobs):
        os.wait()


if __name__ == "__main__":
    main()
