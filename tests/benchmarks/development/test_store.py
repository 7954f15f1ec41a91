"""What is stored is not run again, and what was killed is."""

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.__main__ import main
from benchmarks.development.learn import Task, tasks_of
from benchmarks.development.play import play as play_tasks
from benchmarks.development.store import Table, run_of
from benchmarks.run.config import ConfigError
from benchmarks.run.engine import make_run
from benchmarks.run.storage import run_file, save

ASKED: dict[str, Any] = {
    "halves": ["A", "B"],
    "cases": ["newsvendor"],
    "methods": ["erbo"],
    "surrogates": ["botorch"],
    "seeds": 2,
    "rounds": 6,
}
TASKS = tasks_of(**ASKED)


@pytest.fixture
def made(monkeypatch):
    """The runs that are made: their seed, and how many outcomes were there."""
    calls, play = [], Task.play

    def counted(task, done):
        calls.append((task.seed, len(done)))
        return play(task, done)

    monkeypatch.setattr(Task, "play", counted)
    return calls


def play(tmp_path, rounds=6, tasks=TASKS):
    work, out = tmp_path / "work", tmp_path / "out"
    tasks = [replace(task, rounds=rounds) for task in tasks]
    return play_tasks(tasks, work=work, out=out, workers=1, command="a command")


def test_what_is_stored_is_not_run_again(made, tmp_path):
    (tmp_path / "out").mkdir()
    play(tmp_path, tasks=TASKS[:1])
    play(tmp_path)
    assert made == [(0, 0), (1, 0)]
    play(tmp_path, rounds=7)  # more outcomes: both are gone on with
    play(tmp_path, rounds=5)
    assert made[2:] == [(0, 6), (1, 6)]
    # of the committed table alone, as in another checkout
    (tmp_path / "work").rename(tmp_path / "elsewhere")
    play(tmp_path, rounds=7)
    assert len(made) == 4
    (stored, _) = Table(tmp_path / "out").rows()
    task = replace(TASKS[0], rounds=7)
    again = run_of(task, list(task.play([])))
    skipped = {"seconds", "commits"}
    assert {k: v for k, v in stored.items() if k not in skipped} == {
        k: v for k, v in again.items() if k not in skipped
    }  # to the last bit


def test_a_run_that_was_killed_is_gone_on_with(made, tmp_path):
    (tmp_path / "out").mkdir()
    path = run_file(tmp_path / "work", TASKS[0].key)
    save(make_run(replace(TASKS[0], rounds=3)), path)
    path.with_suffix(".unfinished").write_text("half a fi")  # killed while writing
    made.clear()
    play(tmp_path)
    assert made == [(0, 3), (1, 0)]


def test_the_longer_of_two_runs_counts(tmp_path):
    rounds = [{**row, "commit": "abc"} for row in TASKS[0].play([])]
    row = run_of(TASKS[0], rounds)
    table = Table(tmp_path)
    table.add([row])
    table.add([{**row, "rounds": 5}])
    table.write()
    assert Table(tmp_path).rounds(TASKS[0]) == 6
    assert Table(tmp_path).rounds(Task("bowl_3_1", "erbo", "botorch", 0, 6)) == 0
    worlds = (tmp_path / "worlds.csv").read_text()
    assert worlds == "half,case,seed,runs\nA,newsvendor,0,1\n"
    (tmp_path / "runs.parquet").unlink()  # as in the repository: it would be anew
    with pytest.raises(ConfigError, match="python -m benchmarks results"):
        Table(tmp_path)


def test_the_command_from_end_to_end(tmp_path, capsys):
    command = ["development", "--cases", "newsvendor", "--seeds", "1", "--rounds", "10"]
    command += ["--surrogates", "botorch", "--workers", "1"]
    command += ["--out", str(tmp_path / "out"), "--work", str(tmp_path / "work")]
    assert main(command) == 0
    report = (tmp_path / "out" / "report.md").read_text()
    assert "`erbo`, 10 outcomes, half A" in report
    assert "half B" not in report
    before = (tmp_path / "out" / "runs.parquet").read_bytes()
    assert main([*command, "--report"]) == 0
    assert (tmp_path / "out" / "runs.parquet").read_bytes() == before
    capsys.readouterr()


def test_unknown_names_are_refused_before_anything_runs(tmp_path, capsys):
    where = ["--out", str(tmp_path), "--work", str(tmp_path)]
    for flag in ("--cases", "--surrogates", "--methods"):
        assert main(["development", flag, "brannin", *where]) == 2
        assert "brannin" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="branin_2_2"):
        tasks_of(**{**ASKED, "cases": ["branin"]})


def test_a_half_has_its_cases_only():
    half = tasks_of(**{**ASKED, "halves": ["B"], "cases": [], "seeds": 3})
    assert len(half) == 9 * 3
    assert {task.seed for task in half[:9]} == {0}  # seed by seed
    assert "rastrigin_2_1" in {task.case for task in half}


def test_a_report_of_nothing_is_refused(tmp_path, capsys):
    where = ["--out", str(tmp_path), "--work", str(tmp_path)]
    assert main(["development", "--report", *where]) == 2
    assert "no runs" in capsys.readouterr().err
