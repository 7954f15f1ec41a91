"""The journal: durable, exact, repaired at its end only, one writer."""

from __future__ import annotations

import gc
import hashlib
import json
import multiprocessing
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import BotorchWarning

from botorch_drbo import ContextSet
from botorch_drbo.algorithms import ALGORITHMS
from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.optimizer.journal import Journal
from botorch_drbo.schedules import InverseSquareRoot


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


@pytest.fixture
def finished(toy: Any, path: Path) -> Path:
    """A journal of a design of three rounds, and one decision pending."""
    with toy.make("random", journal=path) as opt:
        toy.run(opt, 0, 3)
        opt.ask()
    return path


def resume_quietly(path: Path, **checks: Any) -> RobustOptimizer:
    with warnings.catch_warnings():
        warnings.simplefilter("error", BotorchWarning)
        return RobustOptimizer.resume(path, **checks)


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_resumed_run_asks_what_the_first_would_have_asked(
    toy: Any, path: Path, name: str
) -> None:
    whole = toy.run(toy.make(name), 0, 6)
    with toy.make(name, journal=path) as opt:
        first = toy.run(opt, 0, 4)
    with resume_quietly(path) as opt:
        second = toy.run(opt, 4, 6)
        assert opt.history.t == 6
    pairs = zip(whole, first + second, strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_everything_survives(toy: Any, path: Path) -> None:
    reference = ContextSet(torch.rand(3, 1).double(), torch.rand(3).double())
    opt = toy.make(
        "wdrbo",
        journal=path,
        seed=12,
        maximize=False,
        radius=InverseSquareRoot(1 / 3),
        beta=1 / 7,
        reference=reference,
    )
    x = opt.ask(3)
    opt.tell(x[0], toy.contexts(1))
    opt.tell(x[1] * (1 - 1e-16), torch.tensor([1 / 3]).double(), 0.1 + 0.2)
    opt.tell(x[2], torch.tensor([2.5e-300]).double(), -1e140, closes_pending=False)
    opt.close()
    again = resume_quietly(path)
    assert again.state_dict() == opt.state_dict()
    for name in ("X", "C", "Y", "contexts"):
        assert torch.equal(getattr(again.history, name), getattr(opt.history, name))
    assert torch.equal(again.pending, opt.pending)
    assert torch.equal(again.space.bounds, toy.bounds)


def test_float32_is_exact(toy: Any, path: Path) -> None:
    bounds, context_bounds = toy.bounds.float(), toy.context_bounds.float()
    opt = RobustOptimizer("random", bounds, context_bounds, journal=path)
    x = opt.ask(2)
    opt.tell(x, torch.rand(2, 1), torch.rand(2))
    opt.close()
    again = resume_quietly(path)
    assert again.history.X.dtype == torch.float32
    assert torch.equal(again.history.X, x)
    assert torch.equal(again.history.Y, opt.history.Y)
    assert torch.equal(
        again.ask(), RobustOptimizer.from_state_dict(opt.state_dict()).ask()
    )


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


def test_ask_that_never_reached_the_user_is_pending(finished: Path) -> None:
    opt = resume_quietly(finished)
    assert opt.pending.shape == (1, 2)
    assert opt.history.t == 3


def test_file_is_plain_json_lines(finished: Path) -> None:
    header, *events = map(json.loads, finished.read_text().splitlines())
    assert header["format"] == "botorch_drbo journal"
    assert header["config"]["algorithm"]["name"] == "random"
    assert [event["number"] for event in events] == list(range(1, 8))
    assert {event["event"] for event in events} == {"ask", "tell"}


def test_torn_last_line_at_every_byte(finished: Path) -> None:
    content = finished.read_bytes()
    kept = content.rindex(b"\n", 0, -1) + 1  # where the last line begins
    whole = RobustOptimizer.resume(finished)
    events = whole.state_dict()["events"]
    whole.close()
    for end in range(kept + 1, len(content)):
        finished.write_bytes(content[:end])
        with pytest.warns(BotorchWarning, match="last line"):
            opt = RobustOptimizer.resume(finished)
        opt.close()
        # Only the line end is missing: the event is whole, and is kept.
        complete = end == len(content) - 1
        assert opt.state_dict()["events"] == (events if complete else events[:-1])
        assert finished.read_bytes() == (content if complete else content[:kept])
        resume_quietly(finished).close()  # repaired


@pytest.mark.parametrize("garbage", [b"\x00" * 100, b"\xff\xfe{", b'{"number": 8,'])
def test_garbage_at_the_end(finished: Path, garbage: bytes) -> None:
    content = finished.read_bytes()
    finished.write_bytes(content + garbage)
    with pytest.warns(BotorchWarning, match="cut off"):
        opt = RobustOptimizer.resume(finished)
    assert finished.read_bytes() == content
    opt.ask()
    opt.close()
    assert len(resume_quietly(finished).pending) == 2


@pytest.mark.parametrize("case", ["garbage", "blank", "last line", "line end", "tail"])
def test_damaged_last_line_is_refused_and_untouched(finished: Path, case: str) -> None:
    content = finished.read_bytes()
    damaged = {
        "garbage": content + b'{"number": 8,\n',
        "blank": content + b"\n",
        "last line": content[:-30] + b"~" + content[-29:],
        "line end": content[:-1] + b"\x0b",  # it was acknowledged: not torn
        "tail": content[:-1] + b'{"event": "ask"',
    }[case]
    finished.write_bytes(damaged)
    with pytest.raises(InputDataError, match=r"Line \d .*copy the first \d lines"):
        RobustOptimizer.resume(finished)
    assert finished.read_bytes() == damaged


def test_advice_after_damage_holds(toy: Any, finished: Path, tmp_path: Path) -> None:
    lines = finished.read_bytes().splitlines(keepends=True)
    finished.write_bytes(b"".join([*lines[:5], lines[5].upper(), *lines[6:]]))
    with pytest.raises(InputDataError, match="Line 6 .*copy the first 5 lines"):
        RobustOptimizer.resume(finished)
    before = tmp_path / "before.jsonl"
    before.write_bytes(b"".join(lines[:5]))
    with resume_quietly(before) as opt:
        assert opt.history.t == 2
        toy.run(opt, 2, 3)
        opt.ask()
    assert before.read_bytes() == finished.read_bytes().replace(
        lines[5].upper(), lines[5]
    )


def test_run_goes_on_after_a_repair(toy: Any, path: Path) -> None:
    whole = toy.run(toy.make("erbo"), 0, 5)
    with toy.make("erbo", journal=path) as opt:
        toy.run(opt, 0, 4)
        opt.ask()
    path.write_bytes(path.read_bytes()[:-20])  # torn in the middle of that ask
    with pytest.warns(BotorchWarning, match="cut off"):
        opt = RobustOptimizer.resume(path)
    assert torch.equal(opt.ask(), whole[4])


def reseal(lines: list[bytes]) -> list[bytes]:
    """Give lines the checksums that they would have been written with."""
    check, sealed = "", []
    for line in lines:
        record = json.loads(line)
        record.pop("check", None)
        body = json.dumps(record).encode()[:-1]
        check = hashlib.sha256(check.encode() + body).hexdigest()[:16]
        sealed.append(body + f', "check": "{check}"}}'.encode())
    return sealed


def test_checksum_covers_its_line_and_all_before(finished: Path) -> None:
    content = finished.read_bytes()
    assert b"\n".join(reseal(content.splitlines())) + b"\n" == content


def spoil(lines: list[bytes], case: str) -> list[bytes]:
    header = json.loads(lines[0])
    if case == "json":
        return [*lines[:2], b'{"event": "tell", "nu', *lines[2:]]
    if case == "lost":
        return [*lines[:2], *lines[3:]]
    if case == "twice":
        return [*lines[:3], *lines[2:]]
    if case == "blank":
        return [*lines[:2], b"", *lines[2:]]
    if case == "number":
        return [*lines[:2], b"3", *lines[2:]]
    if case == "outcome":
        assert b'"y": [-' in lines[2]
        return [*lines[:2], lines[2].replace(b'"y": [-', b'"y": [ '), *lines[3:]]
    if case == "unsealed":
        event = {**json.loads(lines[-1])}
        del event["check"]
        return [*lines[:-1], json.dumps(event).encode()]
    if case == "number true":
        return reseal([lines[0], lines[1].replace(b'r": 1', b'r": true'), *lines[2:]])
    if case == "format":
        return [json.dumps({**header, "format": "csv"}).encode(), *lines[1:]]
    if case == "version":
        return [json.dumps({**header, "version": 99}).encode(), *lines[1:]]
    if case == "no config":
        return [json.dumps({**header, "config": 3}).encode(), *lines[1:]]
    if case == "algorithm":
        header["config"]["algorithm"]["name"] = "unheard_of"
        return reseal([json.dumps(header).encode(), *lines[1:]])
    if case == "problem":
        header["config"]["context_bounds"] = [[0.0], [1.0]]
        return reseal([json.dumps(header).encode(), *lines[1:]])
    if case == "other run":
        header["config"]["seed"] = 1
        return [*reseal([json.dumps(header).encode()]), *lines[1:]]
    if case == "headless":
        return lines[1:]
    if case == "table":
        return [b"x1,x2,c,y", b"0.1,0.2,0.3,0.4"]
    raise AssertionError(case)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("json", "Line 3 .* not JSON"),
        ("lost", "Line 3 .* number 2"),
        ("twice", "Line 4 .* number 3"),
        ("blank", "Line 3 .* not JSON"),
        ("number", "Line 3 .* number 2"),
        ("number true", "Line 2 .* number 1"),
        ("outcome", "Line 3 .* checksum.*copy the first 2 lines"),
        ("unsealed", "Line 8 .* checksum"),
        ("format", "does not begin with the header"),
        ("version", "version 99"),
        ("no config", "no `config`"),
        ("algorithm", "no algorithm 'unheard_of'"),
        ("problem", r"Event 2 \(line 3\) .* does not fit"),
        ("other run", "Line 2 .* checksum"),
        ("headless", "does not begin with the header"),
        ("table", "does not begin with the header"),
    ],
)
def test_foreign_or_damaged_file_is_refused_and_untouched(
    finished: Path, case: str, message: str
) -> None:
    lines = spoil(finished.read_bytes().splitlines(), case)
    # A torn end would be repaired in a good file: here nothing may be written.
    content = b"\n".join(lines) + b'\n{"torn'
    finished.write_bytes(content)
    for _ in range(2):  # the lock is given back as well
        with pytest.raises(InputDataError, match=message):
            RobustOptimizer.resume(finished)
    assert finished.read_bytes() == content


