"""Worker processes: one that dies takes one call, and none outlives the run."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from botorch.exceptions.errors import InputDataError

from botorch_drbo.execution.engine import Engine
from botorch_drbo.execution.processes import Processes, Raised, Returned, attempt

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")


def act(word: str) -> object:
    """What a call in a worker does."""
    if word == "exit":
        sys.exit("as it likes")
    if word == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "sleep":
        time.sleep(600)
    if word == "unsendable":
        return lambda: None
    return word, os.getpid()


@contextmanager
def engine(retries: int = 0) -> Iterator[Engine[int]]:
    with closing(Engine[int](act, retries=retries)) as made:
        yield made


def one(made: Engine[int], word: str) -> object:
    made.start(0, word)
    made.wait()
    return made.ready.pop(0)


class Unpicklable(Exception):
    """An exception that another process cannot make again."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__("both")


def raises() -> None:
    raise Unpicklable(1, 2)


def test_an_error_that_cannot_be_sent_is_sent_as_text() -> None:
    found = attempt(raises, ())
    assert isinstance(found, Raised) and found.summary == "Unpicklable: both"
    assert "in raises" in found.details and "in attempt" not in found.details
    assert pickle.loads(pickle.dumps(found)) == found


def test_a_traceback_that_is_too_long_keeps_both_ends() -> None:
    def shout() -> None:
        raise ValueError("x" * 10**6 + "end")

    found = attempt(shout, ())
    assert isinstance(found, Raised) and len(found.details) < 30_000
    assert found.details.startswith("Traceback") and "xend" in found.details


@POSIX
def test_a_call_that_ends_its_process_is_lost_alone() -> None:
    with engine() as made:
        first = one(made, "a")
        made.start(1, "die")
        made.start(2, "b")
        while made.running:
            made.wait()
            time.sleep(0.01)
            made.look()
        died, other = made.ready[1], made.ready[2]
        assert isinstance(died, Raised) and "exit code -9" in died.summary
        assert isinstance(other, Returned)
        made.ready.clear()
        assert isinstance(first, Returned) and isinstance(one(made, "c"), Returned)
        assert "SystemExit: as it likes" in str(one(made, "exit"))
        assert "cannot be sent back" in str(one(made, "unsendable"))
        last = one(made, "d")
    assert isinstance(last, Returned) and isinstance(last.value, tuple)
    with pytest.raises(ProcessLookupError):
        os.kill(last.value[1], 0)


@POSIX
def test_workers_that_never_answer_are_no_fault_of_the_call() -> None:
    with engine(retries=1) as made:
        made.start(0, "die")
        with pytest.raises(
            InputDataError, match=r"lost 2 times.*No call has come back"
        ):
            made.wait()


def test_a_function_is_sent_by_its_code_if_it_has_no_name() -> None:
    processes = Processes(lambda v: v + 1)
    try:
        call = processes.start((2,))
        while not call.done():
            time.sleep(0.01)
        assert call.result() == Returned(3)
    finally:
        processes.close()


def test_without_cloudpickle_it_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("botorch_drbo.execution.processes.find_spec", lambda name: None)
    with pytest.raises(InputDataError, match=r"pip install cloudpickle.*ThreadPool"):
        Processes(lambda: None)


KILLED = """
import signal, subprocess, sys, time
from contextlib import closing
from botorch_drbo.execution.engine import Engine

def simulate(path):
    simulator = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with open(path, "w") as file:
        file.write(f"{simulator.pid}\\n")
    simulator.wait()

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # `pytest &` ignores it
    with closing(Engine(simulate)) as engine:
        engine.start(0, sys.argv[1])
        engine.wait()
"""


@POSIX
@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_nothing_outlives_the_process_that_calls(
    tmp_path: Path, sent: signal.Signals
) -> None:
    script, noted = tmp_path / "run.py", tmp_path / "pid"
    script.write_text(KILLED)
    root = str(Path(__file__).parents[2])
    process = subprocess.Popen(
        [sys.executable, str(script), str(noted)],
        env={**os.environ, "PYTHONPATH": root},
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while not (noted.exists() and noted.read_text().endswith("\n")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(sent)
    process.wait(timeout=60)
    simulator = int(noted.read_text())
    while time.monotonic() < deadline:
        try:
            os.kill(simulator, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{simulator}/stat").exists():
            state = Path(f"/proc/{simulator}/stat").read_text().rsplit(")", 1)[1]
            if state.split()[0] == "Z":  # dead, and nobody has asked for its status
                return
        time.sleep(0.05)
    pytest.fail("the simulator still runs")
