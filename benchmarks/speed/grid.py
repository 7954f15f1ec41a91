"""Expected UCB, forward and backward, over a grid of sizes, by every method."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.speed.job import METHODS, Job, Problem
from benchmarks.speed.tables import Section
from benchmarks.speed.timing import digits, median_ratio, race, seconds
from benchmarks.speed.work import Work, gemm_work

IDIOM, GEMM, FIRST = "idiom", "GEMM", "first call"
GRID = (
    Job(1, 5, 5),
    Job(10, 15, 15),
    Job(1, 64, 50),
    Job(10, 100, 100),
    Job(1, 1024, 100),
    Job(64, 1024, 15),
    Job(64, 1024, 100),
    Job(64, 1024, 100, 2),
    Job(16, 1024, 100, 4),
    Job(64, 1024, 500),
)
QUICK_GRID = (Job(1, 5, 5), Job(2, 60, 6))
_GENERIC_LIMIT = 10**7  # b n t, above which the generic method would take too long


@dataclass(frozen=True)
class Row:
    """One job: seconds of each side by name, and what there was to do."""

    job: Job
    chosen: str
    seconds: dict[str, list[float]]
    work: dict[str, Work]

    @property
    def speedup(self) -> float:
        """By how much auto is faster than BoTorch's idiom."""
        return median_ratio(self.seconds[IDIOM], self.seconds["auto"])

    @property
    def of_floor(self) -> float:
        """How many GEMMs auto costs."""
        return median_ratio(self.seconds["auto"], self.seconds[GEMM])


def measure_job(job: Job, repeats: int) -> Row:
    """Time all sides on one job, after their values have been compared.

    Raises:
        AssertionError: The sides do not compute the same thing.
    """
    problem = Problem(job)
    sides = {"auto": problem.ours("auto")}
    for method in METHODS:
        if method != "generic" or job.pairs * job.t <= _GENERIC_LIMIT:
            sides[method] = problem.ours(method)
    sides |= {IDIOM: problem.idiom(), GEMM: problem.gemm(), FIRST: problem.anew()}
    timed = race({k: v for k, v in sides.items() if v}, repeats, unlike=(GEMM,))
    return Row(
        job=job,
        chosen=problem.chosen,
        seconds=timed,
        work=problem.work(),
    )


def grid_sections(rows: Sequence[Row]) -> list[Section]:
    """The times, and the work behind them."""
    return [_times(rows), _work(rows)]


def _times(rows: Sequence[Row]) -> Section:
    slower = [str(row.job) for row in rows if row.speedup < 1.0]
    verdict = (
        "No method that auto chose is slower than BoTorch's idiom: met."
        if not slower
        else f"Auto is slower than BoTorch's idiom at {', '.join(slower)}: missed."
    )
    head = ["(b, n, t, d_c)", "auto takes", "auto", "first call", *METHODS]
    head += ["BoTorch's idiom", "one GEMM", "idiom / auto", "auto / GEMM"]
    head += ["slower than the idiom?"]
    body = [
        [
            str(row.job),
            row.chosen,
            *(
                seconds(row.seconds[side]) if side in row.seconds else ""
                for side in ("auto", FIRST, *METHODS, IDIOM, GEMM)
            ),
            digits(row.speedup),
            digits(row.of_floor),
            "**yes**" if row.speedup < 1.0 else "no",
        ]
        for row in rows
    ]
    return Section(
        title="Expected UCB over contexts, forward and backward",
        text=(
            "The mean upper confidence bound of b decisions over n contexts, with its "
            "gradient, from t observations. `auto` is what a user gets; its *first "
            "call*, once per iteration, also builds what the others reuse. The methods "
            "beside it are forced with `method=`, empty where one does not take "
            "the job or would hand it to another (`generic`: where it would take too "
            "long). *BoTorch's idiom* is `model.posterior` of b x n x 1 x d, in slices "
            "of decisions where its arrays would be too large. *One GEMM* is the bare "
            "product (b n x t) @ (t x t)."
        ),
        head=head,
        rows=body,
        notes=[verdict],
    )


def _work(rows: Sequence[Row]) -> Section:
    body = []
    for row in rows:
        dense, product = row.work["dense"], row.work.get("product")
        chosen = product or dense
        gemm = gemm_work(row.job.pairs, row.job.t)
        time, floor = (statistics.median(row.seconds[s]) for s in ("auto", GEMM))
        body.append(
            [
                str(row.job),
                *_numbers(dense),
                *_numbers(product),
                digits(dense.flops / chosen.flops),
                digits(chosen.flops / time / 1e9),
                digits(gemm.flops / floor / 1e9),
            ]
        )
    return Section(
        title="The work behind it",
        text=(
            "By formula (`benchmarks/speed/work.py`): dense, b n (2 t^2 + 6 d t + 4 t) "
            "flops; with r contexts that speak for all, b r (2 t^2 + 6 d t + 4 t) + "
            "8 b r n. Exponentials are not counted. Bytes: each factor of a product "
            "read once, each product written once. The last columns are the flops per "
            "second of auto, by its own formula, and of the GEMM."
        ),
        head=[
            "(b, n, t, d_c)",
            "dense: Mflop",
            "dense: MiB",
            "product view: Mflop",
            "product view: MiB",
            "dense / auto, flops",
            "auto: Gflop/s",
            "GEMM: Gflop/s",
        ],
        rows=body,
    )


def _numbers(work: Work | None) -> list[str]:
    """Millions of flops, and MiB."""
    if work is None:
        return ["", ""]
    return [digits(work.flops / 1e6), digits(work.bytes / 2**20)]
