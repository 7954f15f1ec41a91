"""What is stored is not run again, and what was killed is."""

import json

import pytest

from benchmarks.__main__ import main
from benchmarks.development import play as module
from benchmarks.development.learn import Task, learn
from benchmarks.development.play import tasks_of
from benchmarks.development.store import Runs, keep
from benchmarks.run.config import ConfigError

TASKS = tasks_of(
    halves=["A", "B"],
    cases=["newsvendor"],
    methods=["erbo"],
    surrogates=["botorch"],
    seeds=2,
)


@pytest.fixture
def made(monkeypatch):
    """The runs that are made, as they are."""
    calls = []

    def counted(task, rounds, before=None):
        calls.append((task.seed, 0 if before is None else before["rounds"]))
        return learn(task, rounds, before)

    monkeypatch.setattr(module, "learn", counted)
    return calls


def play(tmp_path, rounds=6, tasks=TASKS):
    work, out = tmp_path / "work", tmp_path / "out"
    return module.play(
        tasks, rounds, work=work, out=out, workers=1, command="a command"
    )


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
    stored = Runs(tmp_path / "work", tmp_path / "out").find(TASKS[0])
    path = tmp_path / "elsewhere" / "runs" / f"{TASKS[0]}.json"
    assert stored == json.loads(path.read_text())  # to the last bit


def test_a_run_that_was_killed_is_made_again(made, tmp_path):
    (tmp_path / "out").mkdir()
    path = tmp_path / "work" / "runs" / f"{TASKS[0]}.json"
    path.parent.mkdir(parents=True)
    path.with_suffix(".123").write_text('{"case": "newsv')  # killed while writing
    play(tmp_path)
    assert made == [(0, 0), (1, 0)]


def test_the_longer_of_two_runs_counts(tmp_path):
    work, out = tmp_path / "work", tmp_path / "out"
    row = learn(TASKS[0], 6)
    keep(row, work)
    Runs(work, out).collect()
    keep({**row, "rounds": 5}, work)
    found = Runs(work, out).find(TASKS[0])
    assert found is not None
    assert found["rounds"] == 6
    assert Runs(work, out).find(Task("bowl_3_1", "erbo", "botorch", 0)) is None
    assert (out / "worlds.csv").read_text() == "half,case,seed,runs\nA,newsvendor,0,1\n"
    (out / "runs.parquet").unlink()  # as in the repository: it would be written anew
    with pytest.raises(ConfigError, match="python -m benchmarks results"):
        Runs(work, out)


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
        tasks_of(halves="A", cases=["branin"], methods=[], surrogates=[], seeds=1)


def test_a_half_has_its_cases_only():
    half = tasks_of(
        halves=["B"], cases=[], methods=["erbo"], surrogates=["botorch"], seeds=3
    )
    assert len(half) == 9 * 3
    assert {task.seed for task in half[:9]} == {0}  # seed by seed
    assert "rastrigin_2_1" in {task.case for task in half}


def test_a_report_of_nothing_is_refused(tmp_path, capsys):
    where = ["--out", str(tmp_path), "--work", str(tmp_path)]
    assert main(["development", "--report", *where]) == 2
    assert "no runs" in capsys.readouterr().err
