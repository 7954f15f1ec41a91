"""The old home of recipes, up to version 0.2.0: each name leads to its new one.

``ALGORITHMS`` holds recipes now, not classes. The classes of single recipes have no
successor: ``make_recipe`` makes what their constructors made.
"""

from __future__ import annotations

from botorch_drbo._deprecation import renamed_name

_HOMES = {
    "policies": ("ConfidenceWidth",),
    "problem": ("ConstraintData", "History", "Round", "SearchSpace"),
    "randomness": ("derive_seed", "isolated_rng", "standard_dtype"),
    "recipes.phased": ("PhasedState", "PhasedUncertaintySampling"),
    "recipes.random_search": ("RandomSearch",),
    "recipes.balancing_state": ("BalancingState",),
    "recipes.regret_balancing": ("RegretBalancing",),
    "recommendation": ("Recommendation",),
    "surrogate": ("FixedHyperparameters",),
    "surrogate.given_model": ("ModelMaker",),
}
_RENAMED = {
    "ALGORITHMS": "botorch_drbo.recipes:RECIPES",
    "Algorithm": "botorch_drbo.recipes:Recipe",
    "ModelBasedAlgorithm": "botorch_drbo.recipes.model_based:ModelBasedRecipe",
    "algorithm_from_dict": "botorch_drbo.recipes:recipe_from_dict",
    "make_algorithm": "botorch_drbo.recipes:make_recipe",
    **{
        name: f"botorch_drbo.{home}:{name}"
        for home, names in _HOMES.items()
        for name in names
    },
}
__all__: list[str] = []


def __getattr__(name: str) -> object:
    """What a name of version 0.2.0 is called now."""
    return renamed_name(__name__, name, _RENAMED)
