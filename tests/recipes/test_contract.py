"""What every registered recipe promises. A new one is tested by being registered."""

from __future__ import annotations

import math

import pytest
import torch

from botorch_drbo import ContextSet
from botorch_drbo.recipes import RECIPES, Recipe, make_recipe
from botorch_drbo.testing import RecipeCase, RecipeContract
from botorch_drbo.testing.recipes import check_proposal, problem
from tests.products import FEW, covering, one_model

SMALL = {"num_restarts": 2, "raw_samples": 32, "max_iterations": 8}

# What a recipe has to be told about the problems here, or what would take long.
NEEDED = {**FEW, "regret_balancing": {"reward_range": (-1e3, 1e3)}}


def small(name: str, **options: object) -> Recipe:
    told = {**SMALL, **one_model(name), **NEEDED.get(name, {})}
    return make_recipe(name, **told, **options)


def case(name: str) -> RecipeCase:
    return RecipeCase(
        name,
        small(name),
        apart=name not in ("random", "phased_gp_us"),  # drawn, or to be repeated
        keeps_reference=name != "stable_opt" and "drbo_mmd" not in name,
    )


class TestOurRecipes(RecipeContract):
    """Every part of every recipe; tests/policies has each pair of parts."""

    cases = [case(name) for name in covering()]


@pytest.mark.slow
class TestOtherPairs(RecipeContract):
    cases = [case(name) for name in sorted({*RECIPES} - {*covering()})]


def test_stable_opt_keeps_two_moments_of_a_reference() -> None:
    history, space = problem(d_c=2)
    reference = ContextSet(10.5 + torch.rand(5, 2), torch.arange(1.0, 6.0))
    recipe = small("stable_opt", reference=reference)
    best = recipe.recommend(history, space)
    spread = (best.context_set.points - reference.mean).abs()
    # Single precision at 10.5 leaves 1e-6 of a spread of a tenth.
    assert (spread <= reference.std * (1 + 1e-4)).all()


# The grids of DRBO-MMD are the only ones that depend on the number of columns.
@pytest.mark.parametrize("d_c", [1, 2])
@pytest.mark.parametrize("name", [key for key in RECIPES if "drbo_mmd" in key])
def test_a_reference_is_rounded_to_a_grid(name: str, d_c: int) -> None:
    history, space = problem(d_c=d_c)
    reference = ContextSet(10.5 + torch.rand(5, d_c), torch.arange(1.0, 6.0))
    recipe = small(name, reference=reference)
    check_proposal(recipe.propose(history, space), 1, space)
    best = recipe.recommend(history, space)
    carried = best.context_set.weights > 0
    points = best.context_set.points[carried]
    num = recipe.options["num_contexts"]
    half = d_c**0.5 / (math.ceil(num ** (1 / d_c)) - 1)
    away = torch.cdist(reference.points.double(), points)
    assert (away.amin(-1) <= half * (1 + 1e-6)).all()
    assert best.context_set.weights[carried].sum() == pytest.approx(1.0)
