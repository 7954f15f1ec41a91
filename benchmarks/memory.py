"""Measures the peak memory of one evaluation: ``python -m benchmarks.memory B N T``.

A process of its own, because the peak of a process never falls again.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import torch

from benchmarks.speed import evaluate_once


def main() -> None:
    """Evaluate once and print ``used`` and ``budget`` in bytes, and ``seconds``."""
    torch.set_num_threads(1)
    b, n, t = (int(argument) for argument in sys.argv[1:])
    warm_up, _ = evaluate_once(1, 2, 3)  # code and libraries load before the baseline
    warm_up()
    evaluate, budget = evaluate_once(b, n, t)
    warm_up()  # what the system has paged out meanwhile comes back
    _forget_peak()
    before = _resident()
    start = time.perf_counter()
    evaluate()
    seconds = time.perf_counter() - start
    used = _peak() - before
    print(json.dumps({"used": used, "budget": budget, "seconds": seconds}))


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
