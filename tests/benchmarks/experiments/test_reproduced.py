"""Whether a committed result's decisions are made again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from benchmarks.commands import RESULTS
from benchmarks.experiments.reproduced import (
    EXPERIMENTS,
    NEAR,
    OTHER,
    SAME,
    TOLERANCE,
    likeness,
    reproduced,
    samples_of,
)
from benchmarks.run import storage
from benchmarks.run.config import (
    AlgorithmConfig,
    BenchmarkConfig,
    ConfigError,
    ProblemConfig,
)
from benchmarks.run.engine import run_tasks
from benchmarks.run.report import Table
from benchmarks.run.runner import tasks_of

CONFIG = BenchmarkConfig(
    name="tiny",
    problems=(ProblemConfig("wdrbo_figure1", options={"noise_std": 0.1}),),
    algorithms=(AlgorithmConfig("random"), AlgorithmConfig("erbo")),
    seeds=(0, 1),
    iterations=3,
    initial=2,
    options={"num_restarts": 1, "raw_samples": 8, "max_iterations": 5},
)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    out = tmp_path / "tiny"
    assert run_tasks(tasks_of(CONFIG, out), out) == {}
    storage.collect(CONFIG, out)
    return tmp_path


def move(file: Path, factor: float) -> None:
    """Multiply the recorded decisions of `erbo`."""
    table = parquet.read_table(file)
    x = [
        [value * (factor if algorithm == "erbo" else 1.0) for value in x]
        for algorithm, x in zip(
            table["algorithm"].to_pylist(), table["x"].to_pylist(), strict=True
        )
    ]
    place = table.column_names.index("x")
    column = pa.array(x, pa.list_(pa.float64()))
    parquet.write_table(table.set_column(place, "x", column), file)


def counts(results: Path) -> list[str]:
    (_, table) = reproduced(results, [], workers=1).blocks
    assert isinstance(table, Table)
    ((name, *cells),) = table.rows
    assert name == "`tiny`"
    return list(cells)


def test_decisions_are_made_again_bit_for_bit(results: Path) -> None:
    assert counts(results) == ["4", "4", "0", "0"]


def test_a_decision_that_was_another_is_counted_by_its_method(results: Path) -> None:
    move(results / "tiny" / "results.parquet", 1.25)
    assert counts(results) == ["4", "2", "0", "`erbo` 2"]


def test_rounding_is_told_from_another_decision() -> None:
    def row(x: float, c: float = 0.5, regret: float = 2.0) -> storage.Row:
        return {"x": [x], "c": [c], "regret": regret}

    rows = [row(100.0), row(300.0, 0.7), row(200.0)]
    side = 200.0 * TOLERANCE
    assert likeness(rows, 2, row(200.0)) == SAME
    assert likeness(rows, 2, row(200.0 + side / 2)) == NEAR
    assert likeness(rows, 2, row(200.0 + side * 1.01)) == OTHER
    assert likeness(rows, 2, row(200.0, 0.6)) == OTHER
    assert likeness(rows, 2, row(200.0, regret=2.1)) == OTHER
    assert likeness(rows, 2, row(float("nan"))) == OTHER
    assert likeness(rows, 2, row(200.0, regret=float("nan"))) == OTHER
    listed = [{"position": 3, "regret": 0.0}, {"position": 4, "regret": 1.0}]
    assert likeness(listed, 1, {"position": 4, "regret": 1.0 + 1e-15}) == SAME
    assert likeness(listed, 1, {"position": 5, "regret": 1.0}) == OTHER
    assert likeness(listed, 1, {"position": 4}) == SAME  # BOCU's have no regret


def test_a_result_or_run_that_is_not_known_is_refused(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=r"no result 'large' in .*: tiny"):
        reproduced(results, ["large"], workers=1)
    monkeypatch.setitem(EXPERIMENTS, "tiny", lambda seed, rounds: [])
    with pytest.raises(ConfigError, match="erbo on wdrbo_figure1, seed 0, which"):
        samples_of(results, "tiny")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_runs_of_an_experiment_are_known(name: str) -> None:
    samples = samples_of(RESULTS, name)
    assert all(key == sample.task.key for key, sample in samples.items())
    assert len({sample.at for sample in samples.values()}) > 5
