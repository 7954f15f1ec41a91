"""What a journal makes of a torn end, of damage, and of files that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import BotorchWarning

from botorch_drbo.optimizer import RobustOptimizer
from tests.optimizer.journals import resealed, resume_quietly


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
    with pytest.raises(InputDataError, match=r"Line 6 .*copy the first 5 lines"):
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


def test_checksum_covers_its_line_and_all_before(finished: Path) -> None:
    content = finished.read_bytes()
    assert b"\n".join(resealed(content.splitlines())) + b"\n" == content


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
        assert b'"y": {"tensor": [-' in lines[2]
        return [*lines[:2], lines[2].replace(b'r": [-', b'r": [ '), *lines[3:]]
    if case == "unsealed":
        event = {**json.loads(lines[-1])}
        del event["check"]
        return [*lines[:-1], json.dumps(event).encode()]
    if case == "number true":
        return resealed([lines[0], lines[1].replace(b'r": 1', b'r": true'), *lines[2:]])
    if case == "format":
        return [json.dumps({**header, "format": "csv"}).encode(), *lines[1:]]
    if case == "version":
        return [json.dumps({**header, "version": 99}).encode(), *lines[1:]]
    if case == "no config":
        return [json.dumps({**header, "config": 3}).encode(), *lines[1:]]
    if case == "algorithm":
        header["config"]["algorithm"]["name"] = "unheard_of"
        return resealed([json.dumps(header).encode(), *lines[1:]])
    if case == "problem":
        header["config"]["context_bounds"]["tensor"] = [[0.0], [1.0]]
        return resealed([json.dumps(header).encode(), *lines[1:]])
    if case == "other run":
        header["config"]["seed"] = 1
        return [*resealed([json.dumps(header).encode()]), *lines[1:]]
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
