"""A long run: does memory stay flat, and does an ask cost no more than its model?

    python -m tests.attacks.soak --rounds 1000

Each round asks with a model of all outcomes and tells one. Printed every hundredth of
the run: seconds of an ask, seconds of one Cholesky factorisation of the same size on
the same machine at the same time, and the memory of the process. At the end the same in
a Markdown table. The hyper-parameters are known, and the search is short, so that what
is seen is the bookkeeping: a fit only adds factorisations.
"""

from __future__ import annotations

import argparse
import gc
import time
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from botorch_drbo import RobustOptimizer
from botorch_drbo.surrogate import FixedHyperparameters

UNIT = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
CONTEXTS = torch.tensor([[0.0], [1.0]], dtype=torch.double)


def memory() -> float:
    """What the process holds now, in megabytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmRSS in /proc/self/status")


def cholesky_seconds(size: int) -> float:
    """Of one factorisation in float64, the fastest of five."""
    matrix = torch.eye(size, dtype=torch.double) * size + 1.0
    times = []
    for _ in range(5):
        start = time.process_time()
        torch.linalg.cholesky(matrix)
        times.append(time.process_time() - start)
    return min(times)


def soak(rounds: int, journal: Path | None) -> list[tuple[int, float, float, float]]:
    """Rounds, seconds of an ask, of a factorisation, megabytes: a row now and then."""
    opt = RobustOptimizer(
        "wdrbo_exact",
        UNIT,
        CONTEXTS,
        seed=0,
        journal=journal,
        hyperparameters=FixedHyperparameters((0.3, 0.3, 0.5), 0.01),
        num_restarts=1,
        raw_samples=4,
        max_iterations=3,
    )
    generator = torch.Generator().manual_seed(0)
    every = max(1, rounds // 20)
    rows, spent = [], 0.0
    for t in range(1, rounds + 1):
        start = time.process_time()
        x = opt.ask()
        spent += time.process_time() - start
        c = torch.rand(1, 1, generator=generator, dtype=torch.double)
        opt.tell(x, c, -(x - c).square().sum(-1, keepdim=True))
        if t % every == 0:
            gc.collect()
            row = (t, spent / every, cholesky_seconds(t), memory())
            rows.append(row)
            spent = 0.0
            print("{:6d} {:9.4f} s {:9.6f} s {:8.1f} MB".format(*row), flush=True)
    opt.close()
    return rows


def main() -> None:
    """Run it, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.attacks.soak")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--out", type=Path, help="the table, as Markdown")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    assert not tracemalloc.is_tracing()  # it would count as memory of the run
    with TemporaryDirectory() as folder:
        rows = soak(arguments.rounds, Path(folder) / "run.jsonl")
    lines = ["| rounds | ask, s | Cholesky, ms | memory, MB |", "|--:|--:|--:|--:|"]
    lines += [f"| {t} | {a:.3f} | {1000 * c:.2f} | {m:.0f} |" for t, a, c, m in rows]
    table = "\n".join(lines)
    print(table)
    if arguments.out:
        arguments.out.write_text(f"# A long run\n\n{table}\n")


if __name__ == "__main__":
    main()
