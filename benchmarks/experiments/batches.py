"""Is a batch that is chosen jointly better than one chosen decision by decision?

A robust problem on Branin with known context distribution: in each round four decisions
are chosen at once, then their contexts and outcomes are seen. The same acquisition
function is maximised jointly and greedily; everything else is equal and paired.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
from rich.console import Console
from torch import Tensor
from torch.quasirandom import SobolEngine

from benchmarks.experiments.improvement import PlainExpectedImprovement
from benchmarks.run.markdown import markdown_table
from benchmarks.run.parallel import in_parallel
from benchmarks.run.runner import one_thread
from benchmarks.run.world import World
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    best_robust_value,
    qDistributionallyRobustUCB,
)
from botorch_drbo.ambiguity import TotalVariation
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.posterior import marginal_posterior
from botorch_drbo.test_functions import make_test_function
from botorch_drbo.test_functions.base import RobustTestFunction

PROBLEM = "branin_2_2"
BETA = 2.25
RADIUS = 0.3  # of total variation
CONTEXTS = 8
INITIAL = 8
PATHS = 64
FEATURES = 64
GRID = 2**12
RESTARTS, RAW_SAMPLES, MAX_ITERATIONS = 4, 128, 50  # of each ascent, either way
JOINT, GREEDY = "jointly", "greedily"


class Setting:
    """The problem, what is known of its contexts, and the regret that counts.

    Args:
        name: The name of the test function.
    """

    def __init__(self, name: str = PROBLEM) -> None:
        """Find the robust optimum among a dense set of decisions, and climb from it.

        Args:
            name: The name of the test function.
        """
        self.name = name
        self.problem: RobustTestFunction = make_test_function(name)
        problem = self.problem
        self.context_set = ContextSet(problem.true_contexts(CONTEXTS))
        self.objective = UncertaintyObjective.dro(TotalVariation(RADIUS))
        low, high = problem.bounds
        unit = SobolEngine(problem.d_x, scramble=True, seed=0).draw(
            GRID, dtype=low.dtype
        )
        self.decisions = low + (high - low) * unit
        values = self.value(self.decisions)
        x = self.decisions[values.topk(8).indices].clone().requires_grad_()
        optimizer = torch.optim.Adam([x], lr=1e-3)
        best = values.max()
        for _ in range(500):
            optimizer.zero_grad()
            value = self.value(x.clamp(low, high))
            best = torch.maximum(best, value.detach().max())
            (-value.sum()).backward()
            optimizer.step()
        self.optimum = best

    def value(self, X: Tensor) -> Tensor:
        """The true robust value of decisions ``... x d_x``."""
        points = self.context_set.points
        outcomes = self.problem.evaluate(X.unsqueeze(-2), points)  # ... x n
        return self.objective(outcomes, self.context_set.weights)

    def recommended(self, model: SingleTaskGP) -> Tensor:
        """Of the dense set, the decision of best robust posterior mean, ``d_x``."""
        posterior = marginal_posterior(model, self.context_columns)
        with torch.no_grad():
            mean, _ = posterior(self.decisions, self.context_set.points)
            robust = self.objective(mean, self.context_set.weights)
        return self.decisions[robust.argmax()]

    @property
    def context_columns(self) -> range:
        """The model's input columns that hold the context."""
        return range(self.problem.d_x, self.problem.d_x + self.problem.d_c)


@dataclass(frozen=True)
class Values:
    """Acquisition values of batches found in three ways, on the same model and paths.

    Args:
        greedy: Decision by decision.
        cold: Jointly, from Sobol starts alone.
        joint: Jointly, from Sobol starts and the greedy batch: what is taken.
    """

    greedy: float
    cold: float
    joint: float


@dataclass(frozen=True)
class Batch:
    """A batch ``q x d_x`` and how it was found.

    Args:
        X: The decisions.
        seconds: The time of building and maximising the acquisition function.
        values: The acquisition values, if it was found jointly.
    """

    X: Tensor
    seconds: float
    values: Values | None = None


@dataclass(frozen=True)
class Method:
    """An acquisition function and the way its batch is found.

    Args:
        label: The row of the table.
        acquisition: Builds it from the model, the setting, the decisions tried, and a
            seed; None for random decisions.
        way: ``JOINT`` or ``GREEDY``.
    """

    label: str
    acquisition: (
        Callable[[SingleTaskGP, Setting, Tensor, int], AcquisitionFunction] | None
    )
    way: str = GREEDY

    def choose(
        self, model: SingleTaskGP, setting: Setting, tried: Tensor, q: int, seed: int
    ) -> Batch:
        """Choose ``q`` decisions."""
        low, high = setting.problem.bounds
        if self.acquisition is None:
            unit = torch.rand(
                q, len(low), generator=torch.Generator().manual_seed(seed)
            )
            return Batch(low + (high - low) * unit.to(low), 0.0)
        start = time.perf_counter()
        acqf = self.acquisition(model, setting, tried, seed)
        greedy, _ = maximise(acqf, setting, q, seed, sequential=True)
        if self.way == GREEDY:
            return Batch(greedy, time.perf_counter() - start)
        cold, cold_value = maximise(acqf, setting, q, seed, sequential=False)
        warm, warm_value = maximise(
            acqf, setting, q, seed, sequential=False, start=greedy.unsqueeze(0)
        )
        better = warm if warm_value >= cold_value else cold
        seconds = time.perf_counter() - start
        with torch.no_grad():
            values = Values(
                acqf(greedy).item(), cold_value, max(cold_value, warm_value)
            )
        return Batch(better, seconds, values)


