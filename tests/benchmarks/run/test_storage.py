"""Records survive a round trip and a torn line; folders of other runs are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.run.config import AlgorithmConfig, BenchmarkConfig, ConfigError
from benchmarks.run.storage import Record, load_runs, run_files, run_header

CONFIG = BenchmarkConfig(
    name="test",
    problem="newsvendor",
    algorithms=(AlgorithmConfig("random"),),
    seeds=(0, 1),
    iterations=2,
)
ALGORITHM = CONFIG.algorithms[0]
HEADER = run_header(CONFIG, ALGORITHM, 0)


def record(iteration: int, seconds: float | None = 0.1) -> Record:
    third = 1 / 3 + iteration  # not exact in decimals
    return Record(
        iteration, [third, 2.0], [0.1], third, -third, third, third, seconds, ["w"]
    )


def test_round_trip_is_exact(tmp_path: Path):
    files = run_files(tmp_path, ALGORITHM, 0)
    assert files.load(HEADER) == []
    files.start(HEADER)
    assert files.load(HEADER) == []
    records = [record(0), record(1, seconds=None)]
    for each in records:
        files.append(each)
    assert files.load(HEADER) == records


@pytest.mark.parametrize("torn", [b"{", b'{"iteration": 1', b'{"iteration": 1}'])
def test_torn_last_line_is_ignored_then_cut_off(tmp_path: Path, torn: bytes):
    files = run_files(tmp_path, ALGORITHM, 0)
    files.start(HEADER)
    files.append(record(0))
    whole = files.records.read_bytes()
    files.records.write_bytes(whole + torn)
    assert files.load(HEADER) == [record(0)]
    files.start(HEADER)
    assert files.records.read_bytes() == whole
    files.append(record(1))
    assert files.load(HEADER) == [record(0), record(1)]


def test_torn_header_starts_afresh(tmp_path: Path):
    files = run_files(tmp_path, ALGORITHM, 0)
    files.folder.mkdir(parents=True)
    files.records.write_bytes(b'{"format"')
    assert files.load(HEADER) == []
    files.start(HEADER)
    files.append(record(0))
    assert files.load(HEADER) == [record(0)]


@pytest.mark.parametrize(
    "change",
    [{"initial": 6}, {"problem": "ackley_2_1"}, {"problem_options": {"noise_std": 1}}],
)
def test_folder_of_another_run_is_refused(tmp_path: Path, change):
    run_files(tmp_path, ALGORITHM, 0).start(HEADER)
    other = replace(CONFIG, **change)
    with pytest.raises(ConfigError, match="another run"):
        run_files(tmp_path, ALGORITHM, 0).load(run_header(other, ALGORITHM, 0))


def test_options_are_part_of_a_run_and_iterations_are_not(tmp_path: Path):
    assert run_header(replace(CONFIG, iterations=9), ALGORITHM, 0) == HEADER
    other = AlgorithmConfig("random", options={"a": 1})
    assert run_header(CONFIG, other, 0) != HEADER


def test_only_finished_runs_are_loaded_and_cut_to_the_iterations(tmp_path: Path):
    for seed, count in ((0, 3), (1, 1)):
        files = run_files(tmp_path, ALGORITHM, seed)
        files.start(run_header(CONFIG, ALGORITHM, seed))
        for i in range(count):
            files.append(record(i))
    assert load_runs(CONFIG, tmp_path) == {"random": {0: [record(0), record(1)]}}


def test_remove(tmp_path: Path):
    files = run_files(tmp_path, ALGORITHM, 0)
    files.start(HEADER)
    files.journal.write_text("x\n")
    files.remove()
    files.remove()
    assert list(files.folder.iterdir()) == []
