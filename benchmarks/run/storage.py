"""Storage of runs: a Parquet file for each, and one for all of them.

``OUT/runs/PROBLEM/ALGORITHM/seed_0003.parquet`` has a row for each round; what made it
is in the metadata of its schema. A file is there whole or not at all: it is written
under another name, waited for until it is on the disk, and renamed.
``OUT/results.parquet`` has the rows of all runs, for reports; beside it are the small
tables of the repository (``tables``).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from benchmarks.run.config import BenchmarkConfig, ConfigError
from benchmarks.run.tables import RUNS, load_tables, write_tables

FORMAT = 4
RESULTS = "results.parquet"
BRING = (
    "Those of the repository are in its history: `python -m benchmarks results` puts "
    "them in their places."
)
AND = "; "  # between the commits of one run, and between its machines
_KEY = b"botorch_drbo"
# Of the columns that may be empty in a run, or that many experiments have; the type of
# any other is that of its values.
COLUMNS = {
    "iteration": pa.int32(),  # from 0
    "x": pa.list_(pa.float64()),  # the decision
    "c": pa.list_(pa.float64()),  # the context that followed
    "y": pa.float64(),  # the noisy outcome
    "position": pa.int32(),  # of the decision in a list
    "expected": pa.float64(),  # the true expected value at x
    "regret": pa.float64(),  # the optimum minus that
    "seconds": pa.float64(),  # of `ask`, and of these:
    "fit_seconds": pa.float64(),
    "inner_seconds": pa.float64(),
    "warnings": pa.list_(pa.string()),  # the different first lines
    "recommended": pa.list_(pa.float64()),  # after this round, where that was asked
    "recommended_regret": pa.float64(),
}
Row = dict[str, Any]


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
    """A run, finished or up to a round.

    Args:
        rows: A row for each round, all with the same columns.
        header: What makes it this run: a run with another header is another one.
        made: By which commit, on which machine, and how busy that was.
    """

    rows: list[Row]
    header: Mapping[str, Any]
    made: Mapping[str, Any]


def run_file(out: Path, key: RunKey) -> Path:
    """Where a run of a benchmark with results folder ``out`` lives."""
    problem, algorithm = (re.sub(r"[^\w.+-]+", "_", name) for name in key[:2])
    return out / "runs" / problem / algorithm / f"seed_{key.seed:04d}.parquet"


def save(run: Run, path: Path) -> None:
    """Keep a run.

    Raises:
        OSError: The disk is full, say. What was at ``path`` is as it was.
    """
    found = pa.Table.from_pylist(run.rows).schema
    schema = pa.schema({f.name: COLUMNS.get(f.name, f.type) for f in found})
    table = pa.Table.from_pylist(run.rows, schema=schema)
    _write(table, {"header": run.header, "made": run.made}, path)


def header_name(key: RunKey) -> str:
    """Under which name results keep what made the runs of all seeds."""
    return f"{key.problem}, {key.algorithm}"


def with_earlier(made: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """What makes the rest of a run, with what made the rows that are stored."""
    if not path.exists():
        return dict(made)
    earlier = _metadata(path)["made"]
    return {
        "load": max(made["load"], earlier["load"]),
        **{
            name: AND.join(_parts([earlier[name], made[name]]))
            for name in ("commit", "machine")
        },
    }


def stored_rows(path: Path, header: Mapping[str, Any]) -> list[Row]:
    """The rows of a run that are on the disk.

    Args:
        path: Its file; without it there are none.
        header: What is asked for.

    Raises:
        ConfigError: It is the file of another run, or of this one by another version.
    """
    if not path.exists():
        return []
    different = differences(_metadata(path).get("header", {}), _plain(header))
    if different:
        raise ConfigError(
            f"{path} is another run:\n  " + "\n  ".join(different) + "\n"
            "Choose another --out, or delete the folder `runs` in it to run afresh."
        )
    return _read(path, lambda: parquet.read_table(path)).to_pylist()


def rounds_kept(out: Path, key: RunKey) -> int:
    """How many rows of a run are on the disk."""
    path = run_file(out, key)
    if not path.exists():
        return 0
    return _read(path, lambda: parquet.read_metadata(path)).num_rows


def refuse_others(keys: Iterable[RunKey], out: Path) -> None:
    """See to it that a results folder holds no run but of these problems and methods.

    Raises:
        ConfigError: It does: it is of another config.
    """
    named = {run_file(out, key).parent for key in keys}
    for path in sorted((out / "runs").glob("*/*/seed_*.parquet")):
        if path.parent not in named:
            raise ConfigError(
                f"{out} holds runs of {path.parts[-2]} on {path.parts[-3]}, which this "
                "config does not name: it is of another config. Choose another --out, "
                f"or delete {path.parent}."
            )


def refuse_to_lose(out: Path) -> None:
    """See to it that the runs of a folder have all rounds that were collected from it.

    Args:
        out: A results folder, before runs are added to it and collected anew.

    Raises:
        ConfigError: The results have more: they would be written without them.
    """
    if (out / RUNS).exists():  # also where the rows are not
        table = load_tables(out)[0][[*RunKey._fields, "rounds"]]
        collected = {RunKey(*key): n for *key, n in table.itertuples(index=False)}
    elif (out / RESULTS).exists():
        collected = {key: len(run) for key, run in runs_of(load(out)[0]).items()}
    else:
        return
    lost = [key for key, n in collected.items() if rounds_kept(out, key) < n]
    if lost:
        raise ConfigError(
            f"{out / RESULTS} has rounds of {len(lost)} runs that are not in "
            f"{out / 'runs'} ({lost[0]} first), and would be written without them. "
            f"To go on with them: `python -m benchmarks unpack {out}`, where there is "
            f"no folder `runs`. Else choose another --out, or delete {RESULTS} there."
        )


def refuse_without(raw: Path, made: Path) -> None:
    """See to it that raw results are there if what was made of them is.

    Raises:
        ConfigError: They are not.
    """
    if made.exists() and not raw.exists():
        raise ConfigError(
            f"{made} was made of {raw}, which is not there. {BRING} Or choose another "
            "--out."
        )


def refuse_other_commits(out: Path, commit: str) -> None:
    """See to it that all runs of a results folder are of one commit.

    Args:
        out: The folder.
        commit: That of the code that is about to add to it; empty if nobody knows.

    Raises:
        ConfigError: A run there was made by another one.
    """
    for path in sorted((out / "runs").glob("*/*/seed_*.parquet")):
        found = _metadata(path)["made"]["commit"]
        if found and commit and found != commit:
            raise ConfigError(
                f"{path} was made by commit {found}, and this is {commit} (a + says "
                "that files have changed): the results would be of both. Choose "
                f"another --out, check out {found.rstrip('+')}, or say --any-commit."
            )


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
    """Write the rows of all finished runs of a benchmark into one file.

    Returns:
        The file, ``OUT/results.parquet``.

    Raises:
        ConfigError: No run has finished.
    """
    rounds = {
        RunKey(problem.label, algorithm.label, seed): config.iterations
        for problem in config.problems
        for algorithm in config.algorithms
        for seed in config.seeds
    }
    return collect_runs(rounds, out, {"config": asdict(config)})


def collect_runs(
    rounds: Mapping[RunKey, int], out: Path, about: Mapping[str, Any]
) -> Path:
    """Write the rows of all finished runs into one file.

    Args:
        rounds: The runs, and how many rounds each is to have; of a longer one these
            are the first.
        out: A results folder.
        about: What is kept with the rows.

    Returns:
        The file, ``OUT/results.parquet``; its small tables are beside it.

    Raises:
        ConfigError: No run has finished.
    """
    tables, made = [], []
    headers: dict[str, Any] = {}
    for key, number in rounds.items():
        path = run_file(out, key)
        if not path.exists() or len(table := parquet.read_table(path)) < number:
            continue
        table = table.slice(0, number)
        made.append(_metadata(path))
        header = made[-1]["header"]
        headers[header_name(key)] = {k: v for k, v in header.items() if k != "seed"}
        for place, value in enumerate(key):
            column = pa.array([value] * len(table))
            table = table.add_column(place, RunKey._fields[place], column)
        by = pa.array([made[-1]["made"]["commit"]] * len(table))
        table = table.append_column("commit", by)
        tables.append(table.replace_schema_metadata(None))
    if not tables:
        raise ConfigError(f"No run under {out} has finished: there is nothing to read.")
    # Said once if it is the same of all, as it should be.
    provenance = {
        "versions": _only(each["header"]["versions"] for each in made),
        **{n: _parts(each["made"][n] for each in made) for n in ("commit", "machine")},
        "load": max(each["made"]["load"] for each in made),
        "headers": headers,
    }
    path = out / RESULTS
    whole, about = (
        pa.concat_tables(tables, promote_options="default"),
        {**about, **provenance},
    )
    _write(whole, about, path)
    write_tables(whole.to_pandas(), about, out)
    return path


def load(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The rows of a benchmark, and what made them.

    Args:
        path: A results folder, or its ``results.parquet``.

    Returns:
        ``problem``, ``algorithm``, ``seed``, the columns of the runs and by which
        ``commit`` each was made; and the versions, commits and machines, the highest
        load of these, and the config of a benchmark that has one.

    Raises:
        ConfigError: There are no results.
    """
    file = path / RESULTS if path.is_dir() else path
    if not file.exists():
        raise ConfigError(
            f"There are no results at {path}: give a folder with {RESULTS}, as "
            f"`python -m benchmarks run` leaves it. {BRING}"
        )
    return _read(file, lambda: pd.read_parquet(file)), _metadata(file)


