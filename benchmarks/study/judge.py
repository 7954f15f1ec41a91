"""From runs to tables, block by block: a case under a seed, and who played it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from benchmarks.run.engine import one_thread
from benchmarks.run.parallel import in_parallel
from benchmarks.run.storage import Row, runs_of

Tables = Mapping[str, list[Row]]
Judge = Callable[[str, int, Mapping[str, pd.DataFrame]], Tables]
"""Case, seed, and the rows of each method -> rows of each table."""
Block = TypeVar("Block", bound=tuple[str | int, ...])


def judged(rows: pd.DataFrame, judge: Judge, workers: int) -> dict[str, list[Row]]:
    """The tables of all blocks, in the order of the rows.

    Args:
        rows: Of ``results.parquet``.
        judge: Of one block; picklable.
        workers: Processes.
    """
    blocks: dict[tuple[str, int], dict[str, pd.DataFrame]] = {}
    for key, run in runs_of(rows).items():
        blocks.setdefault((key.problem, key.seed), {})[key.algorithm] = run
    work = {block: partial(_one, judge, *block, runs) for block, runs in blocks.items()}
    found = dict(in_parallel(work, workers=workers))
    tables: dict[str, list[Row]] = {}
    for block in work:
        outcome = found[block]
        if isinstance(outcome, BaseException):
            raise outcome
        for name, part in outcome.items():
            tables.setdefault(name, []).extend(part)
    return tables


def _one(
    judge: Judge, case: str, seed: int, runs: Mapping[str, pd.DataFrame]
) -> Tables:
    with one_thread():
        return judge(case, seed, runs)


def with_the_others(
    table: pd.DataFrame, before: pd.DataFrame, run: Sequence[str], order: Sequence[str]
) -> pd.DataFrame:
    """The rows of these runs, and others that were there before.

    Args:
        table: As it is judged now.
        before: The same of an earlier call, perhaps of other cases or methods.
        run: The columns that say which run a row is of.
        order: The names in these columns, as they are to be sorted.

    Returns:
        By ``run``; its ``attrs`` have each entry of both once.
    """
    names = list(run)
    made = table.set_index(names).index
    others: Any = before[~before.set_index(names).index.isin(made)]
    found: Any = pd.concat([others, table])
    places = {name: place for place, name in enumerate(order)}
    found = found.sort_values(
        names, key=lambda column: column.replace(places), kind="stable"
    )
    earlier = before.attrs if len(others) else {}
    found.attrs = {
        name: [*(old := earlier.get(name, [])), *(e for e in new if e not in old)]
        for name, new in table.attrs.items()
    }
    return found.reset_index(drop=True)


def place(work: Path, part: str, case: str, seed: int) -> Path:
    """Where a block is kept."""
    return work / part / f"{case}_{seed}.json"


def collected(work: Path, part: str = "*") -> list[dict[str, Any]]:
    """The rows of all blocks, perhaps of one part only."""
    rows: list[dict[str, Any]] = []
    for path in sorted(work.glob(f"{part}/*.json")):
        rows += json.loads(path.read_text(encoding="utf-8"))
    return rows


def num_failed(todo: Mapping[Block, Callable[[], object]], workers: int) -> int:
    """Play blocks, say what has become of each, and count those that failed."""
    failed = 0
    for key, outcome in in_parallel(todo, workers=workers):
        failed += isinstance(outcome, BaseException)
        print(*key, outcome or "", flush=True)
    return failed


def keep(found: object, path: Path) -> None:
    """Write a piece of work as JSON, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(f".{os.getpid()}")
    half.write_text(json.dumps(found), encoding="utf-8")
    half.replace(path)
