"""Small tables of the rows of a benchmark: a line for each run, and what made all.

The repository keeps these. The rows themselves, in ``results.parquet``, are in its
history: ``python -m benchmarks results`` takes them out of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.run.config import ConfigError

RUNS, ABOUT = "runs.csv", "about.json"
KEY = ["problem", "algorithm", "seed"]
# After so many decisions the regret of a longer run is kept, too: the quarters of 100,
# and where the parts end whose mean values EDRBO's authors publish (25 and 95).
CHECKPOINTS = (25, 30, 50, 75, 95)
LAST = 10  # decisions that are kept where they are one number


def write_tables(rows: pd.DataFrame, about: Mapping[str, Any], out: Path) -> None:
    """Write the tables of a benchmark.

    Args:
        rows: All rounds.
        about: What made them.
        out: The results folder.
    """
    runs = rows.groupby(KEY, sort=False)
    pieces = [_summary(run).rename(key) for key, run in runs]
    table = pd.DataFrame(pieces).rename_axis(KEY)
    table["rounds"] = table["rounds"].astype(int)
    table.to_csv(out / RUNS, float_format="%.8g", lineterminator="\n")
    text = json.dumps({**about, **_checks(rows)}, indent=1, sort_keys=True)
    (out / ABOUT).write_text(f"{text}\n", encoding="utf-8")


def load_tables(out: Path) -> tuple[Any, dict[str, Any]]:
    """The runs of a benchmark, and what made them.

    Args:
        out: The results folder.

    Returns:
        ``problem``, ``algorithm``, ``seed``, ``rounds``; and of what it has
        ``regret``, the cumulative one, and after ``CHECKPOINTS`` as ``regret_25``,
        ``least`` of a decision, ``reward``, the sum of the outcomes,
        ``recommended_regret`` at the end, the median ``seconds`` of an ask and those
        without the fit, ``own_seconds``, the ``LAST`` decisions if each is one number,
        and the ``optimum`` of the problem. And what ``storage.load`` says of them.

    Raises:
        ConfigError: There are none.
    """
    if not (out / RUNS).exists():
        raise ConfigError(f"There is no {RUNS} in {out}, as a benchmark leaves it.")
    about = json.loads((out / ABOUT).read_text(encoding="utf-8"))
    table: Any = pd.read_csv(out / RUNS)
    if "optima" in about:
        least = {problem: values[0] for problem, values in about["optima"].items()}
        table["optimum"] = table["problem"].map(least)
    return table, about


def mean_regret(runs: Any, first: int, last: int) -> Any:
    """Of the decisions ``first`` to ``last``, from 1 on, of each run.

    Args:
        runs: Of ``load_tables``.
        first: One behind a checkpoint.
        last: A checkpoint, or the last of all.
    """
    before = 0.0 if first == 1 else runs[f"regret_{first - 1}"]
    after = runs["regret"].where(runs["rounds"] == last)
    if last in CHECKPOINTS:
        after = after.fillna(runs[f"regret_{last}"])
    return (after - before) / (last - first + 1)


def mean_value(runs: Any, first: int, last: int) -> Any:
    """Of the expected values of these decisions; see ``mean_regret``."""
    return runs["optimum"] - mean_regret(runs, first, last)


def _summary(run: Any) -> pd.Series:
    """The line of one run."""
    found: dict[str, object] = {"rounds": len(run)}
    if "regret" in run:
        found["regret"] = run["regret"].sum()
        found["least"] = run["regret"].min()
        total = run["regret"].cumsum().to_numpy()
        for number in CHECKPOINTS:
            if number < len(run):
                found[f"regret_{number}"] = total[number - 1]
    if "y" in run:
        found["reward"] = run["y"].sum()
    if "recommended_regret" in run:
        found["recommended_regret"] = run["recommended_regret"].iloc[-1]
    if "seconds" in run:
        found["seconds"] = f"{run['seconds'].median():.6g}"
    if "fit_seconds" in run:
        own = run["seconds"] - run["fit_seconds"]
        found["own_seconds"] = f"{own.median():.6g}"
    if "x" in run and len(run["x"].iloc[0]) == 1:
        found["last"] = " ".join(f"{x[0]:.6g}" for x in run["x"].iloc[-LAST:])
    return pd.Series(found)


def _checks(rows: Any) -> dict[str, Any]:
    """By problem the least and the largest optimum of a round, which should be one.

    And the first recommendation, with its regret.
    """
    if "expected" not in rows or "regret" not in rows:
        return {}
    optima, recommended = {}, {}
    for problem, own in rows.groupby("problem", sort=False):
        sums = own["regret"] + own["expected"]
        optima[problem] = [sums.min(), sums.max()]
        if not {"recommended", "recommended_regret"} <= {*own}:
            continue
        # A run that was continued has a recommendation at its former end as well.
        last = own[own["iteration"] == own["iteration"].max()]
        if len(asked := last[last["recommended"].notna()]):
            x, regret = asked.iloc[0][["recommended", "recommended_regret"]]
            recommended[problem] = {"x": list(x), "regret": regret}
    return {"optima": optima, "recommended": recommended}
