"""A run on a local dask cluster, of which a worker is killed each minute.

``python -m benchmarks.experiments.killed_workers`` writes the page
``benchmarks/results/killed_workers.md``.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, cast

import dask.config
import torch
from distributed import Client, LocalCluster
from torch import Tensor

from benchmarks.commands import RESULTS
from benchmarks.run.provenance import load, machine
from benchmarks.run.report import Report, Table
from botorch_drbo import RobustOptimizer

CHEAP = {
    "surrogate": "botorch",
    "num_restarts": 1,
    "raw_samples": 32,
    "max_iterations": 10,
}
# Workers that import torch on a busy machine are silent for longer than 30 s.
PATIENT = {"distributed.comm.timeouts.tcp": "300s"}


def evaluate(x: Tensor, seconds: float, log: Path) -> tuple[Tensor, Tensor]:
    """A simulation of some seconds; a line in the log says that it has begun."""
    with log.open("a", encoding="utf-8") as file:
        file.write(f"{x.tolist()}\n")
    chance = random.Random(f"{x.tolist()}")
    time.sleep(seconds * chance.uniform(0.5, 1.5))
    c = torch.tensor([min(max(chance.gauss(0.5, 0.2), 0.0), 1.0)], dtype=x.dtype)
    return c, -(x - c).square().sum() + 0.01 * chance.gauss(0.0, 1.0)


def kill_each_minute(client: Any, over: threading.Event, period: float) -> list[float]:
    """Kill a worker after each period; the list grows by the moment of each kill."""
    kills: list[float] = []
    chance, began = random.Random(0), time.monotonic()

    def kill() -> None:
        while not over.wait(period):
            processes = list(client.run(os.getpid).values())
            if processes:
                os.kill(chance.choice(processes), signal.SIGKILL)
                kills.append(time.monotonic() - began)

    threading.Thread(target=kill, daemon=True).start()
    return kills


def run(num: int, workers: int, seconds: float, period: float) -> Report:
    """Run and report; raises AssertionError if an outcome is lost or told twice."""
    unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    dask.config.set(PATIENT)
    over, began = threading.Event(), time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address=cast(Any, None),
        ) as cluster,
        Client(cluster) as client,
        RobustOptimizer(
            "wdrbo_exact", unit, unit, journal=Path(folder) / "run.jsonl", **CHEAP
        ) as opt,
    ):
        # As on Slurm: a worker whose supervisor has given up too is replaced.
        cast(Any, cluster).adapt(minimum=workers, maximum=workers)
        log = Path(folder) / "begun"
        kills = kill_each_minute(client, over, period)
        opt.run(
            partial(evaluate, seconds=seconds, log=log),
            num=num,
            parallel=workers,
            executor=client,
        )
        over.set()
        lasted = time.monotonic() - began
        begun = Counter(log.read_text(encoding="utf-8").splitlines())
        told = Counter(str(x) for x in opt.history.X.tolist())
        opt.close()
        again = RobustOptimizer.resume(Path(folder) / "run.jsonl")
        in_journal = again.history.t
        again.close()
    statuses = Counter(trial.status for trial in opt.trials)
    assert statuses == {"complete": num} and in_journal == num, statuses
    assert set(told) == set(begun) and max(told.values()) == 1
    rows = [
        ["outcomes told", str(statuses["complete"])],
        ["outcomes in the journal, read again", str(in_journal)],
        ["trials failed or pending", "0"],
        ["decisions told twice", "0"],
        ["workers killed", str(len(kills))],
        ["evaluations begun", str(begun.total())],
        ["minutes", f"{lasted / 60:.1f}"],
    ]
    return Report(
        "A cluster that loses a worker each minute",
        [
            f"`python -m benchmarks.experiments.killed_workers --num {num} --workers "
            f"{workers} --seconds {seconds:g} --period {period:g}`",
            f"`opt.run(evaluate, num={num}, parallel={workers}, executor=client)` on a "
            f"dask LocalCluster of {workers} workers with one thread each, "
            f"`cluster.adapt(minimum={workers}, maximum={workers})` and "
            f"`{PATIENT}`; every {period:g} s one of the workers "
            "is killed (SIGKILL). An "
            f"evaluation sleeps {seconds / 2:g} to {1.5 * seconds:g} s. The recipe is "
            "`wdrbo_exact` with cheap settings, "
            f"{', '.join(f'`{k}={v!r}`' for k, v in CHEAP.items())}: it is not the "
            "model that is tested.",
            Table(["what", "number"], rows, left=1),
            "Evaluations begun more often than there are outcomes were in a worker "
            "that was killed, and were made again.",
            f"{machine()}; load of the machine at the end {load():.1f} per core.",
        ],
    )


def main() -> None:
    """Run and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--period", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=RESULTS / "killed_workers.md")
    given = parser.parse_args()
    report = run(given.num, given.workers, given.seconds, given.period)
    report.write(given.out)


if __name__ == "__main__":
    main()
