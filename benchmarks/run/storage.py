"""Where runs live: a Parquet file for each finished one, and one for all of them.

``OUT/runs/PROBLEM/ALGORITHM/seed_0003.parquet`` has a row for each iteration; what made
it is in the metadata of its schema. A file is there whole or not at all: it is written
under another name, waited for until it is on the disk, and renamed.
``OUT/results.parquet`` has the rows of all runs, for reports and for the repository.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from benchmarks.run.config import BenchmarkConfig, ConfigError

FORMAT = 2
RESULTS = "results.parquet"
_KEY = b"botorch_drbo"
SCHEMA = pa.schema(
    {
        "iteration": pa.int32(),  # from 0; the initial decisions are not counted
        "x": pa.list_(pa.float64()),  # the decision
        "c": pa.list_(pa.float64()),  # the context that followed
        "y": pa.float64(),  # the noisy outcome
        "expected": pa.float64(),  # the true expected value at x
        "regret": pa.float64(),  # the optimum of the expected value minus that
        "seconds": pa.float64(),  # of `ask`, and of these:
        "fit_seconds": pa.float64(),
        "inner_seconds": pa.float64(),
        "warnings": pa.list_(pa.string()),  # the different first lines
    }
)


class RunKey(NamedTuple):
    """One run: labels and a seed."""

    problem: str
    algorithm: str
    seed: int

    def __str__(self) -> str:
        """As a line of progress names it."""
        return f"{self.algorithm} on {self.problem}, seed {self.seed}"


@dataclass(frozen=True)
class Run:
    """A finished run.

    Args:
        rows: Of ``SCHEMA``.
        header: What makes it this run: a run with another header is another one.
        made: By which commit, on which machine, and the decision recommended at last.
    """

    rows: list[dict[str, Any]]
    header: Mapping[str, Any]
    made: Mapping[str, Any]

    @property
    def cumulative(self) -> float:
        """The sum of the regrets."""
        return sum(row["regret"] for row in self.rows)


def run_file(out: Path, key: RunKey) -> Path:
    """Where a run of a benchmark with results folder ``out`` lives."""
    folder = out / "runs" / key.problem / key.algorithm
    return folder / f"seed_{key.seed:04d}.parquet"


def save(run: Run, path: Path) -> None:
    """Keep a finished run.

    Raises:
        OSError: The disk is full, say. What was at ``path`` is as it was.
    """
    table = pa.Table.from_pylist(run.rows, schema=SCHEMA)
    _write(table, {"header": run.header, "made": run.made}, path)


def missing(headers: Mapping[RunKey, Mapping[str, Any]], out: Path) -> list[RunKey]:
    """The runs that are not on the disk.

    Args:
        headers: What is asked for.
        out: A results folder.

    Raises:
        ConfigError: The folder holds another benchmark, or this one made by another
            version.
    """
    labels = {key[:2] for key in headers}
    for path in sorted((out / "runs").glob("*/*/seed_*.parquet")):
        found = (path.parts[-3], path.parts[-2])
        if found not in labels:
            raise ConfigError(
                f"{out} holds runs of {found[1]} on {found[0]}, which this config does "
                f"not name: it is of another config. Choose another --out, or delete "
                f"{path.parent}."
            )
    lacking = []
    for key, header in headers.items():
        path = run_file(out, key)
        if not path.exists():
            lacking.append(key)
            continue
        different = differences(_metadata(path)["header"], _plain(header))
        if different:
            raise ConfigError(
                f"{path} is another run ({key}):\n  " + "\n  ".join(different) + "\n"
                f"Choose another --out, or delete {out / 'runs'} to run afresh."
            )
    return lacking


def differences(stored: Any, asked: Any, name: str = "") -> list[str]:
    """What differs between two values of JSON, a line for each."""
    if isinstance(stored, dict) and isinstance(asked, dict):
        return [
            line
            for key in sorted(stored | asked)
            for line in differences(
                stored.get(key), asked.get(key), f"{name}.{key}" if name else key
            )
        ]
    if stored == asked:
        return []
    return [f"{name}: there it is {stored!r}, asked is {asked!r}"]


def collect(config: BenchmarkConfig, out: Path) -> Path:
    """Write the rows of all finished runs into one file.

    Returns:
        The file, ``OUT/results.parquet``.

    Raises:
        ConfigError: No run has finished.
    """
    tables, made = [], []
    for problem in config.problems:
        for algorithm in config.algorithms:
            for seed in config.seeds:
                key = RunKey(problem.label, algorithm.label, seed)
                path = run_file(out, key)
                if not path.exists():
                    continue
                table = parquet.read_table(path)
                for place, value in enumerate(key):
                    column = pa.array([value] * len(table))
                    table = table.add_column(place, RunKey._fields[place], column)
                tables.append(table.replace_schema_metadata(None))
                made.append({**_metadata(path), "key": key._asdict()})
    if not tables:
        raise ConfigError(f"No run under {out} has finished: there is nothing to read.")
    # Said once if it is the same of all, as it should be.
    about = {
        "config": asdict(config),
        "versions": _only(each["header"]["versions"] for each in made),
        "commit": _only(each["made"]["commit"] for each in made),
        "machine": _only(each["made"]["machine"] for each in made),
        "recommended": [each["key"] | each["made"]["recommended"] for each in made],
    }
    path = out / RESULTS
    _write(pa.concat_tables(tables), about, path)
    return path


def load(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The rows of a benchmark, and what made them.

    Args:
        path: A results folder, or its ``results.parquet``.

    Returns:
        ``problem``, ``algorithm``, ``seed`` and the columns of ``SCHEMA``; and the
        config, versions, commits, machines and recommended decisions.

    Raises:
        ConfigError: There are no results.
    """
    file = path / RESULTS if path.is_dir() else path
    if not file.exists():
        raise ConfigError(
            f"There are no results at {path}: give a folder with {RESULTS}, as "
            "`python -m benchmarks run` leaves it."
        )
    return pd.read_parquet(file), _metadata(file)


def _only(values: Any) -> list[Any]:
    """The different values, in their order."""
    return [json.loads(value) for value in dict.fromkeys(map(_dumps, values))]


def _dumps(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _plain(value: Any) -> Any:
    """As it comes back from JSON."""
    return json.loads(json.dumps(value))


def _metadata(path: Path) -> dict[str, Any]:
    return json.loads(parquet.read_schema(path).metadata[_KEY])


def _write(table: pa.Table, about: Mapping[str, Any], path: Path) -> None:
    table = table.replace_schema_metadata({_KEY: json.dumps(about).encode()})
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".unfinished")
    try:
        with unfinished.open("wb") as file:
            parquet.write_table(table, file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
