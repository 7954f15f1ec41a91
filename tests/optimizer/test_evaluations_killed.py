"""``run`` under fire: its process killed at any moment, Ctrl-C, workers of dask killed.

Each evaluation writes a line into a file when it ends, from whichever process: so that
a test knows what was evaluated, beside what the run was told.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor

from botorch_drbo.optimizer import RobustOptimizer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals"),
]

TOTAL = 16
SCRIPT = f"""
import os, signal, sys, time, torch
from pathlib import Path
from botorch_drbo.optimizer import RobustOptimizer

def evaluate(x):
    held, log = Path(sys.argv[2] + ".held"), Path(sys.argv[2])
    if held.exists() and log.exists() and len(log.read_text().splitlines()) >= 3:
        Path(sys.argv[2] + ".waiting").write_text("held\\n")
        time.sleep(3600.0)
    time.sleep(0.1 * x[0].item())
    c = x[:1] ** 2
    with open(sys.argv[2], "a") as file:
        file.write(f"{{x.tolist()}}\\n")
    return c, -x.square().sum()

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # `pytest &` ignores it
    path = Path(sys.argv[1])
    unit = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
    if path.exists() and path.stat().st_size:
        opt = RobustOptimizer.resume(path, bounds=unit)
    else:
        opt = RobustOptimizer("random", unit, unit[:, :1], journal=path)
    opt.run(evaluate, total={TOTAL}, parallel=2)
"""


def start(script: Path, *arguments: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(script), *map(str, arguments)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )


def size(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_for(path: Path, lines: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 240
    while process.poll() is None and size(path) < lines:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def resumed(path: Path) -> RobustOptimizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchWarning)  # a torn line, perhaps
        return RobustOptimizer.resume(path)


def check_whole(opt: RobustOptimizer, log: Path) -> None:
    """Every decision has one outcome, its own, and was evaluated."""
    assert len(opt.trials) == opt.history.t == TOTAL and not len(opt.pending)
    history = opt.history
    assert torch.allclose(history.C, history.X[:, :1].square())
    assert torch.allclose(history.Y, -history.X.square().sum(-1, keepdim=True))
    told = Counter(map(str, history.X.tolist()))
    assert set(told.values()) == {1}
    assert told <= Counter(log.read_text().splitlines())


def test_killed_at_any_moment_it_goes_on(tmp_path: Path) -> None:
    script, journal, log = (tmp_path / n for n in ("run.py", "run.jsonl", "log"))
    script.write_text(SCRIPT)
    chance, kills, outcomes = random.Random(3), 0, 0
    for _ in range(30):
        process = start(script, journal, log)
        # By events and not by the clock: asks and tells are about two thirds each.
        wait_for(journal, size(journal) + chance.randint(3, 12), process)
        time.sleep(chance.uniform(0.0, 0.1))
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        kills += 1
        if size(journal):
            with resumed(journal) as opt:
                assert opt.history.t >= outcomes  # nothing is lost
                outcomes = opt.history.t
                assert len(opt.trials) - outcomes == len(opt.pending) <= 2
    process.communicate(timeout=60)
    assert process.returncode == 0 and kills >= 2
    with resumed(journal) as opt:
        check_whole(opt, log)


def test_ctrl_c_leaves_what_is_pending(tmp_path: Path) -> None:
    script, journal, log = (tmp_path / n for n in ("run.py", "run.jsonl", "log"))
    script.write_text(SCRIPT)
    held = tmp_path / "log.held"
    held.touch()  # what begins after three outcomes does not end: it is pending
    process = start(script, journal, log)
    # Not a number of lines: two outcomes may come at once, before the next is asked.
    wait_for(tmp_path / "log.waiting", 1, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    held.unlink()
    assert process.returncode == -signal.SIGINT and "KeyboardInterrupt" in said
    with resumed(journal) as opt:
        pending = [t.number for t in opt.trials if t.status == "pending"]
        assert 1 <= len(pending) <= 2 and opt.history.t + len(pending) < TOTAL
    shown = ", ".join(map(str, pending))
    assert f"Pending in {journal}: trials {shown}. " in " ".join(said.split())
    process = start(script, journal, log)
    process.communicate(timeout=240)
    assert process.returncode == 0
    with resumed(journal) as opt:
        check_whole(opt, log)


def die_once(x: Tensor, marks: Path) -> Any:
    """The third and the seventh decision to come end their worker, the first time."""
    number = len(list(marks.iterdir()))
    (marks / f"{x.item()}").touch()
    if number in (2, 6):
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.02)
    return torch.rand(1), -x.square().sum()


def test_workers_of_dask_may_be_killed(tmp_path: Path) -> None:
    from functools import partial

    import dask
    from distributed import Client, LocalCluster

    unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    opt = RobustOptimizer("random", unit, unit, journal=tmp_path / "run.jsonl")
    with (
        # Else dask itself makes a call three times more before it gives it up.
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        evaluate = partial(die_once, marks=tmp_path / "marks")
        (tmp_path / "marks").mkdir()
        opt.run(evaluate, num=12, parallel=2, executor=client)
    assert [t.status for t in opt.trials] == ["complete"] * 12
    opt.close()
    with RobustOptimizer.resume(tmp_path / "run.jsonl") as again:
        assert again.history.t == 12


def test_a_process_of_a_pool_may_be_killed(tmp_path: Path) -> None:
    from functools import partial

    unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    opt = RobustOptimizer("random", unit, unit)
    evaluate = partial(die_once, marks=tmp_path)
    opt.run(evaluate, num=12, parallel=2)
    assert [t.status for t in opt.trials] == ["complete"] * 12
