"""The committed table of runs: a row for each, with lists over its outcomes."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from pyarrow import parquet

from benchmarks.development.cases import CASES, half_of
from benchmarks.development.learn import CHECKPOINTS, PREDICTED, RECOMMENDED, Task
from benchmarks.development.surrogates import CANDIDATES
from benchmarks.development.truth import truth_of
from benchmarks.experiments.small_tables import COMMITS, write_study
from benchmarks.run.storage import AND, Row, refuse_without
from benchmarks.study.cases import INITIAL
from botorch_drbo.problem import History

TABLE = "runs.parquet"
_NUMBERS, _POINTS = pa.list_(pa.float64()), pa.list_(pa.list_(pa.float64()))
SCHEMA = pa.schema(  # what each column is: see ``run_of``
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


def run_of(task: Task, rows: Sequence[Row]) -> Row:
    """A run as the table has it.

    Args:
        task: Which.
        rows: Of ``Task.play``, perhaps with the ``commit`` that made each.

    Returns:
        What the task says, ``half``, ``commits``; with an entry for each outcome ``x``,
        ``c``, ``y``, ``expected``, ``seconds`` (of the processor, for the ask), and of
        the prediction ``mean``, ``variance`` and ``log_density``, None for the random
        decisions; with an entry for each checkpoint ``told`` (how many outcomes),
        ``recommended``, ``value``, ``worst``; the scales ``best``, ``guess``,
        ``worst_best``, ``worst_guess``, and ``deviation``.
    """
    truth = truth_of(task.case, task.seed)
    worst = truth.worst_scale if task.method == "wdrbo_exact" else None
    asked = [row if row["iteration"] >= INITIAL else {} for row in rows]
    told = [row for row in rows if row["iteration"] + 1 in CHECKPOINTS]
    commits = {part for row in rows for part in row.get("commit", "").split(AND)}
    return {
        "case": task.case,
        "half": half_of(task.case),
        "method": task.method,
        "surrogate": task.surrogate,
        "seed": task.seed,
        "rounds": task.rounds,
        "commits": sorted(commits - {""}),
        "best": truth.scale.best,
        "guess": truth.scale.guess,
        "worst_best": None if worst is None else worst.best,
        "worst_guess": None if worst is None else worst.guess,
        "deviation": truth.deviation,
        **{name: [row[name] for row in rows] for name in ("x", "c", "y", "expected")},
        **{name: [row.get(name) for row in asked] for name in ("seconds", *PREDICTED)},
        "told": [row["iteration"] + 1 for row in told],
        **{name: [row[name] for row in told] for name in RECOMMENDED},
    }


def task_of(row: Row) -> Task:
    """Which run a row of the table is."""
    names = ("case", "method", "surrogate", "seed", "rounds")
    return Task(*(row[name] for name in names))


def history_of(row: Row, told: int) -> History:
    """What was told at first in a run.

    Args:
        row: The run.
        told: How many outcomes.
    """
    X, C, Y = (
        torch.tensor(row[name][:told], dtype=torch.double) for name in ("x", "c", "y")
    )
    return History(X=X, C=C, Y=Y.unsqueeze(-1), contexts=C)


def judge(
    case: str, seed: int, runs: Mapping[str, pd.DataFrame]
) -> dict[str, list[Row]]:
    """The runs of a block."""
    found = []
    for name, run in runs.items():
        method, surrogate = name.split(", ")
        rows = [_plain(row) for row in run.to_dict("records")]
        found.append(run_of(Task(case, method, surrogate, seed, len(rows)), rows))
    return {"runs": found}


class Table:
    """The runs that are known, the longest of each.

    Args:
        out: The folder of the table.

    Raises:
        ConfigError: The table is not there, while what was made of it is.
    """

    def __init__(self, out: Path) -> None:
        self._path = out / TABLE
        self._rows: dict[Task, Row] = {}
        refuse_without(self._path, out / COMMITS)
        if self._path.exists():
            self.add(parquet.read_table(self._path).to_pylist())

    def add(self, rows: Sequence[Row]) -> None:
        """Enter runs; a shorter one than is known changes nothing."""
        for row in rows:
            name = replace(task_of(row), rounds=0)
            if row["rounds"] > self.rounds(name):
                self._rows[name] = row

    def rounds(self, task: Task) -> int:
        """How many outcomes of a run are known."""
        known = self._rows.get(replace(task, rounds=0))
        return 0 if known is None else known["rounds"]

    def rows(self) -> list[Row]:
        """The runs, in the order of methods, surrogates, cases and seeds."""
        cases, surrogates = list(CASES), list(CANDIDATES)
        order = sorted(
            self._rows,
            key=lambda task: (
                task.method,
                surrogates.index(task.surrogate),
                cases.index(task.case),
                task.seed,
            ),
        )
        return [self._rows[task] for task in order]

    def write(self) -> None:
        """Write the table, whole or not at all."""
        half = self._path.with_suffix(f".{os.getpid()}")
        table = pa.Table.from_pylist(self.rows(), schema=SCHEMA)
        parquet.write_table(table, half, compression="zstd")
        half.replace(self._path)
        write_study(self._path.parent)


def _plain(row: Mapping[Any, Any]) -> Row:
    """A row of pandas in JSON's types."""
    found = {}
    for name, value in row.items():
        if isinstance(value, np.ndarray):
            value = value.tolist()
        missing = isinstance(value, float) and math.isnan(value)
        found[str(name)] = None if missing else value
    return found
