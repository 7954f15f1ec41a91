"""The cost of the ambiguity in a constraint, considered and ignored.

The same search on ``Reservoir``, whose robustly feasible decisions are known. The
constraint counts under the worst law of the ball, under the reference alone, or not at
all. The world's law is another than the reference, and inside the ball.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import torch
from torch import Tensor

from benchmarks.problems import Reservoir
from benchmarks.run.config import check_counts
from benchmarks.run.display import run_experiment
from benchmarks.run.report import Report, Table, estimate
from benchmarks.run.storage import Row, RunKey
from botorch_drbo import RobustOptimizer
from botorch_drbo.adversaries import (
    Adversary,
    FittedRound,
    SearchProblem,
    WorstCaseProblem,
)
from botorch_drbo.adversaries.empirical import AroundContexts
from botorch_drbo.ambiguity import NoAmbiguity
from botorch_drbo.recipes import make_recipe

LEVEL, RADIUS = 0.8, 0.2
INITIAL, NOISE = 6, 0.02
LAPTOP = {"num_restarts": 4, "raw_samples": 128, "max_iterations": 50}


@dataclass(frozen=True, kw_only=True, eq=False)
class PlainChance(Adversary):
    """That of ``dro``, but constraints count under the reference alone."""

    radius: float = RADIUS

    def search_problem(self, state: FittedRound) -> SearchProblem:
        """As of ``dro``."""
        return self._ball().search_problem(state)

    def worst_case_problem(self, state: FittedRound) -> WorstCaseProblem:
        """As of ``dro``."""
        return self._ball().worst_case_problem(state)

    def chance_constraint_problem(self, state: FittedRound) -> WorstCaseProblem:
        """The reference, taken at its word."""
        return WorstCaseProblem.of(state.contexts(), NoAmbiguity(), state.space)

    def _ball(self) -> AroundContexts:
        return AroundContexts(radius=self.radius)


METHODS: dict[str, tuple[Adversary, bool]] = {
    "robust": (AroundContexts(radius=RADIUS), True),
    "ambiguity ignored": (PlainChance(), True),
    "constraint ignored": (AroundContexts(radius=RADIUS), False),
}


@dataclass(frozen=True)
class Task:
    """One run; all methods of a seed meet the same contexts and noise.

    Args:
        method: A key of ``METHODS``.
        seed: Picks the design, the contexts and the noise.
        rounds: How many decisions after the design.
    """

    method: str
    seed: int
    rounds: int
    resumable: ClassVar[bool] = False

    @property
    def key(self) -> RunKey:
        """Where its rows are kept."""
        return RunKey("reservoir", self.method, self.seed)

    def header(self) -> dict[str, Any]:
        """Its name, and the number of rounds: what counts is behind the last."""
        about = {"experiment": "constraints", **self.key._asdict()}
        return {**about, "rounds": self.rounds}

    def play(self, done: Sequence[Row]) -> Iterator[Row]:
        """A row for each decision after the design: was the constraint met?"""
        function = Reservoir(noise_std=NOISE)
        adversary, told = METHODS[self.method]
        options = {"reference": function.reference, "feasibility": LEVEL, **LAPTOP}
        options["surrogate"] = "botorch"  # as the constraints themselves are modelled
        opt = RobustOptimizer(
            make_recipe("dro", adversary=adversary, **options),
            function.bounds,
            function.context_bounds,
            seed=self.seed,
            num_initial=INITIAL,
        )
        generator = torch.Generator().manual_seed(self.seed)
        contexts = function.sample_contexts(INITIAL + self.rounds, self.seed)
        for number, c in enumerate(contexts, start=-INITIAL):
            start = time.perf_counter()
            x, c = opt.ask(), c.unsqueeze(0)
            seconds = time.perf_counter() - start
            g = function.constraints(x, c)
            y = function.observe(x, c, generator=generator)
            opt.tell(x, c, y, constraints=g if told else None)
            last = number == self.rounds - 1
            if number >= 0:
                yield {
                    "iteration": number,
                    "x": x.flatten().tolist(),
                    "c": c.flatten().tolist(),
                    "y": y.item(),
                    "met": bool((g >= 0).all()),
                    "seconds": seconds,
                    "recommended": opt.recommend().x.tolist() if last else None,
                }


def run_constraints(out: Path, *, seeds: int, rounds: int) -> int:
    """Run all seeds; the runs are kept in a folder beside the page.

    Returns:
        The exit status: 1 if a run failed.
    """
    check_counts(seeds=seeds, rounds=rounds)
    tasks = [Task(method, seed, rounds) for seed in range(seeds) for method in METHODS]

    def made(rows: pd.DataFrame) -> Report:
        return report(outcomes(rows), rounds)

    return run_experiment(tasks, made, out, out=out.with_suffix(""), workers=1)


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    Args:
        robust: The probability of feasibility of its recommendation, under the worst
            law of the ball.
        true: The same under the law of the world.
        value: Its expected value under the law of the world.
        met: The share of the decisions after the design that met the constraint.
    """

    robust: float
    true: float
    value: float
    met: float


def outcomes(rows: pd.DataFrame) -> dict[str, list[Outcome]]:
    """Method -> what its runs came to, seed by seed."""
    function = Reservoir(noise_std=NOISE)
    found: dict[str, list[Outcome]] = {method: [] for method in METHODS}
    runs: Any = rows.groupby(["algorithm", "seed"], sort=False)
    for (method, _), run in runs:
        x = torch.tensor([*run.recommended.iloc[-1]], dtype=torch.double)
        found[method].append(judged(function, x, float(run.met.mean())))
    return found


def judged(function: Reservoir, x: Tensor, met: float) -> Outcome:
    """What a decision ``d_x`` is worth in truth."""
    x = x.unsqueeze(0)
    shown = function.constraints(x, function.true_contexts())
    return Outcome(
        robust=function.feasibility(x, RADIUS).item(),
        true=(shown >= 0).double().mean().item(),
        value=function.expected_value(x).item(),
        met=met,
    )


_HEAD = (
    "constraint",
    "feasible, worst law",
    "feasible, true law",
    "value",
    "reach the level under both",
    "met while learning",
)


def report(found: Mapping[str, Sequence[Outcome]], rounds: int) -> Report:
    """The table."""
    seeds = len(next(iter(found.values())))
    function = Reservoir()
    best, plain = (
        function.constrained_optimum(LEVEL, radius).value for radius in (RADIUS, 0.0)
    )
    rows = []
    for method, of_method in found.items():
        robust, true, value, met = (
            str(estimate([getattr(outcome, name) for outcome in of_method]))
            for name in ("robust", "true", "value", "met")
        )
        reached = sum(min(o.robust, o.true) >= LEVEL - 0.01 for o in of_method)
        share = f"{reached} of {len(of_method)}"
        rows.append([method, robust, true, value, share, met])
    return Report(
        "Outcome constraints",
        [
            f"`python -m benchmarks constraints --seeds {seeds} --rounds {rounds}`",
            f"`Reservoir`: a constraint that is to be met with probability {LEVEL} "
            f"under every law within an l1 distance of {RADIUS} of the uniform one. In "
            "the world one inflow in ten is a flood, which is such a law. `dro` with "
            f"that ball, {INITIAL} decisions of a design and {rounds} more; {seeds} "
            "seeds, paired. Mean ± standard error.",
            "The best robustly feasible decision has the value "
            f"{best:.3f}; the best that meets the level under the uniform law "
            f"{plain:.3f}.",
            Table(_HEAD, rows),
            "A level counts as reached up to .01, the error of the models.",
        ],
    )
