"""One step of robust Thompson sampling against the way the paper's code does it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cvxpy as cp
import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import RFFKernel
from rich.console import Console
from torch import Tensor

from benchmarks.experiments.bocu import SETTINGS, Setting, Task, make_problem
from benchmarks.problems import BOCUProblem
from benchmarks.run.display import working
from benchmarks.run.engine import one_thread
from benchmarks.run.provenance import machine
from benchmarks.speed.tables import Line, report
from benchmarks.speed.timing import alternate, digits
from botorch_drbo.ambiguity import MaximumMeanDiscrepancy
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.problem import History, SearchSpace

STEP = 1e-3  # of the difference quotient that stands for the sensitivity there
TOLERANCE = 1e-6  # of the range of the scores, between both worst-case values
TARGETS = {"tv": 200.0, "mmd": 10.0}
STEP_TARGET = 50.0


@dataclass(frozen=True)
class Sizes:
    """How many outcomes the model has, and on how many decisions both sides work."""

    observations: int = 100
    decisions: int = 1024
    features: int = 1024


QUICK = Sizes(observations=3, decisions=5, features=8)


def run_thompson_speed(out: Path, *, repeats: int, quick: bool) -> int:
    """Measure, print a table, write it to ``out`` as Markdown.

    Returns:
        The exit status, 0: a slow machine is not an error.
    """
    console = Console()
    sizes = QUICK if quick else Sizes()
    problem = make_problem("gp_prior_2_2", 0)
    candidates = problem.candidates[: sizes.decisions]
    history = observe(problem, sizes.observations)
    lines: list[Line] = []
    with one_thread():
        for setting in (s for s in SETTINGS if s.objective != "wcs"):
            with working(console, str(setting)):
                lines += measure(setting, problem, history, candidates, sizes, repeats)
    about = (
        f"`python -m benchmarks speed thompson`, medians of {repeats} repeats that "
        f"take turns, one thread. {len(candidates)} decisions, "
        f"{problem.context_set.num_points} contexts, {history.t} outcomes. *Theirs* "
        "is the way of the paper's public code, written anew: one draw at all pairs "
        f"of decision and context from a model with {sizes.features} random Fourier "
        "features (GPyTorch's RFFKernel), then one warm-started cvxpy solve for each "
        f"decision, and a second at a radius larger by {STEP:g} if the sensitivity "
        "counts. Ours takes the exact sensitivity from the same solve as the value. "
        "Worst-case values of both agree to "
        f"{TOLERANCE:g} of the range of the scores. {machine()}."
    )
    report(console, out, lines, title="One step of Thompson sampling", about=about)
    return 0


def observe(problem: BOCUProblem, num: int) -> History:
    """The initial data and ``num`` random decisions."""
    X, C, Y = problem.initial()
    generator = torch.Generator().manual_seed(0)
    size = len(problem.candidates)
    positions = torch.randint(size, (num,), generator=generator)
    contexts = problem.sample_contexts(num)
    outcomes = [
        problem.observe(positions[i : i + 1], contexts[i : i + 1], step=i)
        for i in range(num)
    ]
    C = torch.cat([C, contexts])
    return History(
        X=torch.cat([X, problem.candidates[positions]]),
        C=C,
        Y=torch.cat([Y, *outcomes]),
        contexts=C,
    )


def measure(
    setting: Setting,
    problem: BOCUProblem,
    history: History,
    candidates: Tensor,
    sizes: Sizes,
    repeats: int,
) -> list[Line]:
    """The objective of all decisions, and the whole step.

    Raises:
        AssertionError: Both sides do not compute the same worst-case values.
    """
    objective = setting.build(problem)
    weights = problem.context_set.weights
    draw = drawn_jointly(problem, history, candidates, sizes.features)
    values = draw()  # m x n
    solve = one_by_one(objective, weights)
    check(objective, values, weights, solve)

    algorithm = Task(problem.function.name, "ts_bocu", setting, 0, 1).algorithm(problem)
    function = problem.function
    space = SearchSpace(function.bounds, function.context_bounds)
    inner, loop, step, drawing = alternate(
        [
            lambda: objective(values, weights),
            lambda: solve(values),
            lambda: algorithm.propose(history, space, candidates=candidates),
            draw,
        ],
        repeats,
    )
    whole = [a + b for a, b in zip(loop, drawing, strict=True)]
    return [
        line(f"{setting}: the objective", inner, loop, TARGETS[setting.distance]),
        line(f"{setting}: the step", step, whole, STEP_TARGET),
    ]


def line(
    what: str, ours: Sequence[float], theirs: Sequence[float], target: float
) -> Line:
    """One line: both medians and the median ratio."""
    ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
    return Line(
        what=what,
        ours=f"{1e3 * statistics.median(ours):.3g} ms",
        other=f"{statistics.median(theirs):.3g} s",
        result=f"{digits(ratio)} times as fast",
        target=f"at least {target:g}: {'met' if ratio >= target else 'missed'}",
    )


def drawn_jointly(
    problem: BOCUProblem, history: History, candidates: Tensor, features: int
) -> Callable[[], Tensor]:
    """A draw at all pairs, ``m x n``, from the joint posterior of a feature model."""
    contexts = problem.context_set.points
    m, n = len(candidates), len(contexts)
    pairs = torch.cat(
        [candidates.repeat_interleave(n, 0), contexts.repeat(m, 1)], dim=-1
    )
    inputs = torch.cat([history.X, history.C], dim=-1)
    kernel: Any = RFFKernel(num_samples=features, num_dims=inputs.shape[-1]).double()
    kernel.lengthscale = 0.1

    def draw() -> Tensor:
        model = SingleTaskGP(
            inputs, history.Y, covar_module=kernel, outcome_transform=None
        )
        likelihood: Any = model.likelihood
        likelihood.noise = problem.noise_std**2
        with torch.no_grad():
            return model.posterior(pairs).rsample().reshape(m, n)

    return draw


def one_by_one(
    objective: UncertaintyObjective, weights: Tensor
) -> Callable[[Tensor], Tensor]:
    """The objective by a cvxpy problem for each row, twice if there is a slope."""
    ball = objective.ambiguity_set
    p = weights.numpy()
    q, f = cp.Variable(len(p)), cp.Parameter(len(p))
    radius = cp.Parameter(nonneg=True)
    if isinstance(ball, MaximumMeanDiscrepancy):
        distance = cp.norm(ball.factor.numpy().T @ (p - q), 2)
    else:
        distance = cp.norm(p - q, 1)
    constraints = [cp.sum(q) == 1.0, q >= 0.0, distance <= radius]
    problem = cp.Problem(cp.Minimize(q @ f), constraints)
    size = ball.radius.item()

    def worst(values: Tensor, at: float) -> Tensor:
        radius.value = at
        found = []
        for row in values.numpy():
            f.value = row
            found.append(problem.solve(warm_start=True))
        return torch.tensor(found, dtype=torch.double)

    def solve(values: Tensor) -> Tensor:
        value = worst(values, size)
        if objective.sensitivity_weight == 0.0:
            return objective.value_weight * value
        slope = (worst(values, size + STEP) - value) / STEP
        return objective.value_weight * value + objective.sensitivity_weight * slope

    return solve


def check(
    objective: UncertaintyObjective,
    values: Tensor,
    weights: Tensor,
    solve: Callable[[Tensor], Tensor],
) -> None:
    """Raise unless both sides agree on some rows: the value, where that is all."""
    if objective.sensitivity_weight > 0.0:  # a quotient there, a derivative here
        return
    rows = values[:32]
    span = rows.amax(-1) - rows.amin(-1)
    torch.testing.assert_close(
        solve(rows) / span, objective(rows, weights) / span, rtol=0, atol=TOLERANCE
    )
