"""One run: decisions of a recipe, predictions of what follows, recommendations."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, cast
from unittest.mock import patch

import torch
from botorch.models.model import Model
from botorch.posteriors import GPyTorchPosterior
from torch import Tensor

from benchmarks.development.cases import CASES, half_of
from benchmarks.development.surrogates import options_of
from benchmarks.development.truth import Truth, truth_of
from benchmarks.run.engine import one_thread
from benchmarks.run.provenance import commit
from benchmarks.run.world import World
from botorch_drbo.problem import History
from botorch_drbo.randomness import derive_seed
from botorch_drbo.recipes import make_recipe
from botorch_drbo.recipes.model_based import ModelBasedRecipe

INITIAL = 5  # random decisions at the start of a run, the same for all
CHECKPOINTS = (10, 15, 30, 60)
METHODS = ("erbo", "wdrbo_exact")
SEARCH: Mapping[str, Any] = {
    "num_restarts": 4,
    "raw_samples": 256,
    "max_iterations": 50,
}

Row = dict[str, Any]
"""A run in JSON's types; see ``learn``."""


@dataclass(frozen=True)
class Task:
    """A run to be made.

    Args:
        case: A key of ``CASES``.
        method: One of ``METHODS``.
        surrogate: A key of ``CANDIDATES``.
        seed: Picks contexts, noise, first decisions, and the function if it is random.
    """

    case: str
    method: str
    surrogate: str
    seed: int

    def __str__(self) -> str:
        """As lines of progress and names of files have it."""
        return f"{self.case}/{self.method}/{self.surrogate}/seed_{self.seed:04d}"


def learn(task: Task, rounds: int, before: Row | None = None) -> Row:
    """Make a run, or go on with a shorter one, on one thread.

    Args:
        task: Which.
        rounds: How many outcomes it shall have.
        before: The same run with fewer outcomes.

    Returns:
        The run: what the task says, ``half``, ``rounds``, ``commits``; with an entry
        for each outcome ``x``, ``c``, ``y``, ``expected`` (the true expectation of the
        decision), ``seconds`` (of the processor, for the ask), and of the prediction of
        the outcome ``mean``, ``variance`` and ``log_density``, None for the random
        decisions; with an entry for each checkpoint ``told`` (how many outcomes),
        ``recommended``, ``value`` and, of ``wdrbo_exact``, ``worst`` (true expectation
        and worst case); the scales ``best``, ``guess``, ``worst_best``,
        ``worst_guess``, and ``deviation``.
    """
    truth = truth_of(task.case, task.seed)
    row = _begun(task, truth) if before is None else deepcopy(before)
    row["rounds"] = rounds
    row["commits"] = sorted({*row["commits"], commit()})
    with one_thread(), warnings.catch_warnings(), remembered_fit() as fit:
        warnings.simplefilter("ignore")  # of line searches that stop at a kink
        _go_on(task, rounds, row, truth, fit)
    return row


def _begun(task: Task, truth: Truth) -> Row:
    names = ["x", "c", "y", "expected", "seconds", "mean", "variance", "log_density"]
    names += ["told", "recommended", "value", "worst", "commits"]
    worst = truth.worst_scale if task.method == "wdrbo_exact" else None
    return {
        "case": task.case,
        "half": half_of(task.case),
        "method": task.method,
        "surrogate": task.surrogate,
        "seed": task.seed,
        "best": truth.scale.best,
        "guess": truth.scale.guess,
        "worst_best": None if worst is None else worst.best,
        "worst_guess": None if worst is None else worst.guess,
        "deviation": truth.deviation,
        **{name: [] for name in names},
    }


