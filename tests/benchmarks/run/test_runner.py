"""Runs are paired, recorded rightly, and resumed exactly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks.run import runner
from benchmarks.run.config import AlgorithmConfig, BenchmarkConfig, ConfigError
from benchmarks.run.problems import World, make_problem
from benchmarks.run.runner import Progress, run_benchmark, run_one
from benchmarks.run.storage import Record, RunFiles, load_runs, run_files, run_header
from botorch_drbo.optimizer import RobustOptimizer

TINY = {"num_restarts": 1, "raw_samples": 8, "max_iterations": 5}
RANDOM = AlgorithmConfig("random")
ERBO = AlgorithmConfig("erbo", options=TINY)
CONFIG = BenchmarkConfig(
    name="test",
    problem="wdrbo_figure1",
    algorithms=(RANDOM, ERBO),
    seeds=(0, 1),
    iterations=4,
    initial=2,
    problem_options={"noise_std": 0.1},
)


class Killed(Exception):
    """Stands for kill -9: nothing of the run goes on."""


def without_seconds(records: list[Record]) -> list[Record]:
    return [replace(r, seconds=None) for r in records]


def stored(out: Path, config: BenchmarkConfig = CONFIG) -> dict:
    return {
        label: {seed: without_seconds(records) for seed, records in by_seed.items()}
        for label, by_seed in load_runs(config, out).items()
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole")
    assert run_benchmark(CONFIG, out) == []
    return out


def test_contexts_are_paired_across_algorithms(whole: Path):
    runs = load_runs(CONFIG, whole)
    for seed in CONFIG.seeds:
        contexts = [[r.c for r in runs[label][seed]] for label in ("random", "erbo")]
        assert contexts[0] == contexts[1]
    assert [r.c for r in runs["erbo"][0]] != [r.c for r in runs["erbo"][1]]
    assert [r.x for r in runs["erbo"][0]] != [r.x for r in runs["random"][0]]


def test_initial_observations_are_paired_across_algorithms(whole: Path):
    told = []
    for algorithm in CONFIG.algorithms:
        journal = run_files(whole, algorithm, 0).journal
        with RobustOptimizer.resume(journal) as optimizer:
            history = optimizer.history
        assert history.t == CONFIG.initial + CONFIG.iterations
        told.append([v[: CONFIG.initial] for v in (history.X, history.C, history.Y)])
    for a, b in zip(*told, strict=True):
        assert torch.equal(a, b)


def test_records_say_what_happened(whole: Path):
    problem = make_problem(CONFIG)
    for by_seed in load_runs(CONFIG, whole).values():
        for seed, records in by_seed.items():
            world, total = World(problem, CONFIG.problem, seed), 0.0
            for i, r in enumerate(records):
                x = torch.tensor([r.x], dtype=torch.double)
                c = torch.tensor([r.c], dtype=torch.double)
                step = CONFIG.initial + i
                assert torch.equal(c, world.context(step))
                assert r.y == world.outcome(step, x, c).item()
                assert r.expected == problem.expected_value(x).item()
                assert r.regret == problem.optimal_value - r.expected
                total += r.regret
                assert r.cumulative == pytest.approx(total, abs=1e-12)
                assert r.iteration == i
                assert r.seconds is not None and r.seconds >= 0


def test_finished_runs_are_skipped_and_longer_ones_extended(whole: Path, monkeypatch):
    before = stored(whole)
    seen: list[Progress] = []
    with monkeypatch.context() as patch:
        patch.setattr(runner, "_open", None)  # a skipped run does not open anything
        run_benchmark(CONFIG, whole, on_progress=seen.append)
    assert sorted({p.done for p in seen}) == [CONFIG.iterations]
    assert stored(whole) == before
    longer = replace(CONFIG, iterations=5, algorithms=(RANDOM,), seeds=(0,))
    run_benchmark(longer, whole)
    records = stored(whole, longer)["random"][0]
    assert records[:4] == before["random"][0]
    assert len(records) == 5


def kill_after_record(monkeypatch: pytest.MonkeyPatch) -> None:
    append = RunFiles.append

    def killed(self: RunFiles, record: Record) -> None:
        append(self, record)
        if record.iteration == 1:
            raise Killed

    monkeypatch.setattr(RunFiles, "append", killed)


def kill_between_tell_and_record(monkeypatch: pytest.MonkeyPatch) -> None:
    append = RunFiles.append

    def killed(self: RunFiles, record: Record) -> None:
        if record.iteration == 2:
            raise Killed
        append(self, record)

    monkeypatch.setattr(RunFiles, "append", killed)


def kill_between_ask_and_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    kill_in_outcome(monkeypatch, CONFIG.initial + 2)


def kill_in_the_initial_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    kill_in_outcome(monkeypatch, 1)


def kill_in_outcome(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    outcome = World.outcome

    def killed(self: World, step: int, x: torch.Tensor, c: torch.Tensor):
        if step == at:
            raise Killed
        return outcome(self, step, x, c)

    monkeypatch.setattr(World, "outcome", killed)


@pytest.mark.parametrize(
    "kill",
    [
        kill_after_record,
        kill_between_tell_and_record,
        kill_between_ask_and_tell,
        kill_in_the_initial_decisions,
    ],
)
@pytest.mark.parametrize("algorithm", CONFIG.algorithms, ids=lambda a: a.label)
def test_killed_run_resumes_to_the_same_records(
    kill, algorithm, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    config = replace(
        CONFIG, algorithms=(algorithm,), seeds=(0,), baseline=algorithm.label
    )
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill(patch)
        run_benchmark(config, tmp_path)
    assert stored(tmp_path, config)[algorithm.label] == {}
    run_benchmark(config, tmp_path)
    expected = stored(whole)[algorithm.label][0]
    assert stored(tmp_path, config)[algorithm.label][0] == expected


def test_killed_while_the_journal_was_created(whole: Path, tmp_path: Path):
    config = replace(CONFIG, algorithms=(RANDOM,), seeds=(0,))
    files = run_files(tmp_path, RANDOM, 0)
    files.start(run_header(config, RANDOM, 0))
    files.journal.write_bytes(b'{"format": ')
    run_benchmark(config, tmp_path)
    assert stored(tmp_path, config)["random"][0] == stored(whole)["random"][0]


@pytest.mark.slow
def test_processes_give_the_same_records(whole: Path, tmp_path: Path):
    seen: list[Progress] = []
    assert run_benchmark(CONFIG, tmp_path, jobs=2, on_progress=seen.append) == []
    assert stored(tmp_path) == stored(whole)
    last = {(p.label, p.seed): p.done for p in seen}
    assert set(last.values()) == {CONFIG.iterations}
    assert len(last) == 4


@pytest.mark.slow
def test_kill_9_of_the_command_resumes_to_the_same_records(tmp_path: Path):
    command = [sys.executable, "-m", "benchmarks", "run", "--jobs", "1"]
    command += ["--problem", "wdrbo_figure1", "--algorithms", "gp_ucb", "--seeds", "1"]
    command += ["--iterations", "8", "--initial", "2", "--out"]
    config = replace(
        CONFIG,
        algorithms=(AlgorithmConfig("gp_ucb"),),
        baseline="gp_ucb",
        seeds=(0,),
        iterations=8,
        problem_options={},
    )
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    records = run_files(tmp_path / "killed", config.algorithms[0], 0).records
    process = subprocess.Popen([*command, str(tmp_path / "killed")], env=environment)
    while process.poll() is None:
        if records.exists() and records.read_bytes().count(b"\n") > 3:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.05)
    assert process.wait() == -signal.SIGKILL
    for out in ("killed", "whole"):
        subprocess.run([*command, str(tmp_path / out)], env=environment, check=True)
    whole = stored(tmp_path / "whole", config)
    assert len(whole["gp_ucb"][0]) == 8
    assert stored(tmp_path / "killed", config) == whole


@pytest.mark.slow
def test_one_failure_leaves_the_other_runs(tmp_path: Path):
    bad = run_files(tmp_path, RANDOM, 1)
    bad.folder.mkdir(parents=True)
    bad.journal.write_text("not a journal\n")
    config = replace(CONFIG, algorithms=(RANDOM,))
    (failure,) = run_benchmark(config, tmp_path, jobs=2)
    assert (failure.label, failure.seed) == ("random", 1)
    assert isinstance(failure.error, ConfigError)
    assert list(stored(tmp_path, config)["random"]) == [0]
    with pytest.raises(ConfigError, match="no records beside it"):
        run_benchmark(config, tmp_path, jobs=1)


def test_changed_defaults_are_refused(tmp_path: Path, monkeypatch):
    config = replace(CONFIG, algorithms=(ERBO,), seeds=(0,), baseline="erbo")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_after_record(patch)
        run_benchmark(config, tmp_path)
    build = runner.build_algorithm

    def changed(algorithm, problem):
        options = algorithm.options | {"raw_samples": 9}
        return build(replace(algorithm, options=options), problem)

    monkeypatch.setattr(runner, "build_algorithm", changed)
    with pytest.raises(ConfigError, match="defaults have changed"):
        run_benchmark(config, tmp_path)


def test_another_benchmark_in_the_folder_is_refused_before_anything_runs(whole: Path):
    before = stored(whole)
    with pytest.raises(ConfigError, match="another run"):
        run_benchmark(replace(CONFIG, initial=3), whole)
    assert stored(whole) == before


@pytest.mark.parametrize("jobs", [0, -1])
def test_refuses_no_jobs(tmp_path: Path, jobs: int):
    with pytest.raises(ConfigError, match="jobs"):
        run_benchmark(CONFIG, tmp_path, jobs=jobs)


def test_runs_on_one_thread_and_gives_the_threads_back(tmp_path: Path, monkeypatch):
    seen = []
    decide = runner._decide

    def spy(*arguments):
        seen.append(torch.get_num_threads())
        return decide(*arguments)

    monkeypatch.setattr(runner, "_decide", spy)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        run_one(CONFIG, RANDOM, 0, tmp_path, lambda progress: None)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {1}