def maximise(
    acqf: AcquisitionFunction,
    setting: Setting,
    q: int,
    seed: int,
    *,
    sequential: bool,
    start: Tensor | None = None,
) -> tuple[Tensor, float]:
    """Maximise over batches of ``q``, from Sobol starts or from one ``1 x q x d_x``."""
    options: dict[str, bool | float | int | str] = {
        "seed": seed,
        "maxiter": MAX_ITERATIONS,
    }
    if isinstance(acqf, PlainExpectedImprovement):
        options["nonnegative"] = True
    X, value = optimize_acqf(
        acqf,
        bounds=setting.problem.bounds,
        q=q,
        sequential=sequential,
        num_restarts=RESTARTS if start is None else 1,
        raw_samples=RAW_SAMPLES if start is None else None,
        batch_initial_conditions=start,
        retry_on_optimization_warning=False,
        options=options,
    )
    assert value is not None  # None only with return_acq_values=False
    return X, value.max().item()


def _ucb(
    model: SingleTaskGP, setting: Setting, tried: Tensor, seed: int
) -> AcquisitionFunction:
    return qDistributionallyRobustUCB(
        model,
        BETA,
        setting.context_set,
        setting.objective,
        num_paths=PATHS,
        num_features=FEATURES,
        seed=seed,
    )


def _improvement(
    model: SingleTaskGP, setting: Setting, tried: Tensor, seed: int
) -> AcquisitionFunction:
    best = best_robust_value(model, tried, setting.context_set, setting.objective)
    return PlainExpectedImprovement(
        model,
        best,
        setting.context_set,
        setting.objective,
        num_paths=PATHS,
        num_features=FEATURES,
        seed=seed,
    )


def _hallucinated(
    model: SingleTaskGP, setting: Setting, tried: Tensor, seed: int
) -> AcquisitionFunction:
    acqf = DistributionallyRobustUCB(
        model, BETA, setting.context_set, setting.objective
    )
    acqf.repulsion = 0.0
    return acqf


METHODS = (
    Method("qUCB, jointly", _ucb, JOINT),
    Method("qUCB, greedily", _ucb, GREEDY),
    Method("UCB, hallucinated", _hallucinated, GREEDY),
    Method("qEI, jointly", _improvement, JOINT),
    Method("qEI, greedily", _improvement, GREEDY),
    Method("random", None),
)


@dataclass(frozen=True)
class Run:
    """What one method did under one seed.

    Args:
        regret: Of the recommendation after each round, ``rounds``.
        batch_regret: The mean over the decisions of each batch, ``rounds``.
        seconds: The median time of a batch.
        values: Acquisition values by round, of a method that works jointly.
        gaps: How near the nearest two of each batch are, in sides, ``rounds``.
    """

    regret: Tensor
    batch_regret: Tensor
    seconds: float
    values: tuple[Values, ...]
    gaps: Tensor


def run_method(
    method: Method, setting: Setting, seed: int, *, rounds: int, q: int
) -> Run:
    """Run one method under one seed, for ``rounds`` batches of ``q``."""
    world = World(setting.problem, setting.name, seed)
    X = torch.cat([world.initial_decision(i) for i in range(INITIAL)])
    C = torch.cat([world.context(i) for i in range(INITIAL + rounds * q)])
    Y = setting.problem.evaluate(X, C[: len(X)]).unsqueeze(-1)
    regret, batch_regret, seconds, values, gaps = [], [], [], [], []
    low, high = setting.problem.bounds
    for step in range(rounds + 1):
        model = _fit(setting.problem, torch.cat([X, C[: len(X)]], dim=-1), Y)
        if step > 0:
            recommended = setting.value(setting.recommended(model))
            regret.append(setting.optimum - recommended)
        if step == rounds:
            break
        batch = method.choose(model, setting, X, q, seed=1000 * seed + step)
        seconds.append(batch.seconds)
        if batch.values is not None:
            values.append(batch.values)
        batch_regret.append(setting.optimum - setting.value(batch.X).mean())
        unit = (batch.X - low) / (high - low)
        gaps.append(torch.cdist(unit, unit).fill_diagonal_(torch.inf).min())
        new = C[len(X) : len(X) + q]
        outcome = setting.problem.evaluate(batch.X, new).unsqueeze(-1)
        X, Y = torch.cat([X, batch.X]), torch.cat([Y, outcome])
    return Run(
        torch.stack(regret),
        torch.stack(batch_regret),
        torch.tensor(seconds).median().item(),
        tuple(values),
        torch.stack(gaps),
    )


