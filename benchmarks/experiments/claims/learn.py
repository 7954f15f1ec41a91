"""One run: random decisions or those of a method, and recommendations by rules."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
from botorch.models.model import Model
from botorch.posteriors import GPyTorchPosterior
from torch import Tensor

from benchmarks.development.learn import SEARCH
from benchmarks.experiments.claims.cases import CASES
from benchmarks.experiments.claims.rules import METHODS, RULES, Rule, recommend
from benchmarks.experiments.claims.truth import SHIFTED, truth_of
from benchmarks.run.config import ConfigError
from benchmarks.run.storage import Row, RunKey
from benchmarks.run.world import World
from benchmarks.study.cases import INITIAL, check_names
from benchmarks.study.laws import Law
from benchmarks.study.play import play
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import Recipe, make_recipe
from botorch_drbo.sampling import derive_seed, sobol_in_box
from botorch_drbo.surrogate.by_name import as_surrogate
from botorch_drbo.surrogate.fit import fit_outcomes

CHECKPOINTS = (15, 30, 60)
FIRST_SEED = 1  # with 0 the code was tried
_NUM_FRESH = 2**6  # outcomes that are predicted
_EXPECTED = {"expected": METHODS["expected"]}

Recommends = Mapping[str, Mapping[str, Rule]]
"""Surrogate -> the rules that recommend by it."""


@dataclass(frozen=True)
class Learner:
    """Who asks, and which rules recommend of what was told.

    Args:
        recipe: A key of ``RECIPES``.
        options: Of the recipe.
        recommends: By which surrogates and rules.
    """

    recipe: str
    options: Mapping[str, Any]
    recommends: Recommends


LEARNERS: Mapping[str, Learner] = {
    "random": Learner(
        "random",
        {},
        {"botorch": METHODS, "ensemble": RULES, "kernels": _EXPECTED},
    ),
    "erbo, botorch": Learner("erbo", {"surrogate": "botorch"}, {"botorch": _EXPECTED}),
    "erbo": Learner("erbo", {"surrogate": "ensemble"}, {"ensemble": RULES}),
    "edrbo": Learner("edrbo", {"surrogate": "kernels"}, {"kernels": _EXPECTED}),
    "wdrbo_exact, sd": Learner(
        "wdrbo_exact",
        {"surrogate": "ensemble", "radius": "sd"},
        {"ensemble": {"robust": METHODS["robust"]}},
    ),
    "stable_opt": Learner(
        "stable_opt",
        {"surrogate": "ensemble", "num_contexts": 128},
        {"ensemble": {"box": METHODS["box"]}},
    ),
}
COMMON = "random"  # whose rows are the common data


@dataclass(frozen=True)
class Task:
    """A run.

    Args:
        case: A key of ``CASES``.
        learner: A key of ``LEARNERS``.
        seed: Picks contexts, the first decisions, and the function of a sample.
        rounds: How many outcomes, those of random decisions as well.
    """

    case: str
    learner: str
    seed: int
    rounds: int
    resumable: ClassVar[bool] = True

    @property
    def key(self) -> RunKey:
        """Where its rows are kept."""
        return RunKey(self.case, self.learner, self.seed)

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
        learner = LEARNERS[self.learner]
        search = {} if learner.recipe == "random" else SEARCH
        return make_recipe(learner.recipe, **learner.options, **search)

    def play(self, done: Sequence[Row]) -> Iterator[Row]:
        """A row for each outcome that is not there yet.

        ``found`` is what was recommended after this outcome, in JSON: see ``_found``;
        None where that is not asked.
        """
        function = truth_of(self.case, self.seed).function
        space = CASES[self.case].space(function)

        def seed_of(step: int) -> int | None:
            asks = self.learner != COMMON and step >= INITIAL
            return derive_seed(self.seed, 0, step) if asks else None

        def found(row: Row, told: History) -> Row:
            if told.t not in CHECKPOINTS:
                return {"found": None}
            return {"found": json.dumps(self._found(told, space))}

        yield from play(
            self.algorithm(),
            space,
            World(function, self.case, self.seed, salt=""),
            done,
            self.rounds,
            seed_of=seed_of,
            after=found,
        )

    def _found(self, history: History, space: SearchSpace) -> dict[str, Any]:
        """Surrogate -> the decisions of its rules, and the shares beyond two sd.

        ``{"decisions": {rule: x}, "settled": share, "shifted": share}``.
        """
        truth, found = truth_of(self.case, self.seed), {}
        seed = derive_seed(self.seed, 1, history.t)
        settled = truth.function.true_contexts(_NUM_FRESH, seed=seed % 2**31)
        shifted = truth.laws[SHIFTED]
        assert isinstance(shifted, Law)
        every = len(shifted.points) // _NUM_FRESH
        contexts = {"settled": settled, "shifted": shifted.points[::every]}
        for name, rules in LEARNERS[self.learner].recommends.items():
            surrogate = as_surrogate(name)
            model = fit_outcomes(history, space, surrogate, uses_contexts=True)
            decisions = recommend(model, history, space, rules, seed)
            X = sobol_in_box(_NUM_FRESH, space.bounds, seed)
            found[name] = {
                "decisions": {rule: x.tolist() for rule, x in decisions.items()},
                **{
                    world: share_beyond(model, X, C, truth.function.evaluate(X, C))
                    for world, C in contexts.items()
                },
            }
        return found


def share_beyond(model: Model, X: Tensor, C: Tensor, Y: Tensor) -> float:
    r"""The share of outcomes that lie beyond two predicted standard deviations.

    Args:
        model: One Gaussian process, or an ensemble, of which the mixture counts.
        X: Decisions, ``n x d_x``.
        C: Contexts, ``n x d_c``.
        Y: The outcomes, ``n``.
    """
    Z = torch.cat([X, C], dim=-1).unsqueeze(-2)  # n x 1 x d
    with torch.no_grad():
        posterior = cast(GPyTorchPosterior, model.posterior(Z, observation_noise=True))
    means, variances = posterior.mean.flatten(1), posterior.variance.flatten(1)
    mean = means.mean(-1, keepdim=True)
    variance = (variances + (means - mean).square()).mean(-1)
    return ((Y - mean.squeeze(-1)).square() > 4.0 * variance).double().mean().item()


def tasks_of(
    learners: Sequence[str],
    cases: Sequence[str],
    *,
    seeds: int,
    rounds: int,
    common: int,
) -> list[Task]:
    """All runs, seed by seed: a study that was stopped has whole seeds.

    Args:
        learners: Keys of ``LEARNERS``; all if empty.
        cases: Keys of ``CASES``; all if empty.
        seeds: How many: 1, 2, ...
        rounds: Outcomes of each run.
        common: The same of the common data.

    Raises:
        ConfigError: Unknown names, or too few outcomes for a recommendation.
    """
    check_names("The claims know", (learners, LEARNERS), (cases, CASES))
    if min(rounds, common) < CHECKPOINTS[0]:
        raise ConfigError(
            f"Recommendations are made after {CHECKPOINTS} outcomes, so a run must "
            f"have {CHECKPOINTS[0]} or more, got {min(rounds, common)}."
        )
    return [
        Task(case, learner, seed, common if learner == COMMON else rounds)
        for seed in range(FIRST_SEED, FIRST_SEED + seeds)
        for case in cases or CASES
        for learner in learners or LEARNERS
    ]
