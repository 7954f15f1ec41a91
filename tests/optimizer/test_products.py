"""A run of a product: adversary and policy are arguments of the optimizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError

from botorch_drbo import RobustOptimizer
from botorch_drbo.adversaries.wasserstein import WassersteinBall
from botorch_drbo.policies.sampled import Thompson
from botorch_drbo.recipes import RobustRecipe, make_recipe
from botorch_drbo.testing.fixtures import PRIOR, SMALL

UNIT = torch.tensor([[0.0], [1.0]], dtype=torch.double)
OPTIONS: dict[str, Any] = {
    "hyperparameters": PRIOR,
    "num_initial": 2,
    "num_features": 32,
    "radius": 0.1,
    **SMALL,
}
CONTEXTS = torch.tensor([[0.2], [0.7], [0.4], [0.9]], dtype=torch.double)


def play(opt: RobustOptimizer, contexts: torch.Tensor) -> None:
    for c in contexts.split(1):
        x = opt.ask()
        opt.tell(x, c, (3.0 * x).sin() * c)


def test_it_asks_tells_journals_and_resumes(tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    arguments = ("wdrbo_exact", UNIT, UNIT)
    with RobustOptimizer(
        *arguments, policy="thompson", journal=journal, **OPTIONS
    ) as opt:
        play(opt, CONTEXTS)
        state = opt.state_dict()
    whole = RobustOptimizer(*arguments, policy="thompson", **OPTIONS)
    play(whole, CONTEXTS)
    asked, best = whole.ask(), whole.recommend()
    with RobustOptimizer.resume(journal) as resumed:
        recipe = resumed.algorithm
        assert isinstance(recipe, RobustRecipe) and recipe.name == "wdrbo_exact"
        assert isinstance(recipe.policy, Thompson) and recipe.policy.num_features == 32
        assert isinstance(recipe.adversary, WassersteinBall)
        assert recipe.adversary.num_candidates == 128
        assert torch.equal(resumed.ask(), asked)
        assert torch.equal(resumed.recommend().x, best.x)
        assert resumed.recommend().worst_case_value == best.worst_case_value
    assert torch.equal(RobustOptimizer.from_state_dict(state).ask(), asked)


def test_the_recipe_itself_plays_the_same() -> None:
    named = RobustOptimizer("wdrbo_exact", UNIT, UNIT, policy="thompson", **OPTIONS)
    options = {key: value for key, value in OPTIONS.items() if key != "num_initial"}
    recipe = make_recipe("wdrbo_exact", policy=Thompson(), **options)
    made = RobustOptimizer(recipe, UNIT, UNIT, num_initial=2)
    for opt in (named, made):
        play(opt, CONTEXTS)
    assert torch.equal(named.ask(), made.ask())
    other = RobustOptimizer("wdrbo_exact", UNIT, UNIT, **without("num_features"))
    play(other, CONTEXTS)
    assert not torch.equal(named.ask(), other.ask())  # the policy makes a difference


def test_a_product_of_ones_own_is_saved_with_its_parts(tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    options = {key: value for key, value in OPTIONS.items() if key != "num_initial"}
    recipe = make_recipe(adversary="wasserstein", policy="thompson", **options)
    arguments: dict[str, Any] = {"num_initial": 2}
    with RobustOptimizer(recipe, UNIT, UNIT, journal=journal, **arguments) as opt:
        play(opt, CONTEXTS)
    whole = RobustOptimizer(recipe, UNIT, UNIT, **arguments)
    play(whole, CONTEXTS)
    with RobustOptimizer.resume(journal) as resumed:
        assert resumed.algorithm.name == "wasserstein_thompson"
        assert resumed.algorithm.to_dict() == recipe.to_dict()
        assert torch.equal(resumed.ask(), whole.ask())


def without(*names: str) -> dict[str, Any]:
    return {key: value for key, value in OPTIONS.items() if key not in names}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"policy": "thomson"}, InputDataError, "Did you mean `thompson`"),
        ({"policy": "thompson", "beta": 1.0}, InputDataError, "no option beta"),
        ({"adversary": "mmd", "num_candidates": 4}, InputDataError, "num_candidates"),
        (
            {"adversary": "mmd", "policy": "lipschitz_penalty"},
            UnsupportedError,
            "Take the adversary `wasserstein`",
        ),
    ],
)
def test_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        RobustOptimizer("wdrbo_exact", UNIT, UNIT, **options)
