"""Every event is on the disk when its call returns, whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import InputDataError

from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.optimizer.journal import Journal
from tests.optimizer.journals import resume_quietly


def test_event_is_on_the_disk_when_the_call_returns(
    toy: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    real = os.fsync

    def spy(descriptor: int) -> None:
        real(descriptor)
        synced.append(os.fstat(descriptor).st_size)

    monkeypatch.setattr(os, "fsync", spy)
    opt = toy.make("random", journal=path)
    assert len(synced) == 2  # the file, and the folder that holds its name
    for lines in (2, 3):
        opt.ask() if lines == 2 else opt.tell(opt.pending, toy.contexts(1), 1.0)
        assert synced[-1] == path.stat().st_size
        assert len(path.read_text().splitlines()) == lines
    assert len(synced) == 4


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_nobody_may_execute_the_file(toy: Any, path: Path) -> None:
    before = os.umask(0)
    try:
        toy.make("random", journal=path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o666


def test_file_is_plain_json_lines(finished: Path) -> None:
    header, *events = map(json.loads, finished.read_text().splitlines())
    assert header["format"] == "botorch_drbo journal"
    assert header["config"]["algorithm"]["name"] == "random"
    assert [event["number"] for event in events] == list(range(1, 8))
    assert {event["event"] for event in events} == {"ask", "tell"}


def test_existing_journal_is_never_overwritten(toy: Any, finished: Path) -> None:
    content = finished.read_bytes()
    with pytest.raises(InputDataError, match="resume"):
        toy.make("random", journal=finished)
    assert finished.read_bytes() == content
    finished.write_bytes(b"")  # an empty file holds nothing to lose
    toy.make("random", journal=finished).ask()
    assert finished.stat().st_size > 0


def test_missing_file_and_missing_folder(toy: Any, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no such journal.*`journal=path`"):
        RobustOptimizer.resume(tmp_path / "nothing.jsonl")
    assert not (tmp_path / "nothing.jsonl").exists()
    with pytest.raises(FileNotFoundError):
        toy.make(journal=tmp_path / "no" / "run.jsonl")


def test_closed_optimizer_records_nothing(toy: Any, path: Path) -> None:
    opt = toy.make("random", journal=path)
    opt.close()
    opt.close()
    content = path.read_bytes()
    with pytest.raises(InputDataError, match="closed"):
        opt.ask()
    assert len(opt.pending) == 0 and path.read_bytes() == content


@pytest.mark.parametrize("call", ["write", "fsync"])
@pytest.mark.parametrize("error", [OSError(28, "No space left"), KeyboardInterrupt()])
def test_failed_write_changes_nothing(
    toy: Any,
    path: Path,
    call: str,
    error: BaseException,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opt = toy.make("random", journal=path)
    x = opt.ask()
    state, content = opt.state_dict(), path.read_bytes()
    real_write = os.write

    def half(descriptor: int, data: bytes) -> int:
        real_write(descriptor, bytes(data)[: len(data) // 2])
        raise error

    def fail(descriptor: int) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, call, half if call == "write" else fail)
        with pytest.raises(type(error)):
            opt.tell(x, toy.contexts(1), 1.0)
    assert opt.state_dict() == state
    assert path.read_bytes() == content
    opt.tell(x, toy.contexts(1), 1.0)
    opt.close()
    assert resume_quietly(path).state_dict() == opt.state_dict()


def test_interrupt_between_disk_and_memory(
    toy: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opt = toy.make("random", journal=path)
    real = Journal.append

    def interrupted(self: Journal, event: dict[str, Any]) -> None:
        real(self, event)
        raise KeyboardInterrupt  # Ctrl-C in a notebook, after the write

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            opt.ask()
    # Memory decides: the event that was not accepted is written over.
    x = opt.ask()
    opt.close()
    again = resume_quietly(path)
    assert torch.equal(again.pending, x)


def test_partial_writes_are_completed(
    toy: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:7]))
    opt = toy.make("random", journal=path)
    opt.ask(3)
    opt.close()
    assert resume_quietly(path).state_dict() == opt.state_dict()


def test_no_pickle_in_the_package() -> None:
    folder = Path(__file__).parents[2] / "botorch_drbo"
    for name in ("optimizer", "algorithms"):
        for file in (folder / name).glob("*.py"):
            text = file.read_text()
            assert "pickle" not in text and "torch.save" not in text, file
            assert "torch.load" not in text, file
