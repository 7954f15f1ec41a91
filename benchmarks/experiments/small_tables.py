"""Small tables of raw results, which the repository keeps in their place.

Of a benchmark they are those of ``run.tables``; here are those of the studies, and what
``python -m benchmarks summaries`` writes anew from all raw files that are there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.experiments.bounds import wdrbo
from benchmarks.experiments.claims.learn import COMMON
from benchmarks.experiments.claims.picks import OWN, own
from benchmarks.run.config import ConfigError
from benchmarks.run.storage import BRING, RESULTS, load
from benchmarks.run.tables import write_tables

COMMITS = "commits.json"
_RUN = ["case", "seed", "learner"]
_LAWS = ["settled", "shifted", "rare"]


def write_small_tables(results: Path) -> list[Path]:
    """Write the small tables of all raw files that are there.

    Args:
        results: The folder of all results.

    Returns:
        The folders, in order.

    Raises:
        ConfigError: There are none.
    """
    folders = sorted({path.parent for path in results.rglob(f"*/{RESULTS}")})
    for folder in folders:
        rows, about = load(folder)
        write_tables(rows, about, folder)
        if folder.name == "bounds":
            (folder / wdrbo.THEOREMS).write_text(wdrbo.theorems(rows))
    for name in ("tournament", "development"):
        if any((results / name).glob("*.parquet")):
            write_study(results / name)
            folders.append(results / name)
    if not folders:
        raise ConfigError(f"There are no raw files in {results}. {BRING}")
    return folders


def write_study(folder: Path) -> None:
    """Write the small tables of a study.

    Args:
        folder: With its raw tables, some of ``losses``, ``steps``, ``claims`` and
            ``claims_repeated`` (the tournament) or ``runs`` and ``promises`` (the
            development set).
    """
    raw = {path.stem: path for path in sorted(folder.glob("*.parquet"))}
    raw.pop(Path(RESULTS).stem, None)  # of the runs of this machine
    tables = {name: pd.read_parquet(path) for name, path in raw.items()}
    known = folder / COMMITS
    commits = json.loads(known.read_text(encoding="utf-8")) if known.exists() else {}
    commits |= {name: commits_of(table) for name, table in tables.items()}
    known.write_text(f"{json.dumps(commits, indent=1)}\n", encoding="utf-8")
    for name, small in _MAKERS.items():
        if name in tables:
            for part, table in small(tables).items():
                _write(table, folder / f"{part}.csv")


def commits_of(table: Any) -> list[str]:
    """By which commits a raw table was made: its own metadata, or a column."""
    # a run that was continued names several
    column = "commits" if "commits" in table else "commit"
    made = table.attrs.get("commit") or table[column].explode().unique()
    return sorted({commit.rstrip("+") for commit in made})


def _of_losses(tables: dict[str, Any]) -> dict[str, Any]:
    """Mean losses over the seeds."""
    of = ["method", "contexts", "deployment", "case"]
    losses = tables["losses"].groupby(of, sort=False)["loss"]
    return {"losses": losses.agg(["mean", "size"])}


def _of_steps(tables: dict[str, Any]) -> dict[str, Any]:
    """Regret of each run."""
    runs = tables["steps"].groupby(["case", "seed", "method"], sort=False)
    return {"regrets": runs["regret"].sum()}


def _of_claims(tables: dict[str, Any]) -> dict[str, Any]:
    """Losses of each method's own surrogate and rule; models on random decisions."""
    table = tables["claims"]
    of = [*_RUN, "told", "surrogate", "rule"]
    told = sorted(table["told"].unique())
    picked = [own(name, n).of(table).reset_index() for name in OWN for n in told]
    losses = pd.concat(picked).set_index(of)[_LAWS]
    random: Any = table[(table["learner"] == COMMON) & (table["rule"] == "expected")]
    beyond = random.set_index(["case", "seed", "told", "surrogate"])
    return {
        "claims": losses,
        "beyond": beyond[["beyond_settled", "beyond_shifted"]],
    }


def _of_repeated(tables: dict[str, Any]) -> dict[str, Any]:
    """The largest move of a loss in each block of runs that were made again."""
    of = [*_RUN, "told", "surrogate", "rule"]
    again, first = (
        tables[n].set_index(of)[_LAWS] for n in ("claims_repeated", "claims")
    )
    moved = (again - first.loc[again.index]).abs().max(axis="columns")
    return {"claims_repeated": moved.groupby(_RUN, sort=False).max().rename("moved")}


def _of_development(tables: dict[str, Any]) -> dict[str, Any]:
    """How many runs there are of each case and seed."""
    worlds = tables["runs"].groupby(["half", "case", "seed"], sort=False)
    return {"worlds": worlds.size().rename("runs")}


_MAKERS = {  # raw table -> its small ones
    "losses": _of_losses,
    "steps": _of_steps,
    "claims": _of_claims,
    "claims_repeated": _of_repeated,
    "runs": _of_development,
}


def _write(table: Any, path: Path) -> None:
    table.to_csv(path, float_format="%.5g", lineterminator="\n")