@pytest.mark.parametrize("kept", [0, 1, 22, -200, -2])
def test_file_without_a_whole_header(finished: Path, kept: int) -> None:
    content = finished.read_bytes().splitlines(keepends=True)[0][:kept]
    finished.write_bytes(content)
    with pytest.raises(InputDataError, match="had recorded nothing"):
        RobustOptimizer.resume(finished)
    assert finished.read_bytes() == content


@pytest.mark.parametrize(
    "content", [b"x1,x2,c,y\n0.1,0.2,0.3,0.4\n", b"x1", b"3", b"\n"]
)
def test_nothing_suggests_deleting_a_foreign_file(
    toy: Any, path: Path, content: bytes
) -> None:
    path.write_bytes(content)
    for call in (RobustOptimizer.resume, lambda p: toy.make(journal=p)):
        with pytest.raises(InputDataError, match="path") as raised:
            call(path)
        assert "delete" not in str(raised.value)
        assert "remove" not in str(raised.value)
    assert path.read_bytes() == content


def test_journal_of_another_problem(toy: Any, finished: Path) -> None:
    for name in ("bounds", "context_bounds"):
        with pytest.raises(InputDataError, match=f"`{name}`.*another problem"):
            RobustOptimizer.resume(finished, **{name: 2 * getattr(toy, name)})
    resume_quietly(
        finished, bounds=toy.bounds, context_bounds=toy.context_bounds.float()
    )


