"""Runs are paired, recorded rightly, and the same however they are made."""

from __future__ import annotations

import errno
import itertools
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
from pyarrow import parquet

from benchmarks.run import engine, runner, storage
from benchmarks.run.config import (
    AlgorithmConfig,
    BenchmarkConfig,
    ConfigError,
    ProblemConfig,
    from_toml,
)
from benchmarks.run.engine import Finished, full_header, make_run, run_tasks
from benchmarks.run.runner import Task, tasks_of, unpack
from benchmarks.run.storage import Run, RunKey, collect, load, run_file, save
from benchmarks.run.world import World, make_problem
from botorch_drbo.optimizer import RobustOptimizer

TINY = {"num_restarts": 1, "raw_samples": 8, "max_iterations": 5}
FIGURE1 = ProblemConfig("wdrbo_figure1", options={"noise_std": 0.1})
CONFIG = BenchmarkConfig(
    name="test",
    problems=(FIGURE1,),
    algorithms=(AlgorithmConfig("random"), AlgorithmConfig("erbo")),
    seeds=(0, 1),
    iterations=3,
    initial=2,
    options=TINY,
)
RANDOM = replace(CONFIG, algorithms=CONFIG.algorithms[:1], options={})


def run_benchmark(
    config: BenchmarkConfig, out: Path, **options
) -> dict[RunKey, BaseException]:
    return run_tasks(tasks_of(config, out), out, **options)


def stored(out: Path, config: BenchmarkConfig = CONFIG) -> pd.DataFrame:
    """All rows but for the seconds and the commit, to the last bit."""
    rows, _ = load(collect(config, out))
    rows = rows.drop(columns=["seconds", "fit_seconds", "inner_seconds", "commit"])
    return rows.map(lambda value: value if pd.api.types.is_scalar(value) else [*value])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole")
    assert run_benchmark(CONFIG, out) == {}
    return out


def test_contexts_and_initial_data_are_paired_across_algorithms(whole: Path):
    rows = stored(whole)
    contexts = rows.pivot(index=["seed", "iteration"], columns="algorithm", values="c")
    assert (contexts["random"] == contexts["erbo"]).all()
    assert (contexts.loc[0, "erbo"] != contexts.loc[1, "erbo"]).all()
    decisions = rows.pivot(index=["seed", "iteration"], columns="algorithm", values="x")
    assert (decisions["random"] != decisions["erbo"]).all()


def test_records_say_what_happened(whole: Path):
    problem = make_problem(FIGURE1)
    rows, about = load(collect(CONFIG, whole))
    for r in rows.itertuples():
        world = World(problem, "wdrbo_figure1", r.seed, salt="")
        x = torch.tensor([[*r.x]], dtype=torch.double)
        c = torch.tensor([[*r.c]], dtype=torch.double)
        step = CONFIG.initial + r.iteration
        assert torch.equal(c, world.context(step))
        assert r.y == world.outcome(step, x, c).item()
        assert r.expected == problem.expected_value(x).item()
        assert r.regret == problem.optimal_value - r.expected
        assert r.fit_seconds + r.inner_seconds < r.seconds
        assert (r.fit_seconds > 0) == (r.inner_seconds > 0) == (r.algorithm == "erbo")
    last = rows.dropna(subset="recommended")
    assert last.iteration.tolist() == 4 * [CONFIG.iterations - 1]
    for r in last.itertuples():
        x = torch.tensor([[*r.recommended]], dtype=torch.double)
        regret = problem.optimal_value - problem.expected_value(x).item()
        assert r.recommended_regret == regret
    assert about["load"] >= 0.0


@pytest.mark.slow
@pytest.mark.parametrize("dask", [None, "local"])
def test_two_workers_give_the_same_results_bit_for_bit(
    dask: str | None, whole: Path, tmp_path: Path
):
    seen: list[Finished] = []
    failures = run_benchmark(
        CONFIG, tmp_path, workers=2, dask=dask, on_finished=seen.append
    )
    assert failures == {}
    pd.testing.assert_frame_equal(stored(tmp_path), stored(whole), check_exact=True)
    assert [(f.done, f.total) for f in seen] == [(i, 4) for i in range(1, 5)]


def test_stopped_and_run_again_equals_uninterrupted(
    whole: Path, tmp_path: Path, monkeypatch
):
    class Killed(BaseException):
        """Stands for kill -9: nothing goes on."""

    outcome, calls = World.outcome, []

    def killed(self: World, step: int, x: torch.Tensor, c: torch.Tensor):
        calls.append(step)
        if len(calls) == 13:  # in the third of four runs
            raise Killed
        return outcome(self, step, x, c)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(World, "outcome", killed)
        run_benchmark(CONFIG, tmp_path)
    assert len(list(tmp_path.rglob("*.parquet"))) == 2
    seen: list[Finished] = []
    assert run_benchmark(CONFIG, tmp_path, on_finished=seen.append) == {}
    assert len(seen) == 2  # what was kept is not made again
    pd.testing.assert_frame_equal(stored(tmp_path), stored(whole), check_exact=True)