def collected_runs(out: Path) -> tuple[dict[RunKey, list[Row]], dict[str, Any]]:
    """The rows of each run that ``collect`` took together, and what made them.

    Args:
        out: A results folder.

    Raises:
        ConfigError: There are no results.
    """
    _, about = load(out)
    runs: dict[RunKey, list[Row]] = {}
    for row in parquet.read_table(out / RESULTS).to_pylist():
        key = RunKey(*(row.pop(name) for name in RunKey._fields))
        runs.setdefault(key, []).append(row)
    return runs, about


def runs_of(rows: pd.DataFrame) -> dict[RunKey, pd.DataFrame]:
    """The rows of each run."""
    groups: Any = rows.groupby(list(RunKey._fields), sort=False)
    return {
        RunKey(problem, algorithm, int(seed)): run
        for (problem, algorithm, seed), run in groups
    }


def _only(values: Any) -> list[Any]:
    """The different values, in their order."""
    return [json.loads(value) for value in dict.fromkeys(map(_dumps, values))]


def _parts(values: Iterable[str]) -> list[str]:
    """The different ones; a run that was continued names several."""
    return list(dict.fromkeys(part for v in values for part in v.split(AND)))


def _dumps(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _plain(value: Any) -> Any:
    """As it comes back from JSON."""
    return json.loads(json.dumps(value))


def _metadata(path: Path) -> dict[str, Any]:
    """What stands in a file about its rows.

    Raises:
        ConfigError: It is damaged, or not one of ours.
    """
    schema = _read(path, lambda: parquet.read_schema(path))
    try:
        about = json.loads((schema.metadata or {})[_KEY])
    except (KeyError, ValueError) as error:
        raise _damaged(path, "it does not say what made it") from error
    if not isinstance(about, dict):
        raise _damaged(path, "it does not say what made it")
    return about


_Read = TypeVar("_Read")


def _read(path: Path, read: Callable[[], _Read]) -> _Read:
    try:
        return read()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(path, str(error)) from error


def _damaged(path: Path, why: str) -> ConfigError:
    cure = "Restore it from a copy" if path.name == RESULTS else "Delete it"
    return ConfigError(
        f"{path} is damaged, or no file of results: {why}. {cure} to go on."
    )


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
