"""The peak memory of one evaluation, forward and backward, in a process of its own.

``python -m benchmarks.speed.memory B N T``; the peak of a process never falls again.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.speed.job import Job, Problem
from benchmarks.speed.timing import value_and_gradient

_REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Peak:
    """Bytes above the start and in all, the budget in bytes, and the seconds taken."""

    used: int
    total: int
    budget: int
    seconds: float


def measure_peak(job: Job) -> Peak:
    """Evaluate expected UCB once, caches included, in a new process on one thread.

    Raises:
        RuntimeError: The process failed.
    """
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    sizes = [job.b, job.n, job.t]
    finished = subprocess.run(
        [sys.executable, "-m", "benchmarks.speed.memory", *map(str, sizes)],
        cwd=_REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode != 0:
        raise RuntimeError(f"The memory measurement failed:\n{finished.stderr}")
    return Peak(**json.loads(finished.stdout))


def main() -> None:
    """Evaluate once and print the fields of ``Peak``."""
    torch.set_num_threads(1)
    b, n, t = (int(argument) for argument in sys.argv[1:])
    small = Problem(Job(1, 2, 3))  # code and libraries load before the baseline
    value_and_gradient(small.acquisition(), small.X)
    problem = Problem(Job(b, n, t))
    value_and_gradient(small.acquisition(), small.X)  # what was paged out comes back
    _forget_peak()
    before = _resident()
    start = time.perf_counter()
    acqf = problem.acquisition()
    value_and_gradient(acqf, problem.X)
    seconds = time.perf_counter() - start
    peak = _peak()
    found = {"used": peak - before, "total": peak, "seconds": seconds}
    print(json.dumps(found | {"budget": acqf.memory_budget}))


def _forget_peak() -> None:
    """Let the peak begin here (Linux): imports may have had a higher one."""
    switch = Path("/proc/self/clear_refs")
    if switch.exists():
        switch.write_text("5")


def _peak() -> int:
    """The largest resident size so far, in bytes.

    On Linux from /proc: ``ru_maxrss`` survives exec, so that a child would report the
    peak of the process that started it.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _resident() -> int:
    """The resident size now; where the system does not tell, the largest so far."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return _peak()
    return int(statm.read_text().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    main()
