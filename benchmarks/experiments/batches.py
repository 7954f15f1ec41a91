"""Is a batch that is chosen jointly better than one chosen decision by decision?

A robust problem on Branin with known context distribution: in each round four decisions
are chosen at once, then their contexts and outcomes are seen. The same acquisition
function is maximised jointly and greedily; everything else is equal and paired.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor
from torch.quasirandom import SobolEngine

from benchmarks.experiments.improvement import PlainExpectedImprovement
from benchmarks.problems import make
from benchmarks.run.config import check_counts
from benchmarks.run.display import run_experiment
from benchmarks.run.report import Report, Table, estimate
from benchmarks.run.storage import Row, RunKey
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
        self.problem: RobustTestFunction = make(name)
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


def _repelled(
    model: SingleTaskGP, setting: Setting, tried: Tensor, seed: int
) -> AcquisitionFunction:
    return DistributionallyRobustUCB(
        model, BETA, setting.context_set, setting.objective
    )


METHODS = (
    Method("qUCB, jointly", _ucb, JOINT),
    Method("qUCB, greedily", _ucb, GREEDY),
    Method("UCB, hallucinated", _hallucinated, GREEDY),
    Method("qEI, jointly", _improvement, JOINT),
    Method("qEI, greedily", _improvement, GREEDY),
    Method("random", None),
)
REPELLED = Method("UCB, repelled", _repelled)
ONE_BY_ONE = Method("one by one", _repelled)  # with batches of one
BY_LABEL = {method.label: method for method in (*METHODS, REPELLED, ONE_BY_ONE)}


@cache
def setting_of(problem: str) -> Setting:
    """The setting of a problem: its optimum takes some seconds."""
    return Setting(problem)


@dataclass(frozen=True)
class Task:
    """One method under one seed.

    Args:
        problem: The name of the test function.
        method: A key of ``BY_LABEL``.
        seed: Picks the first decisions, the contexts and the starts of the searches.
        rounds: How many batches.
        q: Decisions of each batch.
    """

    problem: str
    method: str
    seed: int
    rounds: int
    q: int
    resumable: ClassVar[bool] = False

    @property
    def key(self) -> RunKey:
        """Where its rows are kept."""
        return RunKey(self.problem, self.method, self.seed)

    def header(self) -> dict[str, Any]:
        """Its name and the size of a batch."""
        return {"experiment": "batches", **self.key._asdict(), "q": self.q}

    def play(self, done: Sequence[Row]) -> Iterator[Row]:
        """A row for each batch.

        ``regret`` is that of what is recommended after it, ``batch_regret`` the mean
        over its decisions, ``gap`` how near the nearest two are, in sides; ``greedy``,
        ``cold`` and ``joint`` are the acquisition values of a method that works
        jointly.
        """
        setting, method, q = setting_of(self.problem), BY_LABEL[self.method], self.q
        problem, rounds = setting.problem, self.rounds
        world = World(problem, setting.name, self.seed, salt="")
        X = torch.cat([world.initial_decision(i) for i in range(INITIAL)])
        C = torch.cat([world.context(i) for i in range(INITIAL + rounds * q)])
        Y = problem.evaluate(X, C[: len(X)]).unsqueeze(-1)
        low, high = problem.bounds
        model = _fit(problem, torch.cat([X, C[: len(X)]], dim=-1), Y)
        for step in range(rounds):
            batch = method.choose(model, setting, X, q, seed=1000 * self.seed + step)
            unit = (batch.X - low) / (high - low)
            gaps = torch.cdist(unit, unit).fill_diagonal_(torch.inf)
            new = C[len(X) : len(X) + q]
            outcome = problem.evaluate(batch.X, new).unsqueeze(-1)
            X, Y = torch.cat([X, batch.X]), torch.cat([Y, outcome])
            model = _fit(problem, torch.cat([X, C[: len(X)]], dim=-1), Y)
            recommended = setting.value(setting.recommended(model))
            of_batch = setting.optimum - setting.value(batch.X).mean()
            values = batch.values
            yield {
                "iteration": step,
                "regret": (setting.optimum - recommended).item(),
                "batch_regret": of_batch.item(),
                "gap": gaps.min().item(),
                "seconds": batch.seconds,
                "greedy": None if values is None else values.greedy,
                "cold": None if values is None else values.cold,
                "joint": None if values is None else values.joint,
            }


def _fit(problem: RobustTestFunction, Z: Tensor, Y: Tensor) -> SingleTaskGP:
    bounds = torch.cat([problem.bounds, problem.context_bounds], dim=-1)
    model = SingleTaskGP(Z, Y, input_transform=Normalize(Z.shape[-1], bounds=bounds))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    model.eval()
    return model.requires_grad_(False)


def run_batches(out: Path, *, seeds: int, rounds: int, q: int, workers: int = 1) -> int:
    """Run all methods on all seeds; the runs are kept in a folder beside the page.

    Returns:
        The exit status: 1 if a run failed.
    """
    check_counts(seeds=seeds, rounds=rounds, q=q)
    tasks = [
        Task(PROBLEM, method.label, seed, rounds, q)
        for seed in range(seeds)
        for method in METHODS
    ]

    def made(rows: pd.DataFrame) -> Report:
        return report(rows, q)

    return run_experiment(tasks, made, out, out=out.with_suffix(""), workers=workers)


def by_seed(rows: pd.DataFrame, method: str) -> pd.DataFrame:
    """What counts of a method on a problem, a row for each seed."""
    own = rows[rows.algorithm == method].groupby("seed")
    return pd.DataFrame(
        {
            "end": own.regret.last(),
            "mean": own.regret.mean(),
            "batch": own.batch_regret.mean(),
            "seconds": own.seconds.median(),
        }
    )


MEASURES = {
    "end": "regret at the end",
    "mean": "mean over rounds",
    "batch": "regret of the batches",
}


def report(rows: pd.DataFrame, q: int) -> Report:
    """The tables."""
    seeds, rounds = rows.seed.nunique(), int(rows.iteration.max()) + 1
    found = {method.label: by_seed(rows, method.label) for method in METHODS}
    differences = {f"{a} - {b}": found[a] - found[b] for a, b in COMPARISONS}

    def cells(frame: pd.DataFrame) -> list[str]:
        return [str(estimate(frame[name].tolist())) for name in MEASURES]

    return Report(
        f"Batches of {q}",
        [
            f"`python -m benchmarks batches --seeds {seeds} --rounds {rounds} --q {q}`",
            f"{PROBLEM}, {CONTEXTS} contexts of the true law, total variation {RADIUS};"
            f" {INITIAL} random decisions, then {rounds} batches of {q}; {seeds} seeds,"
            f" paired. {PATHS} paths, beta {BETA}. Mean ± standard error.",
            Table(
                ["method", *MEASURES.values(), "seconds a batch"],
                [
                    [label, *cells(frame), f"{frame.seconds.median():.2f}"]
                    for label, frame in found.items()
                ],
            ),
            Table(
                ["", *MEASURES.values()],
                [[label, *cells(frame)] for label, frame in differences.items()],
                "Joint minus another way, paired by seed: below zero is good for "
                "joint.",
            ),
            _acquisition_values(rows),
        ],
    )


COMPARISONS = (
    ("qUCB, jointly", "qUCB, greedily"),
    ("qUCB, jointly", "UCB, hallucinated"),
    ("qEI, jointly", "qEI, greedily"),
)


def _acquisition_values(rows: pd.DataFrame) -> Table:
    """How the acquisition values of the ways compare on the same paths."""
    table = []
    for label, own in rows.dropna(subset="greedy").groupby("algorithm", sort=False):
        for start, column in {"cold": "cold", "warm": "joint"}.items():
            gain = own[column] - own.greedy
            quantiles = (f"{gain.quantile(level):.2g}" for level in (0.1, 0.5, 0.9))
            better = f"{100 * (gain > 1e-9).mean():.0f}%"
            table.append([f"{label}, {start}", *quantiles, better])
    return Table(
        ["", "lowest tenth", "median", "highest tenth", "better than greedy"],
        table,
        "Acquisition values on the same model and paths, less that of the greedy "
        "batch. *Cold*: jointly from Sobol starts alone; *warm*: the greedy batch is "
        "a start too, as in the tables above.",
    )
