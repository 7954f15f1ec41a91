"""One run: decisions of a recipe, predictions of what follows, recommendations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, cast
from unittest.mock import patch

import torch
from botorch.models.model import Model
from botorch.posteriors import GPyTorchPosterior
from torch import Tensor

from benchmarks.development.cases import CASES, half_of
from benchmarks.development.surrogates import CANDIDATES, options_of
from benchmarks.development.truth import truth_of
from benchmarks.run.storage import Row, RunKey
from benchmarks.run.world import World
from benchmarks.study.cases import HALVES, INITIAL, check_names
from benchmarks.study.play import play
from botorch_drbo.problem import History
from botorch_drbo.recipes import Recipe, fitted_state, make_recipe
from botorch_drbo.sampling import derive_seed

CHECKPOINTS = (10, 15, 30, 60)
METHODS = ("erbo", "wdrbo_exact")
SEARCH: Mapping[str, Any] = {
    "num_restarts": 4,
    "raw_samples": 256,
    "max_iterations": 50,
}
PREDICTED = ("mean", "variance", "log_density")
RECOMMENDED = ("recommended", "value", "worst")


@dataclass(frozen=True)
class Task:
    """A run to be made.

    Args:
        case: A key of ``CASES``.
        method: One of ``METHODS``.
        surrogate: A key of ``CANDIDATES``.
        seed: Picks contexts, noise, first decisions, and the function if it is random.
        rounds: How many outcomes, those of random decisions as well.
    """

    case: str
    method: str
    surrogate: str
    seed: int
    rounds: int
    resumable: ClassVar[bool] = True

    @property
    def key(self) -> RunKey:
        """Where its rows are kept."""
        return RunKey(self.case, f"{self.method}, {self.surrogate}", self.seed)

    def header(self) -> dict[str, Any]:
        """What makes a run this run."""
        return {
            "case": self.case,
            "seed": self.seed,
            "initial": INITIAL,
            "algorithm": self.algorithm().to_dict(),
        }

    def algorithm(self) -> Recipe:
        """The recipe with its options."""
        return make_recipe(self.method, **options_of(self.surrogate), **SEARCH)

    def play(self, done: Sequence[Row]) -> Iterator[Row]:
        """A row for each outcome that is not there yet.

        ``expected`` is the true expectation of the decision; ``mean``, ``variance`` and
        ``log_density`` are of the prediction of the outcome, None for a random
        decision; ``recommended``, its true expectation ``value`` and, of
        ``wdrbo_exact``, its worst case ``worst`` are there at checkpoints.
        """
        case, truth = CASES[self.case], truth_of(self.case, self.seed)
        function = truth.function
        space, recipe = case.space(function), self.algorithm()
        world = World(function, self.case, self.seed, salt="")
        low, high = function.bounds

        def first(step: int) -> Tensor:
            uniforms = (world.initial_decision(step) - low) / (high - low)
            return case.decisions(function, uniforms)

        def seed_of(step: int) -> int | None:
            return derive_seed(self.seed, 0, step) if step >= INITIAL else None

        def found(row: Row, told: History) -> Row:
            about: Row = dict.fromkeys((*PREDICTED, *RECOMMENDED))
            x, c = told.X[-1:], told.C[-1:]
            about["expected"] = truth.expected(x).item()
            if row["iteration"] >= INITIAL:
                z = torch.cat([x, c], dim=-1)
                about.update(prediction(fit.model, z, row["y"], truth.deviation))
            if told.t in CHECKPOINTS:
                seed = derive_seed(self.seed, 1, told.t)
                best = recipe.recommend(told, space, seed=seed).x
                about["recommended"] = best.tolist()
                about["value"] = truth.expected(best.unsqueeze(0)).item()
                if self.method == "wdrbo_exact":
                    about["worst"] = truth.worst(best.unsqueeze(0)).item()
            return about

        with remembered_fit() as fit:
            yield from play(
                recipe,
                space,
                world,
                done,
                self.rounds,
                seed_of=seed_of,
                after=found,
                first=first,
            )


def tasks_of(
    *,
    halves: Sequence[str],
    cases: Sequence[str],
    methods: Sequence[str],
    surrogates: Sequence[str],
    seeds: int,
    rounds: int,
) -> list[Task]:
    """All runs that are asked for; seed by seed, so that what is there is paired.

    Args:
        halves: Of ``HALVES``.
        cases: Keys of ``CASES``; those of the halves if empty.
        methods: Of ``METHODS``.
        surrogates: Keys of ``CANDIDATES``; all if empty.
        seeds: How many: 0, 1, ...
        rounds: Outcomes of each run.

    Raises:
        ConfigError: Unknown names.
    """
    check_names(
        "The development set knows",
        (halves, HALVES),
        (cases, CASES),
        (methods, METHODS),
        (surrogates, CANDIDATES),
    )
    return [
        Task(case, method, surrogate, seed, rounds)
        for seed in range(seeds)
        for case in cases or CASES
        if half_of(case) in halves
        for method in methods
        for surrogate in surrogates or CANDIDATES
    ]


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
    memory, fit = RememberedFit(), fitted_state.fit_outcomes

    def fitted(history: History, *args: Any, **kwargs: Any) -> Model:
        model = memory.known(history)
        if model is None:
            model = fit(history, *args, **kwargs)
            memory.keep(history, model)
        return model

    with patch.object(fitted_state, "fit_outcomes", fitted):
        yield memory
