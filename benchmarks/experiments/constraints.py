"""What it costs to heed the ambiguity in a constraint, and what to ignore it.

The same search on ``Reservoir``, whose robustly feasible decisions are known. The
constraint counts under the worst law of the ball, under the reference alone, or not at
all. The world's law is another than the reference, and inside the ball.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from torch import Tensor

from benchmarks.experiments.batches import mean_and_error
from benchmarks.problems import Reservoir
from benchmarks.run.markdown import markdown_table
from benchmarks.run.runner import one_thread
from botorch_drbo import RobustOptimizer
from botorch_drbo.adversaries import (
    Adversary,
    AroundContexts,
    FittedRound,
    SearchProblem,
    WorstCaseProblem,
)
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


def run_constraints(out: Path, *, seeds: int, rounds: int) -> int:
    """Run all seeds; the table in ``out`` is of the seeds done so far.

    Returns:
        The exit status, 0.
    """
    console = Console()
    out.parent.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[Outcome]] = {method: [] for method in METHODS}
    with one_thread():
        for seed in range(seeds):
            for method in METHODS:
                found[method].append(run_method(method, seed, rounds))
            out.write_text(report(found, rounds), encoding="utf-8")
            console.print(f"{seed + 1} of {seeds} seeds")
    return 0


def run_method(method: str, seed: int, rounds: int) -> Outcome:
    """One run; all methods of a seed meet the same contexts and noise."""
    function = Reservoir(noise_std=NOISE)
    adversary, told = METHODS[method]
    options = {"reference": function.reference, "feasibility": LEVEL, **LAPTOP}
    opt = RobustOptimizer(
        make_recipe("dro", adversary=adversary, **options),
        function.bounds,
        function.context_bounds,
        seed=seed,
        num_initial=INITIAL,
    )
    generator = torch.Generator().manual_seed(seed)
    met = []
    for number, c in enumerate(function.sample_contexts(INITIAL + rounds, seed)):
        x, c = opt.ask(), c.unsqueeze(0)
        g = function.constraints(x, c)
        y = function.observe(x, c, generator=generator)
        opt.tell(x, c, y, constraints=g if told else None)
        if number >= INITIAL:
            met.append(bool((g >= 0).all()))
    return judged(function, opt.recommend().x, sum(met) / len(met))


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


def report(found: dict[str, list[Outcome]], rounds: int) -> str:
    """The table, as Markdown."""
    seeds = len(next(iter(found.values())))
    function = Reservoir()
    best, plain = (
        function.constrained_optimum(LEVEL, radius).value for radius in (RADIUS, 0.0)
    )
    lines = [
        "# Outcome constraints",
        "",
        f"`python -m benchmarks constraints --seeds {seeds} --rounds {rounds}`",
        "",
        f"`Reservoir`: a constraint that is to be met with probability {LEVEL} under "
        f"every law within an l1 distance of {RADIUS} of the uniform one. In the world "
        "one inflow in ten is a flood, which is such a law. `dro` with that ball, "
        f"{INITIAL} decisions of a design and {rounds} more; {seeds} seeds, paired. "
        "Mean ± standard error.",
        "",
        "The best robustly feasible decision has the value "
        f"{best:.3f}; the best that meets the level under the uniform law {plain:.3f}.",
        "",
    ]
    rows = []
    for method, outcomes in found.items():
        columns = [
            torch.tensor([getattr(outcome, name) for outcome in outcomes])
            for name in ("robust", "true", "value", "met")
        ]
        robust, true, value, met = map(mean_and_error, columns)
        reached = sum(min(o.robust, o.true) >= LEVEL - 0.01 for o in outcomes)
        share = f"{reached} of {len(outcomes)}"
        rows.append([method, robust, true, value, share, met])
    lines += markdown_table(_HEAD, rows)
    lines += ["", "A level counts as reached up to .01, the error of the models."]
    return "\n".join(lines) + "\n"