def test_existing_journal_is_never_overwritten(toy: Any, finished: Path) -> None:
    content = finished.read_bytes()
    with pytest.raises(InputDataError, match="resume"):
        toy.make("random", journal=finished)
    assert finished.read_bytes() == content
    finished.write_bytes(b"")  # an empty file holds nothing to lose
    toy.make("random", journal=finished).ask()
    assert finished.stat().st_size > 0


def test_missing_file_and_missing_folder(toy: Any, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        RobustOptimizer.resume(tmp_path / "nothing.jsonl")
    assert not (tmp_path / "nothing.jsonl").exists()
    with pytest.raises(FileNotFoundError):
        toy.make(journal=tmp_path / "no" / "run.jsonl")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no flock on Windows")
def test_one_writer(toy: Any, path: Path) -> None:
    opt = toy.make("random", journal=path)
    with pytest.raises(InputDataError, match="in use"):
        RobustOptimizer.resume(path)
    with pytest.raises(InputDataError, match="in use"):
        toy.make("random", journal=path)
    script = (
        "import sys; from botorch_drbo.optimizer import RobustOptimizer;"
        "RobustOptimizer.resume(sys.argv[1])"
    )
    other = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert other.returncode == 1 and "in use" in other.stderr
    opt.ask()  # undisturbed
    opt.close()
    resume_quietly(path).close()


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("removed", "removed or renamed"),
        ("moved", "removed or renamed"),
        ("replaced", "replaced"),
        ("emptied", "has 0 bytes where"),
        ("cut", r"has \d+ bytes where"),
        ("longer", r"has \d+ bytes where"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps an open file")
def test_file_changed_under_a_live_run(
    toy: Any, path: Path, tmp_path: Path, case: str, message: str
) -> None:
    opt = toy.make("random", journal=path)
    toy.run(opt, 0, 2)
    x = opt.ask()
    state, content, other = opt.state_dict(), path.read_bytes(), tmp_path / "other"
    if case == "removed":
        path.unlink()
    elif case == "moved":
        path.rename(other)
    elif case == "replaced":  # as by an editor, a copy or a synchronised folder
        other.write_bytes(content)
        os.replace(other, path)
    else:
        now = {"emptied": b"", "cut": content[:-9], "longer": content + b"#\n"}[case]
        path.write_bytes(now)
    files = {file: file.read_bytes() for file in tmp_path.iterdir()}
    for call in (opt.ask, lambda: opt.tell(x, toy.contexts(1), 1.0)):
        with pytest.raises(InputDataError, match=message + ".*from_state_dict"):
            call()
        assert opt.state_dict() == state
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == files
    # What the message advises.
    new = tmp_path / "new.jsonl"
    with RobustOptimizer.from_state_dict(opt.state_dict(), journal=new) as again:
        again.tell(x, toy.contexts(1), 1.0)
    assert resume_quietly(new).history.t == 3
    if case == "moved":
        other.rename(path)
    elif case != "removed" and case != "replaced":
        path.write_bytes(content)
    else:
        return
    opt.tell(x, toy.contexts(1), 1.0)
    opt.close()
    assert resume_quietly(path).state_dict() == opt.state_dict()


def in_a_child(work: Any) -> str:
    """What went wrong with ``work`` in a forked child, or an empty string."""

    def report(end: Any) -> None:
        try:
            work()
        except Exception as error:
            end.send(f"{type(error).__name__}: {error}")
        else:
            end.send("")

    mine, yours = multiprocessing.Pipe()
    fork = multiprocessing.get_context("fork")
    child = fork.Process(target=report, args=(yours,), daemon=True)
    child.start()
    child.join(60)
    assert child.exitcode == 0
    return mine.recv()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forked_child_writes_nothing_and_keeps_the_lock(toy: Any, path: Path) -> None:
    opt = toy.make("random", journal=path)
    x = opt.ask()
    content = path.read_bytes()
    tell = in_a_child(lambda: opt.tell(x, toy.contexts(1), 1.0))
    assert "InputDataError" in tell and f"belongs to process {os.getpid()}" in tell
    assert "belongs to process" in in_a_child(opt.ask)
    assert in_a_child(opt.close) == ""
    assert "in use" in in_a_child(lambda: RobustOptimizer.resume(path))
    with pytest.raises(InputDataError, match="in use"):
        RobustOptimizer.resume(path)
    assert path.read_bytes() == content
    opt.tell(x, toy.contexts(1), 1.0)  # the parent is unharmed
    opt.close()
    assert resume_quietly(path).state_dict() == opt.state_dict()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_living_child_does_not_keep_the_lock(toy: Any, path: Path) -> None:
    opt = toy.make("random", journal=path)
    mine, yours = multiprocessing.Pipe()
    fork = multiprocessing.get_context("fork")
    child = fork.Process(target=yours.recv, daemon=True)
    child.start()
    opt.close()
    resume_quietly(path).close()
    mine.send("go")
    child.join(60)
    assert child.exitcode == 0


@pytest.mark.parametrize("name", ["wdrbo", "gp_ucb", "stable_opt"])
def test_resumed_run_asks_the_same_under_any_default_dtype(
    toy: Any, path: Path, name: str
) -> None:
    whole = toy.run(toy.make(name), 0, 5)
    recommended = toy.make(name)
    toy.run(recommended, 0, 4)
    before = torch.get_default_dtype()
    try:
        with toy.make(name, journal=path) as opt:
            first = toy.run(opt, 0, 2)
        for dtype, last in ((torch.float64, 4), (torch.float32, 5)):
            torch.set_default_dtype(dtype)
            with resume_quietly(path) as opt:
                assert opt.history.X.dtype == torch.float64
                first += toy.run(opt, len(first), last)
                if last == 4:
                    best = opt.recommend()
            assert torch.get_default_dtype() == dtype
        torch.set_default_dtype(torch.float64)
        again = toy.run(toy.make(name), 0, 5)
    finally:
        torch.set_default_dtype(before)
    assert all(torch.equal(a, b) for a, b in zip(whole, first, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(whole, again, strict=True))
    assert torch.equal(best.x, recommended.recommend().x)


OLD = Path(__file__).parent / "data" / "version_1.jsonl"  # written by 0.1.0


def test_journal_of_version_1_is_read_and_continued(toy: Any, path: Path) -> None:
    old = OLD.read_bytes()
    path.write_bytes(old)
    state = json.loads(OLD.with_name("version_1_state.json").read_text())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchWarning)  # other versions, perhaps
        whole = RobustOptimizer.from_state_dict(state)
        with RobustOptimizer.resume(path) as opt:
            assert opt.state_dict()["events"] == state["events"]
            assert path.read_bytes() == old
            first = toy.run(opt, 7, 8)
        with RobustOptimizer.resume(path) as opt:
            second = toy.run(opt, 8, 9)
            events = opt.state_dict()["events"]
        assert all(map(torch.equal, toy.run(whole, 7, 9), first + second))
        assert path.read_bytes().startswith(old)
        assert RobustOptimizer.resume(path).state_dict()["events"] == events


def test_continuation_of_version_1_protects_what_was_there(path: Path) -> None:
    path.write_bytes(OLD.read_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchWarning)
        with RobustOptimizer.resume(path) as opt:
            opt.tell(opt.pending[:1], torch.tensor([[5.0]]).double(), 1.0)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"-0.688837", b"-0.688836"))
    with pytest.raises(InputDataError, match="Line 15 .* checksum"):
        RobustOptimizer.resume(path)
    lines = content.splitlines()  # and no line without a checksum after one with
    path.write_bytes(content + b'{"event": "ask", "x": [[0.0, 0.0]], "number": 15}\n')
    with pytest.raises(InputDataError, match="Line 16 .* checksum"):
        RobustOptimizer.resume(path)
    assert len(lines) == 15


