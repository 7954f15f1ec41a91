"""A run goes on after the round where it was stopped, and is a function of its task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from rich.console import Console

from benchmarks.run import display, engine
from benchmarks.run.config import ConfigError
from benchmarks.run.display import run_with_lines
from benchmarks.run.engine import Finished, make_run, run_tasks
from benchmarks.run.storage import Row, RunKey, collect_runs, load, run_file


class Killed(BaseException):
    """Stands for kill -9: nothing goes on."""


@dataclass(frozen=True)
class Counting:
    """Rows 0, 1, 2, ..., each with how many were done when it was made."""

    rounds: int
    killed_at: int = -1
    rule: str = "count"
    seed: int = 0
    resumable: ClassVar[bool] = True

    @property
    def key(self) -> RunKey:
        return RunKey("numbers", "counting", self.seed)

    def header(self) -> dict[str, str]:
        return {"rule": self.rule}

    def play(self, done: Sequence[Row]) -> Iterator[Row]:
        for number in range(len(done), self.rounds):
            if number == self.killed_at:
                raise Killed
            yield {"iteration": number, "from": len(done), "seconds": 0.0}


class Whole(Counting):
    resumable: ClassVar[bool] = False


def starts(task: Counting, out: Path) -> list[int]:
    rows, _ = load(collect_runs({task.key: task.rounds}, out, {}))
    assert rows.iteration.tolist() == list(range(task.rounds))
    return rows["from"].tolist()


@pytest.mark.parametrize(("kind", "wanted"), [(Counting, 3), (Whole, 0)])
def test_a_killed_run_goes_on_where_it_was_if_it_can(
    kind: type[Counting], wanted: int, tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(engine, "KEEP_SECONDS", 0.0)
    with pytest.raises(Killed):
        run_tasks([kind(5, killed_at=3)], tmp_path)
    assert run_file(tmp_path, kind(5).key).exists() == kind.resumable
    assert run_tasks([kind(5)], tmp_path) == {}
    assert starts(kind(5), tmp_path) == [0] * wanted + [wanted] * (5 - wanted)


def test_rows_of_a_killed_run_that_are_all_that_is_asked_for_are_read(
    tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(engine, "KEEP_SECONDS", 0.0)
    with pytest.raises(Killed):
        run_tasks([Counting(5, killed_at=3)], tmp_path)
    assert run_tasks([Counting(3)], tmp_path) == {}
    assert starts(Counting(3), tmp_path) == [0, 0, 0]


def test_a_finished_run_is_extended_and_a_longer_one_left_alone(tmp_path: Path):
    seen: list[Finished] = []
    for rounds in (2, 4, 3):
        assert run_tasks([Counting(rounds)], tmp_path, on_finished=seen.append) == {}
    assert len(seen) == 2
    assert starts(Counting(4), tmp_path) == [0, 0, 2, 2]
    assert starts(Counting(3), tmp_path) == [0, 0, 2]


def test_another_run_of_the_same_name_is_refused_before_anything_runs(tmp_path: Path):
    assert run_tasks([Counting(1)], tmp_path) == {}
    fresh = Counting(1, seed=1)
    with pytest.raises(ConfigError, match="rule: there it is 'count', asked is 'odd'"):
        run_tasks([fresh, Counting(1, rule="odd")], tmp_path)
    assert not run_file(tmp_path, fresh.key).exists()


@dataclass(frozen=True)
class Drawing(Counting):
    def play(self, done: Sequence[Row]) -> Iterator[Row]:
        yield {"iteration": 0, "draw": torch.rand(()).item(), "seconds": 0.0}


def test_rows_do_not_depend_on_the_generator_of_the_process():
    task = Drawing(1)
    torch.manual_seed(1)
    first, after = make_run(task).rows, torch.rand(())
    torch.manual_seed(1)
    assert torch.equal(torch.rand(()), after)  # nor does the process on the rows
    assert make_run(task).rows == first
    assert make_run(replace(task, seed=1)).rows != first


def test_the_time_left_counts_from_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]

    def make(task: Counting, *further: object, **options: object) -> object:
        now[0] += 60.0
        raise OSError("not made")

    monkeypatch.setattr(engine, "make_run", make)
    monkeypatch.setattr(display.time, "perf_counter", lambda: now[0])
    console = Console(record=True, width=200)
    tasks = [Counting(3, seed=seed) for seed in range(3)]
    run_with_lines(tasks, tmp_path, workers=1, console=console)
    lines = console.export_text().splitlines()
    assert [line.partition("]")[0] for line in lines[:3]] == [
        "[1/3, 2 min left",
        "[2/3, 60 s left",
        "[3/3, 0 s left",
    ]
