"""Which commit, of which size and under which load each committed result was made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.run.report import Table
from benchmarks.run.storage import load


def commits_table(results: Path) -> Table:
    """One row for each committed table of rounds.

    Args:
        results: The folder of all results.
    """
    rows = []
    for path in sorted(results.rglob("results.parquet")):
        rounds, about = load(path)
        rows.append(_row(path.parent.relative_to(results), rounds, about))
    head = ["results", "seeds", "rounds", "commit", "version", "load a core, up to"]
    return Table(head, rows)


def _row(folder: Path, rounds: pd.DataFrame, about: dict[str, Any]) -> list[str]:
    iterations: Any = rounds.groupby("problem")["iteration"]
    played = iterations.max() + 1
    few, many = played.min(), played.max()
    text = f"{few}" if few == many else f"{few} to {many}"
    versions = sorted({each["botorch_drbo"] for each in about["versions"]})
    commits = ", ".join(f"`{each}`" for each in about["commit"])
    busy = f"{about['load']:.1f}" if "load" in about else "not kept"
    seeds = str(rounds["seed"].nunique())
    return [f"`{folder}`", seeds, text, commits, ", ".join(versions), busy]
