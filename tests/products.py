"""What tests ask of recipes."""

from __future__ import annotations

from typing import Any

import pytest
from botorch.acquisition import AcquisitionFunction
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import RECIPES, Recipe, RobustRecipe, make_recipe
from botorch_drbo.surrogate.by_name import DEFAULT_SURROGATE

# Fewer contexts and paths than by default, for recipes that would take long.
FEW: dict[str, dict[str, Any]] = {
    "phased_gp_us": {"num_decisions": 64},
    "drbo_mmd_minimax": {"num_contexts": 25},
    "drbo_mmd": {"num_contexts": 25},
    "ts_drbo_mmd": {"num_contexts": 25, "num_features": 64},
    "stable_opt": {"num_contexts": 64},
    "sbo_kde": {"num_contexts": 64},
    "drbo_kde": {"num_contexts": 64, "num_outside": 64},
    "ts_drbo_kde": {"num_contexts": 32, "num_outside": 32, "num_features": 64},
    "ei_drbo_kde": {"num_contexts": 16, "num_outside": 16, "num_paths": 8},
    "ei_wdrbo": {"num_paths": 8},
    "ei_erbo": {"num_paths": 8},
}


def one_model(name: str) -> dict[str, str]:
    """The surrogate of one model, for tests of what does not depend on it.

    None for a recipe that has a surrogate of its own.
    """
    own = RECIPES[name].default_surrogate
    return {"surrogate": "botorch"} if own == DEFAULT_SURROGATE else {}


def product(name: str, **options: Any) -> RobustRecipe:
    """A recipe of the table."""
    recipe = make_recipe(name, **options)
    assert isinstance(recipe, RobustRecipe)
    return recipe


def robust_set(
    recipe: Recipe,
    model: SingleTaskGP,
    history: History,
    space: SearchSpace,
    seed: int,
) -> tuple[ContextSet, AmbiguitySet]:
    """The list of contexts that the search of a recipe looks at, and the set around."""
    assert isinstance(recipe, RobustRecipe)
    state = recipe.state_of(model, history, space, seed)
    problem = recipe.adversary.search_problem(state)
    return problem.listed(), problem.ambiguity_set


def exploring(
    recipe: Recipe,
    model: SingleTaskGP,
    history: History,
    space: SearchSpace,
    *,
    beta: float,
    seed: int,
    X_pending: Tensor | None = None,
) -> AcquisitionFunction:
    """What the search of a recipe maximises with a given ``beta``."""
    assert isinstance(recipe, RobustRecipe)
    recipe = recipe.with_options(beta=beta)
    return recipe.exploring(recipe.state_of(model, history, space, seed), X_pending)


def parts(recipe: Recipe) -> set[object]:
    """Of what a recipe is made: who moves the contexts, and how decisions are found."""
    if not isinstance(recipe, RobustRecipe):
        return {type(recipe)}
    policy = recipe.policy
    return {
        type(recipe.adversary),
        (type(policy), getattr(policy, "misspecification", 0.0) > 0.0),
    }


def covering() -> list[str]:
    """Recipes in which every part of every recipe occurs; the default is among them."""
    chosen: list[str] = []
    seen: set[object] = set()
    for name in ("wdrbo_exact", *RECIPES):
        if new := parts(RECIPES[name]) - seen:
            chosen.append(name)
            seen |= new
    return chosen


def each_recipe() -> list:
    """All recipes, for a test of what is built on them; other pairs of parts are slow.

    Each pair has its contract, and each recipe its golden answers, in the unit tests.
    What stands above knows nothing of pairs: there each part occurs once.
    """
    quick = covering()
    return [
        pytest.param(name, marks=() if name in quick else pytest.mark.slow)
        for name in sorted(RECIPES)
    ]
