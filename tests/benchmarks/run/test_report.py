"""The numbers of the table, against numbers by hand."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks.run.config import AlgorithmConfig, BenchmarkConfig, ConfigError
from benchmarks.run.report import (
    Estimate,
    curves,
    estimate,
    markdown_table,
    rich_table,
    summarise,
    warning_notes,
    write_report,
)
from benchmarks.run.storage import Record, run_files, run_header


def run(regrets: list[float], seconds: list[float | None] | None = None):
    records, total = [], 0.0
    for i, regret in enumerate(regrets):
        total += regret
        second = 0.5 if seconds is None else seconds[i]
        records.append(Record(i, [0.0], [0.0], 0.0, -regret, regret, total, second, []))
    return records


RUNS = {
    "wdrbo": {0: run([1.0, 2.0], [0.1, None]), 1: run([3.0, 4.0], [0.3, 0.2])},
    "erbo": {0: run([2.0, 2.0]), 1: run([4.0, 9.0])},
    "gp_ucb": {1: run([1.0, 1.0])},
    "random": {},
}
CONFIG = BenchmarkConfig(
    name="by_hand",
    problem="newsvendor",
    algorithms=tuple(AlgorithmConfig(label) for label in RUNS),
    seeds=(0, 1),
    iterations=2,
    baseline="erbo",
)


def test_rows_by_hand():
    wdrbo, erbo, gp_ucb = summarise(RUNS, "erbo")  # random has not finished
    assert (wdrbo.label, wdrbo.seeds) == ("wdrbo", 2)
    # Cumulative 3 and 7: mean 5, sample deviation sqrt(8), error 2.
    assert wdrbo.cumulative == Estimate(5.0, pytest.approx(2.0))
    # Mean regret of the last ten, here of both: 1.5 and 3.5.
    assert wdrbo.last == Estimate(2.5, pytest.approx(1.0))
    # Paired differences 3 - 4 and 7 - 13: mean -3.5, error 2.5.
    assert wdrbo.difference == Estimate(-3.5, pytest.approx(2.5))
    assert (wdrbo.wins, wdrbo.pairs) == (2, 2)
    assert wdrbo.seconds == pytest.approx(0.2)  # the median of .1, .2, .3
    assert erbo.difference is None and erbo.wins is None
    # One seed: no error; paired with the same seed of the baseline, not with its mean.
    assert gp_ucb.cumulative == Estimate(2.0, None)
    assert gp_ucb.difference == Estimate(-11.0, None)
    assert (gp_ucb.wins, gp_ucb.pairs) == (1, 1)


def test_last_regret_covers_ten_iterations():
    runs = {"erbo": {0: run([100.0] * 5 + [1.0] * 10)}}
    assert summarise(runs, "erbo")[0].last.mean == 1.0


def test_pairing_removes_what_seeds_share():
    shared = [0.0, 50.0, 200.0]
    runs = {
        "a": {i: run([s + 1.0]) for i, s in enumerate(shared)},
        "b": {i: run([s]) for i, s in enumerate(shared)},
    }
    row = summarise(runs, "b")[0]
    assert row.difference == Estimate(pytest.approx(1.0), pytest.approx(0.0))
    assert row.cumulative.error is not None and row.cumulative.error > 10


def test_no_seconds_when_none_were_measured():
    runs = {"erbo": {0: run([1.0], [None])}}
    assert summarise(runs, "erbo")[0].seconds is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Estimate(1.23456, 0.0234), "1.235 ± 0.023"),
        (Estimate(123.456, 7.89), "123.5 ± 7.9"),
        (Estimate(123.456, 78.9), "123 ± 79"),
        (Estimate(1.0, 0.0), "1"),
        (Estimate(1 / 3, None), "0.3333"),
    ],
)
def test_estimates_in_print(value, text):
    assert str(value) == text


def test_standard_error():
    values = [1.0, 2.0, 4.0]
    assert estimate(values).error == pytest.approx(
        torch.tensor(values).std().item() / math.sqrt(3)
    )


def test_tables_show_every_row():
    rows = summarise(RUNS, "erbo")
    markdown = markdown_table(CONFIG, rows, ["a note"])
    assert (
        "| wdrbo | 2 | 5.0 ± 2.0 | 2.5 ± 1.0 | -3.5 ± 2.5 | 2 of 2 | 0.2 |" in markdown
    )
    assert "| erbo | 2 |" in markdown
    assert "a note." in markdown
    assert rich_table(CONFIG, rows).row_count == 3


def test_warnings_are_counted():
    warned = [replace(r, warnings=["A: tried again"]) for r in run([1.0, 2.0])]
    assert warning_notes({"a": {0: warned, 1: run([1.0])}, "b": {0: run([1.0])}}) == [
        "a: 2 of 3 asks warned, mostly 'A: tried again'"
    ]


def test_curves_are_seeds_by_iterations():
    result = curves(RUNS, "cumulative")
    assert list(result) == ["wdrbo", "erbo", "gp_ucb"]
    assert result["wdrbo"].tolist() == [[1.0, 3.0], [3.0, 7.0]]


def test_report_files(tmp_path: Path):
    for algorithm in CONFIG.algorithms:
        for seed, records in RUNS[algorithm.label].items():
            files = run_files(tmp_path, algorithm, seed)
            files.start(run_header(CONFIG, algorithm, seed))
            for record in records:
                files.append(record)
    rows = write_report(CONFIG, tmp_path)
    assert rows == summarise(RUNS, "erbo")
    assert (tmp_path / "regret.png").read_bytes().startswith(b"\x89PNG")
    assert "5.0 ± 2.0" in (tmp_path / "table.md").read_text()
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["rows"][0]["cumulative"]["mean"] == 5.0
    assert summary["final_cumulative_regret"]["erbo"] == {"0": 4.0, "1": 13.0}
    with (tmp_path / "iterations.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 6
    second = lines[1]
    assert (second["algorithm"], second["iteration"]) == ("wdrbo", "2")
    assert float(second["regret"]) == 3.0
    assert float(second["cumulative_error"]) == pytest.approx(2.0)
    assert lines[-1]["regret_error"] == ""


def test_report_of_nothing_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="nothing to report"):
        write_report(CONFIG, tmp_path)
