"""What tests ask of recipes."""

from __future__ import annotations

from typing import Any

from botorch.acquisition import AcquisitionFunction
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import Recipe, RobustRecipe, make_recipe


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
