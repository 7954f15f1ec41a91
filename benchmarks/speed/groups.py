"""How long ``suggest --group`` takes for many groups.

``python -m benchmarks.speed.groups --groups 1000`` writes the page
``benchmarks/results/groups.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.commands import RESULTS
from benchmarks.run.provenance import load, machine
from benchmarks.run.report import Report, Table

ROWS = 50


def sales(groups: int) -> str:
    """A file of ``groups`` products: price, advertising, demand index, profit."""
    chance = np.random.default_rng(0)
    lines = ["sku,price,adverts,demand,profit"]
    for k in range(groups):
        best, lure = chance.uniform(30, 70), chance.uniform(1, 4)
        price = chance.uniform(10, 90, ROWS)
        adverts = chance.uniform(0, 10, ROWS)
        demand = chance.normal(50, 15, ROWS).clip(0, 100)
        profit = -(((price - best) / 20) ** 2) + demand / 50 * np.sin(price / 20)
        profit += lure * np.sqrt(adverts) - 0.5 * adverts
        profit += chance.normal(0, 0.2, ROWS)
        rows = zip(price, adverts, demand, profit, strict=True)
        lines += [f"sku{k}," + ",".join(f"{v:.2f}" for v in row) for row in rows]
    return "\n".join(lines) + "\n"


def run(groups: int, workers: int, further: list[str]) -> Report:
    """Call the command once and report what it took."""
    words = ["--decisions", "price=10:90", "adverts=0:10", "--contexts", "demand=0:100"]
    words += ["--outcome", "profit", "--group", "sku", "--workers", str(workers)]
    words += further
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sales.csv"
        path.write_text(sales(groups), encoding="utf-8")
        call = "from botorch_drbo.cli import main; main()"
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", call, "suggest", str(path), *words, "--json"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        )
        wall = time.monotonic() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = used.ru_utime + used.ru_stime
        found = json.loads(done.stdout)
        written = len(path.read_text(encoding="utf-8").splitlines())
    assert len(found["suggested"]) == groups and not found["failures"]
    assert written == 1 + groups * (ROWS + 1)
    rows = [
        ["groups, with a decision each", str(len(found["suggested"]))],
        ["groups that failed", str(len(found["failures"]))],
        ["CPU seconds, all processes", f"{cpu:.0f}"],
        ["CPU seconds for a group", f"{cpu / groups:.2f}"],
        ["minutes on two idle cores, by the CPU seconds", f"{cpu / 120:.1f}"],
        ["minutes by the clock, on this machine", f"{wall / 60:.1f}"],
    ]
    shown = " ".join(words)
    return Report(
        "Many problems in one file",
        [
            f"`python -m benchmarks.speed.groups --groups {groups} --workers "
            f"{workers}{' ' if further else ''}{' '.join(further)}`",
            f"`botorch-drbo suggest sales.csv {shown}`, {ROWS} rows in each group, two "
            "decisions and one context; recipe and surrogate are the defaults of the "
            "command unless named here.",
            Table(["what", "number"], rows, left=1),
            f"{machine()}; load of the machine at the end {load():.1f} per core, other "
            "programs included: compare CPU seconds, not minutes by the clock.",
        ],
    )


def main() -> None:
    """Run and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--surrogate")
    parser.add_argument("--algorithm")
    parser.add_argument("--out", type=Path, default=RESULTS / "groups.md")
    given = parser.parse_args()
    further: list[str] = []
    for name in ("surrogate", "algorithm"):
        if (value := getattr(given, name)) is not None:
            further += [f"--{name}", value]
    report = run(given.groups, given.workers, further)
    report.write(given.out)


if __name__ == "__main__":
    main()
