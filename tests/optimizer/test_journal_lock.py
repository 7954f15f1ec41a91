"""One writer, and a file that nobody else touches."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from botorch.exceptions.errors import InputDataError

from botorch_drbo.optimizer import RobustOptimizer
from tests.optimizer.journals import resume_quietly


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
    """How a forked child was refused ``work``, or an empty string."""

    def report(end: Any) -> None:
        try:
            work()
        except InputDataError as error:
            end.send(str(error))
        else:
            end.send("")

    parent_end, child_end = multiprocessing.Pipe()
    fork = multiprocessing.get_context("fork")
    child = fork.Process(target=report, args=(child_end,), daemon=True)
    child.start()
    child.join(60)
    assert child.exitcode == 0
    return parent_end.recv()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forked_child_writes_nothing_and_keeps_the_lock(toy: Any, path: Path) -> None:
    opt = toy.make("random", journal=path)
    x = opt.ask()
    content = path.read_bytes()
    tell = in_a_child(lambda: opt.tell(x, toy.contexts(1), 1.0))
    assert f"belongs to process {os.getpid()}" in tell
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
    parent_end, child_end = multiprocessing.Pipe()
    fork = multiprocessing.get_context("fork")
    child = fork.Process(target=child_end.recv, daemon=True)
    child.start()
    opt.close()
    resume_quietly(path).close()
    parent_end.send("go")
    child.join(60)
    assert child.exitcode == 0


def test_lock_ends_with_the_optimizer(toy: Any, path: Path) -> None:
    opt = toy.make("random", journal=path)
    opt.ask()
    del opt
    gc.collect()
    assert len(resume_quietly(path).pending) == 1
