"""Problems, options and questions whose answers of 0.2.0 are on record."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.ambiguity import (
    ChiSquared,
    ConditionalValueAtRisk,
    FullSimplex,
    KullbackLeibler,
    MaximumMeanDiscrepancy,
    ModifiedChiSquared,
    NoAmbiguity,
    Wasserstein,
)
from botorch_drbo.policies import ConfidenceWidth
from botorch_drbo.problem import ConstraintData, History, Round, SearchSpace
from botorch_drbo.recipes import RECIPES, Recipe, make_recipe
from botorch_drbo.recommendation import Recommendation
from botorch_drbo.schedules import InverseSquareRoot, MMDRadius, SpreadRadius
from botorch_drbo.surrogate import FixedHyperparameters
from botorch_drbo.surrogate.by_name import DEFAULT_SURROGATE
from botorch_drbo.testing.fixtures import nothing_fitted
from tests.products import FEW

BUDGET = {"num_restarts": 2, "raw_samples": 32, "max_iterations": 6}
SEED = 5
PRIOR = FixedHyperparameters(lengthscale=0.4, noise_variance=1e-3, outputscale=1.0)
WIDTH = ConfidenceWidth(norm_bound=1.0)

# What a recipe has to be told about the problems here, or what would take long.
NEEDED: dict[str, dict[str, Any]] = {
    **FEW,
    "regret_balancing": {"reward_range": (-10.0, 10.0), "horizon": 16, "num_design": 4},
}

# A reference on 1 + 1 and on 2 + 2 dimensions, and sets that know its contexts.
_CORNERS = {
    1: torch.tensor([[10.0], [10.5], [12.0]], dtype=torch.double),
    2: torch.tensor([[10.0, 12.0], [11.0, 10.5], [12.0, 10.0]], dtype=torch.double),
}
_THREE = torch.tensor([0.5, 0.3, 0.2], dtype=torch.double)
_COST = torch.tensor(
    [[0.0, 0.3, 1.0], [0.3, 0.0, 0.7], [1.0, 0.7, 0.0]], dtype=torch.double
)


def reference(d: int) -> ContextSet:
    return ContextSet(_CORNERS[d], _THREE)


Options = Callable[[int], dict[str, Any]]
"""Options of a recipe in ``d`` + ``d`` dimensions."""

_RADII: dict[str, Options] = {
    "radius": lambda d: {"radius": 0.15},
    "radius schedule, forgetting": lambda d: {
        "radius": InverseSquareRoot(0.3),
        "half_life": 3.0,
    },
    "reference": lambda d: {"radius": 0.1, "reference": reference(d)},
}
_SPREAD: dict[str, Options] = {
    **_RADII,
    "spread": lambda d: {"radius": SpreadRadius(0.8), "half_life": 2.0},
}
_BOUND: dict[str, Options] = {"width": lambda d: {"beta": WIDTH}}
_SETS: dict[str, Options] = {
    "chi": lambda d: {"ambiguity_set": ChiSquared(0.2)},
    "modified chi": lambda d: {"ambiguity_set": ModifiedChiSquared(0.2)},
    "kullback": lambda d: {"ambiguity_set": KullbackLeibler(0.1), "radius": 0.2},
    "tail": lambda d: {"ambiguity_set": ConditionalValueAtRisk(0.5)},
    "simplex": lambda d: {"ambiguity_set": FullSimplex()},
    "cost": lambda d: {
        "ambiguity_set": Wasserstein(0.2, _COST),
        "reference": reference(d),
    },
    "kernel": lambda d: {
        "ambiguity_set": MaximumMeanDiscrepancy(0.2, (-_COST).exp()),
        "reference": reference(d),
        "radius": MMDRadius(),
    },
}
_WEIGHTS: dict[str, Options] = {
    "sensitive": lambda d: {"value_weight": 1.0, "sensitivity_weight": 0.5},
    "mean-risk": lambda d: {
        "ambiguity_set": KullbackLeibler(0.05),
        "sensitivity_weight": 1.0,
        "radius": 0.1,
    },
    "expectation": lambda d: {"ambiguity_set": NoAmbiguity()},
}
_PLAIN: dict[str, Options] = {
    "forgetting": lambda d: {"half_life": 3.0},
    "reference": lambda d: {"reference": reference(d)},
}

OPTIONS: dict[str, dict[str, Options]] = {
    "random": _PLAIN,
    "gp_ucb": {**_BOUND, "beta": lambda d: {"beta": 4.0}},
    "erbo": {**_PLAIN, **_BOUND},
    "edrbo": {
        **_PLAIN,
        "dear": lambda d: {"penalty": 3.0},
        "slip": lambda d: {"penalty_over": "batch"},
    },
    "sbo_kde": {**_PLAIN, **_BOUND},
    "stable_opt": {**_PLAIN, **_BOUND},
    "wdrbo": {**_SPREAD, **_BOUND},
    "wdrbo_exact": {
        **_SPREAD,
        **_BOUND,
        "few candidates": lambda d: {"num_candidates": 0},
    },
    "drbo_kde": {**_RADII, **_BOUND},
    "drbo_mmd": {**_RADII, **_BOUND},
    "drbo_mmd_minimax": {**_RADII, "jitter": lambda d: {"jitter": 1e-2}},
    "dro": {**_RADII, **_BOUND, **_SETS},
    "mean_shift": {**_PLAIN, "far": lambda d: {"shift": 2.0}},
    "contamination": {**_PLAIN, "half": lambda d: {"share": 0.5}},
    "ts_bocu": {**_RADII, **_WEIGHTS},
    "ts_erbo": _PLAIN,
    "ts_wdrbo": {**_SPREAD, "candidates": lambda d: {"num_candidates": 16}},
    "ts_drbo_kde": _RADII,
    "ts_drbo_mmd": _RADII,
    "ei_erbo": _PLAIN,
    "ei_integral": _PLAIN,
    "ei_wdrbo": {**_SPREAD, "candidates": lambda d: {"num_candidates": 8}},
    "ei_drbo_kde": _RADII,
    "ucb_bocu_1": {**_RADII, **_WEIGHTS, "step": lambda d: {"step": 0.01}},
    "ucb_bocu_2": {**_RADII, **_WEIGHTS, **_BOUND},
    "ucb_so": {**_PLAIN, **_BOUND},
    "ucb_ro": {**_PLAIN, **_BOUND},
    "phased_gp_us": {
        "paper": lambda d: {"confidence_width": WIDTH},
        "ours": lambda d: {"confidence_width": None, "norm_bound": 1.0},
    },
    "ec_gp_ucb": {**_BOUND, "more": lambda d: {"misspecification": 0.5}},
    "ec_wdrbo": {**_SPREAD, "more": lambda d: {"misspecification": 0.5}},
    "regret_balancing": {
        "guesses": lambda d: {"misspecifications": (0.3, 0.1, 0.0)},
        "norm": lambda d: {"norm_bound": 1.0},
    },
}


def spread(rows: int, columns: int, shift: int = 0) -> Tensor:
    """Points of the unit cube by a rule that no generator has a say in."""
    roots = torch.tensor([2.0, 3.0, 5.0, 7.0, 11.0, 13.0], dtype=torch.double).sqrt()
    counts = torch.arange(1 + shift, rows + 1 + shift, dtype=torch.double)
    return (counts.unsqueeze(-1) * roots[:columns]) % 1.0


@dataclass(frozen=True)
class Problem:
    """What has been seen, and where: decisions in [-1, 3]^d, contexts in [10, 12]^d."""

    history: History
    space: SearchSpace

    @property
    def d(self) -> int:
        return self.space.d_c


def outcomes(X: Tensor, C: Tensor) -> Tensor:
    shift = (X - 1.0).sum(-1, keepdim=True) - 1.5 * (C - 11.0).sum(-1, keepdim=True)
    return torch.cos(shift) - 0.2 * (X - 0.5).square().sum(-1, keepdim=True)


def problem(d: int, *, constrained: bool = False) -> Problem:
    """Eight trials, and one context whose outcome is still out."""
    sides = torch.tensor([[-1.0], [3.0]], dtype=torch.double).expand(2, d)
    contexts = torch.tensor([[10.0], [12.0]], dtype=torch.double).expand(2, d)
    unit = spread(9, 2 * d)
    X, C = -1.0 + 4.0 * unit[:8, :d], 10.0 + 2.0 * unit[:, d:]
    data = None
    if constrained:
        limit = 1.8 - X.sum(-1, keepdim=True) / d + 0.2 * (C[:8, :1] - 11.0)
        data = ConstraintData(X=X, C=C[:8], G=limit)
    history = History(X=X, C=C[:8], Y=outcomes(X, C[:8]), contexts=C, constraints=data)
    return Problem(history, SearchSpace(sides.contiguous(), contexts.contiguous()))


def mixed(*, categories: bool) -> Problem:
    """A number, an integer, a category; contexts are a number and three of a kind."""
    space = SearchSpace(
        torch.tensor([[0.0, 0.0, 0.0], [1.0, 4.0, 2.0]], dtype=torch.double),
        torch.tensor([[0.0, 0.0], [2.0, 2.0]], dtype=torch.double),
        discrete={1: (0.0, 1.0, 2.0, 3.0, 4.0)},
        categories={2: 3},
        inequality_constraints=(
            (torch.tensor([0, 1]), torch.tensor([-1.0, -0.5]).double(), -2.25),
        ),
        context_categories={1: 3} if categories else {},
        context_discrete={} if categories else {1: (0.0, 1.0, 2.0)},
    )
    unit = spread(30, 5)
    X = space.snap(space.bounds[0] + unit[:, :3] * space.bounds[1])
    C = space.snap_contexts(space.context_bounds[1] * unit[:, 3:])
    allowed = X[:, 0] + 0.5 * X[:, 1] <= 2.25
    X, C = X[allowed][:10], C[allowed][:10]
    Y = torch.sin(3.0 * X.sum(-1, keepdim=True)) + 0.3 * torch.cos(C.sum(-1, True))
    return Problem(History(X=X, C=C, Y=Y, contexts=C), space)


def recipe(name: str, **options: Any) -> Recipe:
    return make_recipe(name, **{**BUDGET, **NEEDED.get(name, {}), **options})


def with_the_model_of_then(name: str) -> Recipe:
    """With the surrogate of 0.2.0, where the recipe has none of its own."""
    one = recipe(name)
    if one.default_surrogate != DEFAULT_SURROGATE:
        return one
    return one.with_options(surrogate="botorch")


def pinned(name: str, **options: Any) -> Recipe:
    policy = getattr(RECIPES[name], "policy", None)
    if policy is None:
        return recipe(name, hyperparameters=PRIOR, **options)
    return recipe(name, **nothing_fitted(policy, PRIOR), **options)


def takes(name: str, *options: str) -> bool:
    return set(options) <= set(RECIPES[name].options)


Answer = list[str] | str
"""Numbers in hexadecimal, or the type of the refusal."""
Question = Callable[[], Answer]


def exactly(*values: Tensor | float) -> list[str]:
    flat = torch.cat([torch.as_tensor(v, dtype=torch.double).flatten() for v in values])
    return [number.hex() for number in flat.tolist()]


def described(best: Recommendation) -> list[str]:
    known = [] if best.feasibility is None else [best.feasibility]
    return exactly(
        best.x, best.objective, best.expected_value, best.worst_case_value, *known
    )


def _or_refused(ask: Callable[[], list[str]]) -> Question:
    def answer() -> Answer:
        try:
            return ask()
        except (InputDataError, UnsupportedError) as refusal:
            return type(refusal).__name__

    return answer


def proposed(one: Recipe, to: Problem, **known: Any) -> Question:
    return _or_refused(
        lambda: exactly(one.propose(to.history, to.space, seed=SEED, **known))
    )


def recommended(one: Recipe, to: Problem, **known: Any) -> Question:
    return _or_refused(
        lambda: described(one.recommend(to.history, to.space, seed=SEED, **known))
    )


def rounds(name: str, d: int) -> dict[str, Round]:
    """What may be known of one round."""
    radius = 0.05 if takes(name, "radius") else None
    known = torch.full((d,), math.nan, dtype=torch.double)
    known[0] = 10.4
    return {
        "forecast": Round(context_set=reference(d), radius=radius),
        "known": Round(known_context=known),
    }


def questions(name: str) -> dict[str, Question]:
    """All that is asked of a recipe."""
    asked: dict[str, Question] = {}
    for d in (1, 2):
        asked |= {f"{d}+{d}, {key}": ask for key, ask in _in_boxes(name, d).items()}
    for kind in ("categories", "steps"):
        to, one = mixed(categories=kind == "categories"), pinned(name)
        asked[f"mixed, {kind}, propose"] = proposed(one, to)
        asked[f"mixed, {kind}, recommend"] = recommended(one, to)
    return asked


def _in_boxes(name: str, d: int) -> dict[str, Question]:
    to, one, fitted = problem(d), pinned(name), with_the_model_of_then(name)
    pending = -1.0 + 4.0 * spread(2, d, shift=30)
    listed = torch.cat([-1.0 + 4.0 * spread(6, d, shift=50), pending])
    asked = {
        "fitted, propose": proposed(fitted, to),
        "fitted, recommend": recommended(fitted, to),
        "propose": proposed(one, to),
        "two": proposed(one, to, q=2),
        "pending": proposed(one, to, X_pending=pending),
        "candidates": proposed(one, to, q=2, X_pending=pending, candidates=listed),
        "recommend": recommended(one, to),
        "recommend, candidates": recommended(one, to, candidates=listed),
        "choose contexts": _or_refused(
            lambda: exactly(
                one.choose_contexts(to.history, to.space, pending, seed=SEED)
            )
        ),
        "policy": _or_refused(
            lambda: exactly(
                one.recommend_for(to.history, to.space, reference(d).points[:2])
            )
        ),
    }
    for key, this_round in rounds(name, d).items():
        asked[f"{key}, propose"] = proposed(one, to, this_round=this_round)
        asked[f"{key}, recommend"] = recommended(one, to, this_round=this_round)
    limited = problem(d, constrained=True)
    asked["constraints, propose"] = proposed(one, limited)
    asked["constraints, recommend"] = recommended(one, limited)
    for key, options in OPTIONS[name].items():
        other = pinned(name, **options(d))
        asked[f"{key}: propose"] = proposed(other, to)
        asked[f"{key}: recommend"] = recommended(other, to)
    return asked