@pytest.mark.slow
def test_kill_9_of_the_command_resumes_to_the_same_results(whole: Path, tmp_path: Path):
    config = tmp_path / "test.toml"
    config.write_text(
        'worlds = ""\nalgorithms = ["random", "erbo"]\n'
        "seeds = 2\niterations = 3\ninitial = 2\n"
        "options = {num_restarts = 1, raw_samples = 8, max_iterations = 5}\n"
        '[problem]\nname = "wdrbo_figure1"\noptions = {noise_std = 0.1}\n'
    )
    out = tmp_path / "out"
    command = [sys.executable, "-m", "benchmarks", "run", str(config)]
    command += ["--workers", "2", "--out", str(out)]
    process = subprocess.Popen(command)
    while process.poll() is None:
        if list(out.rglob("*.parquet")):
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.02)
    assert process.wait() == -signal.SIGKILL
    subprocess.run(command, check=True)
    pd.testing.assert_frame_equal(
        stored(out, from_toml(config)), stored(whole), check_exact=True
    )


def test_a_run_killed_between_two_rounds_goes_on_at_the_round(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """To the last bit, and without asking again for what was decided before."""
    (task,) = [t for t in tasks_of(CONFIG, tmp_path) if t.key.algorithm == "erbo"][:1]
    file = run_file(tmp_path, task.key)
    part = list(itertools.islice(task.play([]), 2))
    run = make_run(tasks_of(RANDOM, tmp_path)[0])
    save(replace(run, rows=part, header=full_header(task)), file)
    asked: list[int] = []
    ask = RobustOptimizer.ask

    def counted(self: RobustOptimizer, *args: object, **options: object) -> object:
        asked.append(1)
        return ask(self, *args, **options)

    monkeypatch.setattr(RobustOptimizer, "ask", counted)
    # A process that began before the rows were there finds them, as a second try does.
    again = make_run(task, [], file)
    assert len(asked) == 1
    save(again, file)
    wanted = stored(whole)
    wanted = wanted[(wanted.algorithm == "erbo") & (wanted.seed == task.key.seed)]
    only = replace(
        CONFIG,
        algorithms=CONFIG.algorithms[1:],
        seeds=(task.key.seed,),
        baseline="erbo",
    )
    pd.testing.assert_frame_equal(stored(tmp_path, only), wanted.reset_index(drop=True))


def test_a_full_disk_loses_no_finished_run(tmp_path: Path, monkeypatch):
    save, calls = engine.save, []

    def full(run: Run, path: Path) -> None:
        calls.append(path)
        if len(calls) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        save(run, path)

    monkeypatch.setattr(engine, "save", full)
    monkeypatch.setattr(engine, "KEEP_SECONDS", math.inf)  # written at the end only
    seen: list[Finished] = []
    # The first could not be written; it waited in memory and was written with the next.
    assert run_benchmark(RANDOM, tmp_path, on_finished=seen.append) == {}
    assert [type(f.error) for f in seen] == [OSError, type(None)]
    assert len(stored(tmp_path, RANDOM)) == 2 * RANDOM.iterations


def test_a_full_disk_between_two_rounds_loses_nothing(tmp_path: Path, monkeypatch):
    save, calls = engine.save, []

    def full(run: Run, path: Path) -> None:
        calls.append(len(run.rows))
        if len(run.rows) < RANDOM.iterations:
            raise OSError(errno.ENOSPC, "No space left on device")
        save(run, path)

    monkeypatch.setattr(engine, "save", full)
    monkeypatch.setattr(engine, "KEEP_SECONDS", 0.0)
    assert run_benchmark(RANDOM, tmp_path) == {}
    assert 1 in calls  # it was tried
    assert len(stored(tmp_path, RANDOM)) == 2 * RANDOM.iterations


def test_a_full_disk_is_reported_and_the_same_command_goes_on(
    tmp_path: Path, monkeypatch
):
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        failures = run_benchmark(RANDOM, tmp_path)
    assert {type(error) for error in failures.values()} == {OSError}
    assert len(failures) == 2
    assert run_benchmark(RANDOM, tmp_path) == {}


def test_one_failure_leaves_the_other_runs(tmp_path: Path, monkeypatch):
    def fails(task: Task, *arguments):
        if task.seed == 0:
            raise RuntimeError("bad luck")
        return make_run(task, *arguments)

    monkeypatch.setattr(engine, "make_run", fails)
    failures = run_benchmark(RANDOM, tmp_path)
    assert list(failures) == [RunKey("wdrbo_figure1", "random", 0)]
    assert stored(tmp_path, RANDOM).seed.unique().tolist() == [1]


def test_a_run_of_a_process_with_another_version_is_not_kept(
    tmp_path: Path, monkeypatch
):
    def other(*arguments):
        with monkeypatch.context() as patch:
            patch.setattr(engine, "versions", lambda: {"torch": "0"})
            patch.setattr(engine, "KEEP_SECONDS", 0.0)  # else it is seldom kept so far
            return make_run(*arguments)

    monkeypatch.setattr(engine, "make_run", other)
    failures = run_benchmark(RANDOM, tmp_path)
    assert len(failures) == 2
    assert "versions.torch" in str(next(iter(failures.values())))
    assert not list(tmp_path.rglob("*.parquet"))


def test_another_config_in_the_folder_is_refused_before_anything_runs(whole: Path):
    before = sorted(whole.rglob("*"))
    for changes in (
        {"initial": 3},
        {"options": {"num_restarts": 2}},
    ):
        with pytest.raises(ConfigError, match="another run"):
            run_benchmark(replace(CONFIG, **changes), whole)
    assert sorted(whole.rglob("*")) == before


def test_more_iterations_continue_a_shorter_run(whole: Path, tmp_path: Path):
    short = replace(CONFIG, iterations=CONFIG.iterations - 1)
    recommended = []
    for config in (short, CONFIG):
        assert run_benchmark(config, tmp_path) == {}
        rows = stored(tmp_path, config).dropna(subset="recommended")
        assert rows.iteration.unique().tolist() == list(
            range(short.iterations - 1, config.iterations)
        )
        recommended.append(rows.groupby("iteration").size().tolist())
    assert recommended == [[4], [4, 4]]
    # As if it had been long from the beginning, and its first rounds are the short one.
    keep = ["problem", "algorithm", "seed", "iteration", "x", "c", "y", "regret"]
    long, direct = stored(tmp_path, CONFIG), stored(whole, CONFIG)
    assert long[keep].equals(direct[keep])
    last = CONFIG.iterations - 1
    ends = [rows[rows.iteration == last].recommended_regret for rows in (long, direct)]
    assert ends[0].tolist() == ends[1].tolist()
    assert len(stored(tmp_path, short)) == 4 * short.iterations


def test_committed_results_go_on_where_they_end(whole: Path, tmp_path: Path):
    """From ``results.parquet`` alone, as the repository has it."""
    short = replace(CONFIG, iterations=CONFIG.iterations - 1)
    made = tmp_path / "made"
    assert run_benchmark(short, made) == {}
    collect(short, made)
    committed = tmp_path / "committed"
    committed.mkdir()
    shutil.copy(made / "results.parquet", committed)
    assert unpack(committed) == 4
    with pytest.raises(ConfigError, match="can be continued as it is"):
        unpack(committed)
    assert stored(committed, short).equals(stored(made, short))
    assert run_benchmark(CONFIG, committed) == {}
    keep = ["problem", "algorithm", "seed", "iteration", "x", "c", "y", "regret"]
    assert stored(committed, CONFIG)[keep].equals(stored(whole, CONFIG)[keep])


def test_results_that_cannot_be_continued_are_refused_and_left_alone(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(ConfigError, match="no results"):
        unpack(tmp_path / "nothing")
    collect(CONFIG, whole)
    shutil.copy(whole / "results.parquet", tmp_path)
    before = sorted(tmp_path.iterdir())
    made = {"versions": {"torch": "1"}}
    monkeypatch.setattr(runner, "full_header", lambda task: task.header() | made)
    with pytest.raises(ConfigError, match="would be made otherwise today"):
        unpack(tmp_path)
    monkeypatch.undo()

    def full_disk(run: Run, path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(runner, "save", full_disk)
    with pytest.raises(OSError, match="No space"):
        unpack(tmp_path)
    assert sorted(tmp_path.iterdir()) == before
    monkeypatch.undo()
    about = storage._metadata(tmp_path / "results.parquet")
    del about["headers"]
    table = parquet.read_table(tmp_path / "results.parquet")
    storage._write(table, about, tmp_path / "results.parquet")
    with pytest.raises(ConfigError, match="do not say what made each run"):
        unpack(tmp_path)


def test_a_continued_run_names_both_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name, iterations in (("abc", 1), ("def", 2)):
        monkeypatch.setattr(engine, "commit", lambda name=name: name)
        config = replace(RANDOM, iterations=iterations)
        assert run_benchmark(config, tmp_path) == {}
    _, about = load(collect(config, tmp_path))
    assert about["commit"] == ["abc", "def"]


def test_shared_options_go_to_the_algorithms_that_have_them(whole: Path):
    path = run_file(whole, RunKey("wdrbo_figure1", "erbo", 0))
    assert b'"raw_samples": 8' in parquet.read_schema(path).metadata[b"botorch_drbo"]
    with pytest.raises(ConfigError, match="Did you mean 'raw_samples'"):
        run_benchmark(replace(CONFIG, options={"raw_sample": 8}), whole)


def test_runs_on_one_thread_and_gives_the_threads_back(monkeypatch):
    seen = []
    outcome = World.outcome

    def spy(*arguments):
        seen.append(torch.get_num_threads())
        return outcome(*arguments)

    monkeypatch.setattr(World, "outcome", spy)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        make_run(Task(RANDOM, FIGURE1, RANDOM.algorithms[0], 0))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {1}
