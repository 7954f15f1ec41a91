"""Names become recipes here, and only here."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo.adversaries import Adversary, FittedRound
from botorch_drbo.policies import Policy
from botorch_drbo.recipes import RECIPES, make_recipe, recipe_from_dict
from botorch_drbo.recipes.options import option_fields
from botorch_drbo.schedules import InverseSquareRoot


def test_every_recipe_of_the_first_release_is_there() -> None:
    names = {"random", "gp_ucb", "erbo", "wdrbo", "sbo_kde", "stable_opt"}
    assert names <= set(RECIPES)
    assert all(make_recipe(name).name == name for name in RECIPES)


def test_schedules_survive() -> None:
    recipe = make_recipe("wdrbo", radius=InverseSquareRoot(0.7), beta=4.0)
    again = recipe_from_dict(recipe.to_dict())
    assert again.to_dict() == recipe.to_dict()
    assert again.options["radius"] == InverseSquareRoot(0.7)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("wdrb", {}, "no algorithm 'wdrb'. Did you mean `wdrbo`.*choices are"),
        ("quite_another", {}, "'quite_another'. The choices are"),
        (
            "erbo",
            {"radius": 0.1},
            "no option radius. Recipes that have radius: wdrbo, wdrbo_exact",
        ),
        ("wdrbo", {"radios": 0.1}, "no option radios. Did you mean `radius`"),
        ("wdrbo", {"beta": -1.0}, "^`beta` must not be negative, got -1.0"),
        ("wdrbo", {"beta": "big"}, "^`beta` must be a number, got str 'big'.*Schedule"),
        ("wdrbo", {"beta": float("nan")}, "^`beta` must be a finite number"),
        ("sbo_kde", {"num_contexts": 0}, "num_contexts"),
        ("stable_opt", {"num_contexts": True}, "num_contexts"),
    ],
)
def test_refused(name: str, options: dict, message: str) -> None:
    with pytest.raises(InputDataError, match=message):
        make_recipe(name, **options)


SCHEDULED = [
    (name, option)
    for name, recipe in RECIPES.items()
    for option, field in option_fields(recipe).items()
    if any(word in str(field.type) for word in ("Schedule", "Rule", "Radius"))
]


@pytest.mark.parametrize(("name", "option"), SCHEDULED)
def test_refused_schedule_is_called_what_the_user_typed(name: str, option: str) -> None:
    for value in (-1, torch.tensor(0.3)):
        with pytest.raises(InputDataError, match=f"^`{option}` must"):
            make_recipe(name, **{option: value})


def test_both_kinds_of_schedules_are_among_them() -> None:
    assert {("wdrbo", "radius"), ("wdrbo", "beta"), ("dro", "radius")} <= {*SCHEDULED}


@dataclass(frozen=True, kw_only=True, eq=False)
class WithNumCandidates(Policy):
    """Seeks with an option that has the name of one of the Wasserstein ball."""

    num_candidates: int = 3

    @property
    def maximises_worst_case(self) -> bool:
        return True

    def exploring(
        self, state: FittedRound, adversary: Adversary, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        raise NotImplementedError

    def exploiting(
        self, state: FittedRound, adversary: Adversary
    ) -> AcquisitionFunction:
        raise NotImplementedError


def test_one_name_for_two_options_of_a_product_is_refused() -> None:
    """A value went to the adversary alone, and the policy kept its own."""
    with pytest.raises(InputDataError, match=r"`num_candidates` of the policy.*advers"):
        make_recipe(adversary="wasserstein", policy=WithNumCandidates())
    assert make_recipe(adversary="mmd", policy=WithNumCandidates())


def test_a_scope_is_the_reference_of_a_recipe() -> None:
    """Hosts pass options to recipes."""
    with pytest.raises(InputDataError, match="served as `reference`, a ContextSet"):
        make_recipe("erbo", scope="uniform")
