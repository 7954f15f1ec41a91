"""``kill -9`` at random moments: the run that is resumed each time is the same run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from botorch.exceptions.warnings import BotorchWarning

from botorch_drbo.optimizer import RobustOptimizer

ROUNDS = 8

# A worker as a user would write it, restarted until it has done all rounds. It resumes
# if there is a journal, and serves what is pending first. The world's contexts depend
# on the round alone.
WORKER = f"""
import sys, torch
from pathlib import Path
from botorch_drbo.optimizer import RobustOptimizer

torch.set_num_threads(1)
path = Path(sys.argv[1])
unit = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
side = torch.linspace(0.0, 1.0, 5, dtype=torch.double)
listed = torch.cartesian_prod(side, side) if "listed" in sys.argv else None
if path.exists() and path.stat().st_size:
    opt = RobustOptimizer.resume(path, bounds=unit)
else:
    opt = RobustOptimizer(
        "erbo", unit, unit[:, :1], journal=path, num_initial=3,
        num_restarts=2, raw_samples=16, max_iterations=5,
    )
print("ready", flush=True)
while opt.history.t < {ROUNDS}:
    t = opt.history.t
    x = opt.pending[:1] if len(opt.pending) else opt.ask(candidates=listed)
    c = torch.rand(1, 1, generator=torch.Generator().manual_seed(t), dtype=torch.double)
    if len(opt.history.contexts) == t:
        opt.tell(x, c)
    opt.tell(x, c, -(x - c).square().sum(-1))
print("done", flush=True)
"""


def start(script: Path, journal: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(script), str(journal), *options],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )


def events(journal: Path) -> list[dict]:
    return [json.loads(line) for line in journal.read_text().splitlines()][1:]


def lines(journal: Path) -> int:
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")
@pytest.mark.parametrize("options", [(), ("listed",)], ids=["box", "listed"])
def test_killed_run_is_the_uninterrupted_run(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    whole = tmp_path / "whole.jsonl"
    began = time.monotonic()
    process = start(script, whole, *options)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    loaded = time.monotonic()
    assert process.communicate(timeout=300)[0] == "done\n"
    working = time.monotonic() - loaded

    broken = tmp_path / "broken.jsonl"
    chance = random.Random(0)
    kills, seen = 0, []
    for _ in range(100):
        process = start(script, broken, *options)
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            pytest.fail("the worker did not start again")
        # By events, not by the clock: the machine may be busy now and idle later.
        goal = lines(broken) + chance.randint(2, 5)
        while process.poll() is None and lines(broken) < goal:
            time.sleep(0.002)
        time.sleep(chance.uniform(0.0, 0.05) * working)
        finished = process.poll() is not None
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        if finished:
            break
        kills += 1
        seen.append(len(broken.read_bytes()))
    assert finished and kills >= 2, (kills, time.monotonic() - began)
    assert events(broken) == events(whole)
    opt = RobustOptimizer.resume(broken)
    assert opt.history.t == ROUNDS and len(opt.pending) == 0
    assert len(opt.history.contexts) == ROUNDS


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")
def test_killed_while_writing_without_pause(tmp_path: Path) -> None:
    # Nothing but writes, so that the signal falls into one; 'random' fits no model.
    script = tmp_path / "worker.py"
    script.write_text("""
import sys, torch
from botorch_drbo.optimizer import RobustOptimizer
unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
with RobustOptimizer("random", unit, unit, journal=sys.argv[1]) as opt:
    while True:
        x = opt.ask()
        opt.tell(x, torch.tensor([0.5], dtype=torch.double), 1.0)
        print(opt.history.t, flush=True)  # the user has seen this many
""")
    journal = tmp_path / "run.jsonl"
    process = start(script, journal)
    assert process.stdout is not None
    time.sleep(0.1)
    first = process.stdout.readline()
    assert first == "1\n"
    time.sleep(random.Random(1).uniform(0.2, 0.5))
    process.send_signal(signal.SIGKILL)
    acknowledged = int((first + process.communicate()[0]).splitlines()[-1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchWarning)  # a torn line, perhaps
        opt = RobustOptimizer.resume(journal)
    # What was acknowledged is there; at most one round more was under way.
    assert acknowledged <= opt.history.t <= acknowledged + 1
    assert len(opt.pending) <= 1
    again = RobustOptimizer.from_state_dict(opt.state_dict())
    assert opt.ask().tolist() == again.ask().tolist()