def test_torn_end_of_version_1(path: Path) -> None:
    content = OLD.read_bytes()
    kept = content.rindex(b"\n", 0, -1) + 1
    for end in (kept + 1, kept + 40, len(content) - 2, len(content) - 1):
        path.write_bytes(content[:end])
        with pytest.warns(BotorchWarning, match="last line"):
            RobustOptimizer.resume(path).close()
        whole = end == len(content) - 1
        assert path.read_bytes() == (content if whole else content[:kept])
    path.write_bytes(content[:-10] + b"\n")
    with pytest.raises(InputDataError, match="Line 14 .* not JSON"):
        RobustOptimizer.resume(path)


def test_lock_ends_with_the_optimizer(toy: Any, path: Path) -> None:
    opt = toy.make("random", journal=path)
    opt.ask()
    del opt
    gc.collect()
    assert len(resume_quietly(path).pending) == 1


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


def test_state_goes_on_in_a_new_journal(toy: Any, path: Path) -> None:
    opt = toy.make("random")
    toy.run(opt, 0, 2)
    with RobustOptimizer.from_state_dict(opt.state_dict(), journal=path) as again:
        x = again.ask()
    assert torch.equal(x, opt.ask())
    assert resume_quietly(path).state_dict() == opt.state_dict()


def test_no_pickle_in_the_package() -> None:
    folder = Path(__file__).parents[2] / "botorch_drbo"
    for name in ("optimizer", "algorithms"):
        for file in (folder / name).glob("*.py"):
            text = file.read_text()
            assert "pickle" not in text and "torch.save" not in text, file
            assert "torch.load" not in text, file
