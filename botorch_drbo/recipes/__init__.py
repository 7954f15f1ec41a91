"""Recipes: methods by name, from a history to the next decision."""

from botorch_drbo.recipes.base import Algorithm
from botorch_drbo.recipes.description import Description
from botorch_drbo.recipes.model_based import ModelBasedAlgorithm
from botorch_drbo.recipes.phased import PhasedState, PhasedUncertaintySampling
from botorch_drbo.recipes.random_search import RandomSearch
from botorch_drbo.recipes.registry import (
    ALGORITHMS,
    algorithm_from_dict,
    make_algorithm,
)
from botorch_drbo.recipes.regret_balancing import BalancingState, RegretBalancing
from botorch_drbo.recipes.robust_recipe import RobustRecipe

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "BalancingState",
    "Description",
    "ModelBasedAlgorithm",
    "PhasedState",
    "PhasedUncertaintySampling",
    "RandomSearch",
    "RegretBalancing",
    "RobustRecipe",
    "algorithm_from_dict",
    "make_algorithm",
]
