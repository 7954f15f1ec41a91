"""Importing this module registers the ablations and their parts."""

from benchmarks.experiments.ablations import (
    DRBO_MMD_DIAGONAL,
    STABLE_OPT_SHIFTED,
    WDRBO_DETACHED,
)
from botorch_drbo.adversaries import ADVERSARIES
from botorch_drbo.policies import POLICIES
from botorch_drbo.recipes import RECIPES

for recipe in (WDRBO_DETACHED, STABLE_OPT_SHIFTED, DRBO_MMD_DIAGONAL):
    RECIPES[recipe.name] = recipe
    ADVERSARIES[recipe.name] = recipe.adversary
POLICIES["detached_lipschitz_penalty"] = WDRBO_DETACHED.policy
