"""Which commit, of which size and under which load each committed result was made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.run.report import Table
from benchmarks.run.tables import RUNS, load_tables


def commits_table(results: Path) -> Table:
    """One row for each committed benchmark.

    Args:
        results: The folder of all results.
    """
    rows = []
    for path in sorted(results.rglob(RUNS)):
        runs, about = load_tables(path.parent)
        rows.append(_row(path.parent.relative_to(results), runs, about))
    head = ["results", "seeds", "rounds", "commit", "version", "load a core, up to"]
    return Table(head, rows)


def _row(folder: Path, runs: Any, about: dict[str, Any]) -> list[str]:
    played = runs.groupby("problem")["rounds"].max()
    few, many = played.min(), played.max()
    text = f"{few}" if few == many else f"{few} to {many}"
    versions = sorted({each["botorch_drbo"] for each in about["versions"]})
    commits = ", ".join(f"`{each}`" for each in about["commit"])
    busy = f"{about['load']:.1f}" if "load" in about else "not kept"
    seeds = str(runs["seed"].nunique())
    return [f"`{folder}`", seeds, text, commits, ", ".join(versions), busy]
