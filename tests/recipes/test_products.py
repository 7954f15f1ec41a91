"""A recipe is a product: its options are flat, and its parts can be others."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError

from botorch_drbo.adversaries.kernels import MMDBall
from botorch_drbo.adversaries.wasserstein import WassersteinBall
from botorch_drbo.ambiguity import KullbackLeibler
from botorch_drbo.policies.bounds import ConfidenceBound
from botorch_drbo.policies.sampled import Thompson
from botorch_drbo.recipes import RECIPES, RobustRecipe, make_recipe
from botorch_drbo.recipes.model_based import ModelBasedRecipe
from botorch_drbo.recipes.table import TABLE
from botorch_drbo.schedules import InverseSquareRoot
from botorch_drbo.testing.fixtures import PRIOR, SMALL, small_problem
from tests.products import product


@pytest.mark.parametrize("name", sorted(TABLE))
def test_options_are_those_of_the_recipe_and_of_its_parts(name: str) -> None:
    recipe = product(name)
    parts = {
        field.name: getattr(part, field.name)
        for part in (recipe.adversary, recipe.policy)
        for field in fields(part)
    }
    common = {field.name: field.default for field in fields(ModelBasedRecipe)}
    assert set(parts) & set(common) == set()  # a name means one thing
    assert len(parts) == len(fields(recipe.adversary)) + len(fields(recipe.policy))
    assert recipe.options == {**parts, **common}
    assert recipe.name == name and recipe.description.summary.endswith(".")


def test_each_option_goes_where_it_belongs() -> None:
    recipe = product("wdrbo_exact", radius=0.2, beta=4.0, half_life=3.0)
    assert isinstance(recipe.adversary, WassersteinBall)
    assert recipe.adversary.radius == 0.2
    assert recipe.adversary.num_candidates == 128  # the row's own value
    assert isinstance(recipe.policy, ConfidenceBound)
    assert recipe.policy.beta == 4.0
    assert recipe.half_life == 3.0
    assert TABLE["wdrbo_exact"].options["beta"] == 2.25  # the row is as it was


def test_another_policy_leaves_the_adversary_and_brings_its_own_options() -> None:
    recipe = product("wdrbo_exact", policy="thompson", radius=0.2, num_features=64)
    assert isinstance(recipe.policy, Thompson) and recipe.policy.num_features == 64
    assert isinstance(recipe.adversary, WassersteinBall)
    assert recipe.adversary.radius == 0.2
    assert recipe.adversary.num_candidates == 128
    assert "beta" not in recipe.options
    given = product("wdrbo_exact", policy=Thompson(num_features=32))
    assert given.options["num_features"] == 32


def test_another_adversary_comes_with_its_own_defaults() -> None:
    recipe = product("wdrbo_exact", adversary="mmd", num_contexts=25, beta=1.0)
    assert isinstance(recipe.adversary, MMDBall)
    assert recipe.adversary.radius == MMDBall().radius
    assert recipe.options["num_contexts"] == 25
    assert recipe.options["beta"] == 1.0
    assert "num_candidates" not in recipe.options


def test_the_name_of_its_own_part_changes_nothing() -> None:
    recipe = product("ucb_so", policy="confidence_bound", adversary="empirical")
    assert recipe.options["beta"] == 2.0  # the paper's, not the policy's 2.25
    assert recipe.to_dict() == product("ucb_so").to_dict()


def test_a_product_equals_the_row_that_it_is() -> None:
    history, space = small_problem()
    options: dict[str, Any] = {"hyperparameters": PRIOR, **SMALL}
    row = make_recipe("wdrbo_exact", **options)
    own = make_recipe(
        adversary="wasserstein",
        policy="confidence_bound",
        num_candidates=128,
        **options,
    )
    asked = [one.propose(history, space, seed=4) for one in (row, own)]
    assert torch.equal(*asked)
    advice = [one.recommend(history, space, seed=4) for one in (row, own)]
    assert torch.equal(advice[0].x, advice[1].x)
    assert advice[0].worst_case_value == advice[1].worst_case_value


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "wdrbo", "radios": 1}, "`wdrbo` has no option radios. Did you mean "),
        ({"name": "wdrbo", "num_features": 9}, "`wdrbo` has no option num_features"),
        (
            {"adversary": "mmd", "policy": "thompson", "beta": 1.0},
            "`mmd_thompson` has no option beta",
        ),
        (
            {"adversary": "mmd", "policy": "thompson", "num_feature": 9},
            "`mmd_thompson` has no option num_feature. Did you mean `num_features`",
        ),
        ({"name": "wdrbo_exact", "policy": "thomson"}, "Did you mean `thompson`"),
        ({"name": "wdrbo_exact", "adversary": "mdm"}, "`adversary` must be one of"),
        ({"name": "wdrbo_exact", "policy": 3}, "`policy` must be one of .* got 3"),
        ({"adversary": "mmd"}, "product of an `adversary` and a `policy`, got advers"),
        ({"policy": "thompson"}, "got policy. Give both"),
        ({}, "got neither. Give both, or the name of a recipe"),
        ({"name": "random", "policy": "thompson"}, "`random` is no product: it takes"),
        ({"name": "wdrbo_exact", "policy": "thompson", "num_features": 0}, "num_feat"),
        ({"name": "wdrbo_exact", "radius": -1.0}, "^`radius` must not be negative"),
    ],
)
def test_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputDataError, match=message):
        make_recipe(**arguments)


def test_options_of_both_parts_have_to_fit() -> None:
    with pytest.raises(UnsupportedError, match="takes any"):
        make_recipe("dro", policy="lipschitz_penalty")
    with pytest.raises(InputDataError, match="`num_candidates` is no use"):
        make_recipe("wdrbo", num_candidates=8)
    with pytest.raises(InputDataError, match="num_candidates"):
        make_recipe("wdrbo_exact", policy="lipschitz_penalty")


def test_parts_of_ones_own_stand_where_names_do() -> None:
    ball = WassersteinBall(radius=InverseSquareRoot(0.3))
    recipe = make_recipe(adversary=ball, policy=Thompson(num_features=16))
    assert recipe.options["radius"] == InverseSquareRoot(0.3)
    assert recipe.options["num_features"] == 16
    assert isinstance(recipe, RobustRecipe) and recipe.adversary is ball


def test_a_row_is_not_changed_by_what_is_made_of_it() -> None:
    before = {name: recipe.to_dict() for name, recipe in RECIPES.items()}
    make_recipe("dro", ambiguity_set=KullbackLeibler(0.1), radius=0.3)
    make_recipe("erbo", policy="thompson", adversary="mmd")
    assert {name: recipe.to_dict() for name, recipe in RECIPES.items()} == before
