"""Storage of runs: a file for each while they are made, one table at the end.

A run that has as many outcomes as are asked for is not made again, whether it is in the
folder of this machine or in the committed table; a shorter one is gone on with. Several
commands may run side by side.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from benchmarks.development.cases import CASES
from benchmarks.development.learn import Row, Task
from benchmarks.development.surrogates import CANDIDATES
from benchmarks.experiments.small_tables import COMMITS, write_study
from benchmarks.run.storage import refuse_without

TABLE = "runs.parquet"
_NUMBERS, _POINTS = pa.list_(pa.float64()), pa.list_(pa.list_(pa.float64()))
SCHEMA = pa.schema(  # what each column is: see ``learn``
    {
        "case": pa.string(),
        "half": pa.string(),
        "method": pa.string(),
        "surrogate": pa.string(),
        "seed": pa.int32(),
        "rounds": pa.int32(),
        "commits": pa.list_(pa.string()),
        **dict.fromkeys(("best", "guess", "worst_best", "worst_guess"), pa.float64()),
        "deviation": pa.float64(),
        **dict.fromkeys(("x", "c"), _POINTS),
        **dict.fromkeys(("y", "expected", "seconds"), _NUMBERS),
        **dict.fromkeys(("mean", "variance", "log_density"), _NUMBERS),
        "told": pa.list_(pa.int32()),
        "recommended": _POINTS,
        **dict.fromkeys(("value", "worst"), _NUMBERS),
    }
)


def task_of(row: Row) -> Task:
    """Which run a row is."""
    return Task(row["case"], row["method"], row["surrogate"], int(row["seed"]))


def keep(row: Row, work: Path) -> None:
    """Write a run, whole or not at all."""
    path = _file(task_of(row), work)
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(f".{os.getpid()}")
    half.write_text(json.dumps(row, allow_nan=False), encoding="utf-8")
    half.replace(path)


class Runs:
    """All runs that are known.

    Args:
        work: The folder of this machine, with a file for each run.
        out: The folder of the table.

    Raises:
        ConfigError: The table is not there, while what was made of it is.
    """

    def __init__(self, work: Path, out: Path) -> None:
        self._work, self._table = work, out / TABLE
        self._committed: dict[Task, Row] = {}
        refuse_without(self._table, out / COMMITS)
        if self._table.exists():
            self._committed = {
                task_of(row): row for row in parquet.read_table(self._table).to_pylist()
            }

    def find(self, task: Task) -> Row | None:
        """The longest run of that name; None if there is none."""
        found = self._committed.get(task)
        path = _file(task, self._work)
        if path.exists():
            row = json.loads(path.read_text(encoding="utf-8"))
            if found is None or row["rounds"] > found["rounds"]:
                return row
        return found

    def collect(self) -> list[Row]:
        """Write all runs into the table, in the order of cases, methods and seeds.

        Returns:
            The runs.
        """
        paths = self._work.glob("runs/*/*/*/seed_*.json")
        named = (
            Task(case, method, surrogate, int(path.stem.removeprefix("seed_")))
            for path in paths
            for case, method, surrogate in [path.parts[-4:-1]]
        )
        tasks = sorted({*self._committed, *named}, key=_place)
        rows = [row for task in tasks if (row := self.find(task)) is not None]
        if rows:
            self._table.parent.mkdir(parents=True, exist_ok=True)
            half = self._table.with_suffix(f".{os.getpid()}")
            table = pa.Table.from_pylist(rows, schema=SCHEMA)
            parquet.write_table(table, half, compression="zstd")
            half.replace(self._table)
            write_study(self._table.parent)
        return rows


def _file(task: Task, work: Path) -> Path:
    return work / "runs" / f"{task}.json"


def _place(task: Task) -> tuple[str, int, int, int]:
    cases, surrogates = list(CASES), list(CANDIDATES)
    return (
        task.method,
        surrogates.index(task.surrogate),
        cases.index(task.case),
        task.seed,
    )
