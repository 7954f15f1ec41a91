"""Recipes: methods by name, from a history to the next decision."""

from botorch_drbo.recipes.base import Recipe
from botorch_drbo.recipes.registry import (
    RECIPES,
    make_recipe,
    recipe_from_dict,
)
from botorch_drbo.recipes.robust_recipe import RobustRecipe

__all__ = ["RECIPES", "Recipe", "RobustRecipe", "make_recipe", "recipe_from_dict"]