def _fit(problem: RobustTestFunction, Z: Tensor, Y: Tensor) -> SingleTaskGP:
    bounds = torch.cat([problem.bounds, problem.context_bounds], dim=-1)
    model = SingleTaskGP(Z, Y, input_transform=Normalize(Z.shape[-1], bounds=bounds))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    model.eval()
    return model.requires_grad_(False)


def run_batches(out: Path, *, seeds: int, rounds: int, q: int, workers: int = 1) -> int:
    """Run all methods on all seeds; the table in ``out`` is of the seeds done so far.

    Returns:
        The exit status, 0.
    """
    console = Console()
    out.parent.mkdir(parents=True, exist_ok=True)
    done: dict[str, list[Run]] = {method.label: [] for method in METHODS}
    work = {s: partial(run_seed, s, rounds=rounds, q=q) for s in range(seeds)}
    for _, outcome in in_parallel(work, workers=workers):
        if isinstance(outcome, BaseException):
            raise outcome
        for label, run in outcome.items():
            done[label].append(run)
        text = report(done, rounds=rounds, q=q)
        out.write_text(text, encoding="utf-8")
        console.print(f"{len(done[METHODS[0].label])} of {seeds} seeds")
    console.print(text)
    return 0


def run_seed(seed: int, *, rounds: int, q: int) -> dict[str, Run]:
    """Run every method under one seed, on one thread."""
    with one_thread():
        setting = Setting()
        return {
            method.label: run_method(method, setting, seed, rounds=rounds, q=q)
            for method in METHODS
        }


def report(runs: dict[str, list[Run]], *, rounds: int, q: int) -> str:
    """The tables, as Markdown."""
    seeds = len(runs[METHODS[0].label])
    lines = [
        f"# Batches of {q}",
        "",
        f"`python -m benchmarks batches --seeds {seeds} --rounds {rounds} --q {q}`",
        "",
        f"{PROBLEM}, {CONTEXTS} contexts of the true law, total variation {RADIUS}; "
        f"{INITIAL} random decisions, then {rounds} batches of {q}; {seeds} seeds, "
        f"paired. {PATHS} paths, beta {BETA}. Mean ± standard error.",
        "",
    ]
    measures = ["regret at the end", "mean over rounds", "regret of the batches"]
    rows = []
    for label, found in runs.items():
        end = torch.stack([run.regret[-1] for run in found])
        path = torch.stack([run.regret.mean() for run in found])
        batch = torch.stack([run.batch_regret.mean() for run in found])
        seconds = torch.tensor([run.seconds for run in found]).median().item()
        cells = [
            mean_and_error(end),
            mean_and_error(path),
            mean_and_error(batch),
            f"{seconds:.2f}",
        ]
        rows.append([label, *cells])
    lines += [
        *markdown_table(["method", *measures, "seconds a batch"], rows),
        "",
        "Joint minus another way, paired by seed: below zero is good for joint.",
        "",
    ]
    rows = []
    for joint, other in COMPARISONS:
        pairs = list(zip(runs[joint], runs[other], strict=True))
        columns = (
            [a.regret[-1] - b.regret[-1] for a, b in pairs],
            [a.regret.mean() - b.regret.mean() for a, b in pairs],
            [a.batch_regret.mean() - b.batch_regret.mean() for a, b in pairs],
        )
        cells = [mean_and_error(torch.stack(column)) for column in columns]
        rows.append([f"{joint} - {other}", *cells])
    lines += markdown_table(["", *measures], rows)
    lines += ["", *_acquisition_values(runs)]
    return "\n".join(lines) + "\n"


COMPARISONS = (
    ("qUCB, jointly", "qUCB, greedily"),
    ("qUCB, jointly", "UCB, hallucinated"),
    ("qEI, jointly", "qEI, greedily"),
)


def _acquisition_values(runs: dict[str, list[Run]]) -> Sequence[str]:
    """How the acquisition values of the ways compare on the same paths."""
    lines = [
        "Acquisition values on the same model and paths, less that of the greedy "
        "batch. *Cold*: jointly from Sobol starts alone; *warm*: the greedy batch is "
        "a start too, as in the tables above.",
        "",
    ]
    rows = []
    for label, found in runs.items():
        values = [value for run in found for value in run.values]
        if not values:
            continue
        for start, gains in {
            "cold": [value.cold - value.greedy for value in values],
            "warm": [value.joint - value.greedy for value in values],
        }.items():
            gain = torch.tensor(gains).double()
            quantiles = gain.quantile(torch.tensor([0.1, 0.5, 0.9]).double()).tolist()
            cells = [f"{quantile:.2g}" for quantile in quantiles]
            cells.append(f"{100 * (gain > 1e-9).double().mean():.0f}%")
            rows.append([f"{label}, {start}", *cells])
    head = ["", "lowest tenth", "median", "highest tenth", "better than greedy"]
    return [*lines, *markdown_table(head, rows)]


def mean_and_error(values: Tensor) -> str:
    """Mean and standard error, as text."""
    error = values.std() / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{values.mean():.3g} ± {error:.2g}"
