"""A finished run is on the disk whole or not at all; other folders are refused."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from pyarrow import parquet
from rich.console import Console

from benchmarks.__main__ import main
from benchmarks.run.config import (
    AlgorithmConfig,
    BenchmarkConfig,
    ConfigError,
    ProblemConfig,
)
from benchmarks.run.display import run_with_lines
from benchmarks.run.provenance import commit
from benchmarks.run.storage import (
    Run,
    RunKey,
    collect,
    collect_runs,
    differences,
    load,
    refuse_other_commits,
    refuse_others,
    refuse_to_lose,
    run_file,
    save,
    stored_rows,
)

CONFIG = BenchmarkConfig(
    name="test",
    problems=(ProblemConfig("newsvendor"),),
    algorithms=(AlgorithmConfig("random"),),
    seeds=(0, 1),
    iterations=2,
)
KEYS = [RunKey("newsvendor", "random", seed) for seed in CONFIG.seeds]
HEADER = {"format": 2, "versions": {"torch": "2"}, "iterations": 2}
MADE = {"commit": "abc", "machine": "m", "load": 0.5}


def row(iteration: int) -> dict:
    third = 1 / 3 + iteration  # not exact in decimals
    return {
        "iteration": iteration,
        "x": [third, 2.0],
        "c": [0.1],
        "y": third,
        "expected": -third,
        "regret": third,
        "seconds": 0.3,
        "fit_seconds": 0.2,
        "inner_seconds": 0.1,
        "warnings": ["w"] if iteration else [],
        "recommended": [third] if iteration else None,
        "mine": iteration > 0,  # of no other experiment
    }


RUN = Run([row(0), row(1)], HEADER, MADE)


def test_rows_come_back_exactly(tmp_path: Path):
    for key in KEYS:
        save(RUN, run_file(tmp_path, key))
    path = collect(CONFIG, tmp_path)
    rows, about = load(tmp_path)
    assert len(rows) == 4
    keys = [key for key in KEYS for _ in RUN.rows]
    for stored, key in zip(rows.to_dict("records"), keys, strict=True):
        wanted = {**key._asdict(), **row(stored["iteration"]), "commit": "abc"}
        lists = ("x", "c", "warnings") + ("recommended",) * stored["mine"]
        stored |= {name: list(stored[name]) for name in lists}
        assert stored == wanted
    assert about["versions"] == [{"torch": "2"}]
    assert (about["commit"], about["machine"]) == (["abc"], ["m"])
    assert about["load"] == 0.5
    assert about["config"]["name"] == "test"
    assert load(path)[1] == about


def test_rows_of_a_run_that_is_not_there_are_none(tmp_path: Path):
    path = run_file(tmp_path, KEYS[0])
    assert stored_rows(path, HEADER) == []
    save(RUN, path)
    assert stored_rows(path, HEADER) == RUN.rows


def test_of_a_longer_run_the_first_rounds_are_taken_and_a_shorter_is_left_out(
    tmp_path: Path,
):
    save(RUN, run_file(tmp_path, KEYS[0]))
    save(replace(RUN, rows=[row(0)]), run_file(tmp_path, KEYS[1]))
    rows, _ = load(collect_runs(dict.fromkeys(KEYS, 1), tmp_path, {}))
    assert rows.seed.tolist() == [0, 1]
    rows, _ = load(collect_runs(dict.fromkeys(KEYS, 2), tmp_path, {}))
    assert rows.seed.tolist() == [0, 0]


def test_any_name_is_a_folder(tmp_path: Path):
    key = RunKey("waves 0.1", "ec_gp_ucb, half", 3)
    path = run_file(tmp_path, key)
    assert (
        path == tmp_path / "runs" / "waves_0.1" / "ec_gp_ucb_half" / "seed_0003.parquet"
    )


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({**HEADER, "versions": {"torch": "3"}}, "versions.torch: there it is '2'"),
        ({**HEADER, "iterations": 3}, "iterations: there it is 2, asked is 3"),
    ],
)
def test_a_folder_of_another_version_or_config_is_refused_with_what_differs(
    header, message, tmp_path: Path
):
    save(RUN, run_file(tmp_path, KEYS[0]))
    with pytest.raises(ConfigError, match=message) as error:
        stored_rows(run_file(tmp_path, KEYS[0]), header)
    assert "--out" in str(error.value)


def test_a_folder_with_runs_that_the_config_does_not_name_is_refused(tmp_path: Path):
    save(RUN, run_file(tmp_path, KEYS[0]))
    with pytest.raises(ConfigError, match=r"of another config.*--out"):
        refuse_others([RunKey("newsvendor", "erbo", 0)], tmp_path)
    refuse_others(KEYS[1:], tmp_path)  # of another seed


def test_what_was_collected_and_has_no_run_any_more_is_not_written_over(tmp_path: Path):
    refuse_to_lose(tmp_path)
    for key in KEYS:
        save(RUN, run_file(tmp_path, key))
    collect_runs(dict.fromkeys(KEYS, 2), tmp_path, {})
    refuse_to_lose(tmp_path)
    save(replace(RUN, rows=[row(0)]), run_file(tmp_path, KEYS[1]))
    with pytest.raises(ConfigError, match=rf"of 1 runs .*\({KEYS[1]} first\).* unpack"):
        refuse_to_lose(tmp_path)
    run_file(tmp_path, KEYS[0]).unlink()
    with pytest.raises(ConfigError, match="rounds of 2 runs"):
        run_with_lines([], tmp_path, workers=1, console=Console())


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch):
    path = run_file(tmp_path, KEYS[0])
    save(RUN, path)
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save(replace(RUN, rows=[row(7)]), path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_nothing_finished_is_said(tmp_path: Path):
    with pytest.raises(ConfigError, match="nothing to read"):
        collect(CONFIG, tmp_path)
    with pytest.raises(ConfigError, match="no results"):
        load(tmp_path)


def test_differences_name_the_place():
    assert differences({"a": {"b": 1}, "c": 2}, {"a": {"b": 3}, "c": 2}) == [
        "a.b: there it is 1, asked is 3"
    ]


def test_a_folder_with_runs_of_another_commit_is_refused_unless_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    line = ["run", "--problem", "newsvendor", "--algorithms", "random"]
    line += ["--seeds", "1", "--iterations", "2", "--workers", "1"]
    line += ["--out", str(tmp_path)]
    assert main(line) == 0
    path = run_file(tmp_path, KEYS[0])
    table = parquet.read_table(path)
    (key,) = table.schema.metadata
    about = json.loads(table.schema.metadata[key])
    assert about["made"]["commit"] == commit()
    about["made"]["commit"] = "0123456789ab"
    parquet.write_table(
        table.replace_schema_metadata({key: json.dumps(about).encode()}), path
    )
    assert main(line) != 0
    said = " ".join(capsys.readouterr().err.split())
    assert "was made by commit 0123456789ab" in said
    assert commit() in said
    assert "--any-commit" in said
    assert main([*line, "--any-commit"]) == 0
    refuse_other_commits(tmp_path, "0123456789ab")
    refuse_other_commits(tmp_path, "")  # an archive: no commit is known