def _go_on(task: Task, rounds: int, row: Row, truth: Truth, fit: RememberedFit) -> None:
    case, function = CASES[task.case], truth.function
    space = case.space(function)
    world = World(function, task.case, task.seed, salt="")
    recipe = make_recipe(task.method, **options_of(task.surrogate), **SEARCH)
    low, high = function.bounds

    def recommend(told: History) -> None:
        seed = derive_seed(task.seed, 1, len(told.Y))
        x = recipe.recommend(told, space, seed=seed).x.unsqueeze(0)
        row["told"].append(len(told.Y))
        row["recommended"].append(x.flatten().tolist())
        row["value"].append(truth.expected(x).item())
        is_robust = task.method == "wdrbo_exact"
        row["worst"].append(truth.worst(x).item() if is_robust else None)

    for step in range(len(row["y"]), rounds):
        c = world.context(step)
        about: dict[str, float | None] = dict.fromkeys(_ABOUT)
        if step < INITIAL:
            uniforms = (world.initial_decision(step) - low) / (high - low)
            x = case.decisions(function, uniforms)
        else:
            told = history_of(row, step)
            start = time.process_time()
            x = recipe.propose(told, space, seed=derive_seed(task.seed, 0, step))
            about["seconds"] = time.process_time() - start
        y = world.outcome(step, x, c).item()
        if step >= INITIAL:
            z = torch.cat([x, c], dim=-1)
            about.update(prediction(fit.model, z, y, truth.deviation))
            if step in CHECKPOINTS and step not in row["told"]:
                recommend(told)
        row["x"].append(x.flatten().tolist())
        row["c"].append(c.flatten().tolist())
        row["y"].append(y)
        row["expected"].append(truth.expected(x).item())
        for name, value in about.items():
            row[name].append(value)
    if rounds in CHECKPOINTS and rounds not in row["told"]:
        recommend(history_of(row, rounds))


def history_of(row: Row, told: int) -> History:
    """What was told at first in a run.

    Args:
        row: The run.
        told: How many outcomes.
    """
    X, C, Y = (
        torch.tensor(row[name][:told], dtype=torch.double) for name in ("x", "c", "y")
    )
    return History(X=X, C=C, Y=Y.unsqueeze(-1), contexts=C)


_ABOUT = ("seconds", "mean", "variance", "log_density")


def prediction(model: Model, z: Tensor, y: float, unit: float) -> Mapping[str, float]:
    r"""What a model said of an outcome, noise included.

    Args:
        model: One Gaussian process, or an ensemble.
        z: Decision and context, ``1 x d``.
        y: The outcome that followed.
        unit: In which the density is taken.

    Returns:
        ``mean`` and ``variance`` of the mixture of the members' predictions, and the
        logarithm of its density at ``y``, per ``unit``.
    """
    with torch.no_grad():
        posterior = cast(
            GPyTorchPosterior, model.posterior(z.unsqueeze(0), observation_noise=True)
        )
        means = posterior.mean.flatten()  # S
        variances = posterior.variance.flatten().clamp_min(1e-12 * unit**2)
    mean = means.mean()
    densities = torch.distributions.Normal(means, variances.sqrt()).log_prob(
        means.new_tensor(y)
    )
    log_density = densities.logsumexp(0) - math.log(len(means)) + math.log(unit)
    return {
        "mean": mean.item(),
        "variance": (variances + (means - mean).square()).mean().item(),
        "log_density": log_density.item(),
    }


class RememberedFit:
    """The model that was fitted last, and to what."""

    def __init__(self) -> None:
        self._known: tuple[History, Model] | None = None

    @property
    def model(self) -> Model:
        """The model.

        Raises:
            RuntimeError: None was fitted yet.
        """
        if self._known is None:
            raise RuntimeError("No model was fitted: the recipe has none.")
        return self._known[1]

    def known(self, history: History) -> Model | None:
        """The model of these data, if it is the last one."""
        if self._known is None:
            return None
        before, model = self._known
        same = all(
            torch.equal(getattr(before, name), getattr(history, name))
            for name in ("X", "C", "Y")
        )
        return model if same else None

    def keep(self, history: History, model: Model) -> None:
        """Remember this one."""
        self._known = history, model


@contextmanager
def remembered_fit() -> Iterator[RememberedFit]:
    """Fit once to the same data: for the ask, the prediction and the recommendation.

    A fit is a function of the data alone, so nothing but the time is another.
    """
    memory, fit = RememberedFit(), ModelBasedRecipe.fitted

    def fitted(
        self: ModelBasedRecipe, history: History, *args: Any, **kwargs: Any
    ) -> Model:
        model = memory.known(history)
        if model is None:
            model = fit(self, history, *args, **kwargs)
            memory.keep(history, model)
        return model

    with patch.object(ModelBasedRecipe, "fitted", fitted):
        yield memory
