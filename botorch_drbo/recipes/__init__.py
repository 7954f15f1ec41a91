"""Recipes: methods by name, from a history to the next decision."""

from botorch_drbo.recipes.base import Recipe
from botorch_drbo.recipes.description import Description
from botorch_drbo.recipes.model_based import ModelBasedRecipe
from botorch_drbo.recipes.phased import PhasedState, PhasedUncertaintySampling
from botorch_drbo.recipes.random_search import RandomSearch
from botorch_drbo.recipes.registry import (
    RECIPES,
    make_recipe,
    recipe_from_dict,
)
from botorch_drbo.recipes.regret_balancing import BalancingState, RegretBalancing
from botorch_drbo.recipes.robust_recipe import RobustRecipe

__all__ = [
    "RECIPES",
    "BalancingState",
    "Description",
    "ModelBasedRecipe",
    "PhasedState",
    "PhasedUncertaintySampling",
    "RandomSearch",
    "Recipe",
    "RegretBalancing",
    "RobustRecipe",
    "make_recipe",
    "recipe_from_dict",
]
