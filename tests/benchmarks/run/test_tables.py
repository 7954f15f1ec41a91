"""The small tables of a benchmark, by hand."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from benchmarks.run.config import ConfigError
from benchmarks.run.storage import RESULTS, refuse_to_lose, refuse_without
from benchmarks.run.tables import (
    RUNS,
    load_tables,
    mean_regret,
    mean_value,
    write_tables,
)


def rows_of(seed: int, rounds: int) -> pd.DataFrame:
    """Regrets 1, 2, 3, ... of an optimum of 500, and a recommendation at the end."""
    regret = [float(i + 1) for i in range(rounds)]
    return pd.DataFrame(
        {
            "problem": "bowl",
            "algorithm": "a, b",
            "seed": seed,
            "iteration": range(rounds),
            "x": [[i / 100] for i in range(rounds)],
            "y": 2.0,
            "expected": [500 - each for each in regret],
            "regret": regret,
            "seconds": [1.0] * (rounds - 1) + [9.0],
            "fit_seconds": 0.25,
            "recommended": [*[None] * (rounds - 1), [0.5]],
            "recommended_regret": [*[None] * (rounds - 1), 0.75],
        }
    )


@pytest.fixture
def out(tmp_path: Path) -> Path:
    rows = pd.concat([rows_of(3, 40), rows_of(4, 25)])
    write_tables(rows, {"commit": ["c"]}, tmp_path)
    return tmp_path


def test_a_line_for_each_run(out: Path):
    runs, about = load_tables(out)
    assert runs["seed"].tolist() == [3, 4] and runs["rounds"].tolist() == [40, 25]
    first = runs.iloc[0]
    assert first["algorithm"] == "a, b"
    assert first["regret"] == 820 and first["least"] == 1  # 40 * 41 / 2
    assert (first["regret_25"], first["regret_30"]) == (325, 465)
    assert "regret_50" not in runs and pd.isna(runs["regret_25"].iloc[1])
    assert first["reward"] == 80 and first["recommended_regret"] == 0.75
    assert (first["seconds"], first["own_seconds"]) == (1.0, 0.75)
    assert first["last"].split() == [f"{i / 100:g}" for i in range(30, 40)]
    assert about["commit"] == ["c"]
    assert about["optima"] == {"bowl": [500, 500]}
    assert about["recommended"] == {"bowl": {"x": [0.5], "regret": 0.75}}


def test_regrets_of_parts_of_the_decisions(out: Path):
    runs, _ = load_tables(out)
    assert mean_regret(runs, 1, 25).tolist() == [13.0, 13.0]  # of 1 to 25
    assert mean_regret(runs, 26, 30).iloc[0] == 28.0
    assert mean_regret(runs, 31, 40).iloc[0] == 35.5
    assert mean_regret(runs, 31, 40).isna().tolist() == [False, True]
    assert mean_value(runs, 1, 25).tolist() == [487.0, 487.0]


def test_columns_that_an_experiment_has_not_are_left_out(tmp_path: Path):
    rows = rows_of(0, 5)[["problem", "algorithm", "seed", "seconds"]]
    write_tables(rows, {}, tmp_path)
    runs, about = load_tables(tmp_path)
    assert [*runs] == ["problem", "algorithm", "seed", "rounds", "seconds"]
    assert about == {}


def test_runs_without_their_rows_are_not_written_over(out: Path):
    """As in a clone, where ``results.parquet`` is in the history alone."""
    with pytest.raises(ConfigError, match=r"rounds of 2 runs.*unpack"):
        refuse_to_lose(out)
    with pytest.raises(ConfigError, match="python -m benchmarks results"):
        refuse_without(out / RESULTS, out / RUNS)
    (out / RESULTS).touch()
    refuse_without(out / RESULTS, out / RUNS)
    refuse_without(out / "b.parquet", out / "none.md")


def test_where_there_are_no_tables(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"no runs\.csv"):
        load_tables(tmp_path)
