"""The option ``surrogate``: every recipe takes it, and journals keep it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo import RobustOptimizer
from botorch_drbo.policies import POLICIES
from botorch_drbo.posterior.ensemble import ModelEnsemble, members_of
from botorch_drbo.recipes import RECIPES, make_recipe, recipe_from_dict
from botorch_drbo.surrogate import SURROGATES, EnsembleOf, FixedHyperparameters
from botorch_drbo.surrogate.by_name import DEFAULT_SURROGATE
from tests.models import UNIT, uniform

SMALL: dict[str, Any] = {"num_restarts": 2, "raw_samples": 16, "max_iterations": 10}
SQUARE = UNIT.expand(2, 2)


def told(recipe: str = "erbo", t: int = 9, **options: Any) -> RobustOptimizer:
    """A run of two decisions and one context with outcomes."""
    opt = RobustOptimizer(recipe, SQUARE, UNIT, num_initial=0, **SMALL, **options)
    X, C = uniform(t, 2, seed=1), uniform(t, 1, seed=2)
    opt.tell(X, C, (4 * X[:, :1]).sin() - (X[:, 1:] - C).square())
    return opt


def everything() -> list[tuple[str, str]]:
    """Every policy with one model and with several; one of them needs several."""
    return [
        (policy, surrogate)
        for policy in POLICIES
        for surrogate in ("matern", "ensemble")
        if surrogate == "ensemble" or policy != "disagreement_penalty"
    ]


@pytest.mark.parametrize(("policy", "surrogate"), everything())
def test_every_policy_takes_it(policy: str, surrogate: str) -> None:
    row = "erbo" if policy == "ei_integral" else "ts_wdrbo"  # adversaries that it takes
    known = {"policy": policy, "surrogate": surrogate}
    few = {"num_paths": 5} if "num_paths" in make_recipe(row, **known).options else {}
    x, again = (told(row, **known, **few).ask(2) for _ in range(2))
    assert torch.equal(x, again)
    assert x.shape == (2, 2) and (x >= 0).all() and (x <= 1).all()


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_decisions_and_recommendations_come_of_it(surrogate: str) -> None:
    opt = told(surrogate=surrogate)
    assert opt.ask().shape == (1, 2)
    best = opt.recommend()
    assert best.worst_case_value <= best.expected_value + 1e-9
    mean, variance = opt.predict(best.x, torch.tensor([0.5]).double())
    assert mean.isfinite().all() and (variance > 0).all()
    assert len(members_of(opt.model)) == len(members_of(told_model(surrogate)))


def told_model(surrogate: str) -> Model:
    return told(surrogate=surrogate).model


def test_the_default_is_the_ensemble_of_four() -> None:
    assert DEFAULT_SURROGATE == "ensemble"
    four = ["botorch", "matern", "rbf", "matern32"]
    assert SURROGATES["ensemble"] == EnsembleOf(four)
    plain, named = told(), told(surrogate="ensemble")
    asked = plain.ask()
    assert torch.equal(asked, named.ask())
    assert not torch.equal(asked, told(surrogate="botorch").ask())


def test_an_ensembles_decision_is_the_best_on_a_grid() -> None:
    """Oracle: the members' own posteriors; the mean of their expected bounds."""
    opt = RobustOptimizer("erbo", UNIT, UNIT, num_initial=0, surrogate="ensemble")
    X, C = uniform(9, 1, seed=1), uniform(9, 1, seed=2)
    opt.tell(X, C, (5 * X).sin() - (X - C).square())
    model = opt.model
    assert isinstance(model, ModelEnsemble)
    grid = torch.linspace(0, 1, 401).double()
    joint = torch.stack(torch.meshgrid(grid, C.flatten(), indexing="ij"), -1)
    total = torch.zeros_like(grid)
    with torch.no_grad():
        for member in model.members:
            posterior = member.posterior(joint.reshape(-1, 1, 2))
            bound = posterior.mean + 1.5 * posterior.variance.sqrt()
            total += bound.reshape(401, 9).mean(-1) / len(model.members)
    assert opt.ask().item() == pytest.approx(grid[total.argmax()].item(), abs=0.003)


@pytest.mark.parametrize(
    "surrogate", ["matern", "ensemble", EnsembleOf(["rbf", "matern32"])], ids=str
)
def test_a_journal_goes_on_with_it_to_the_last_bit(
    surrogate: Any, tmp_path: Path
) -> None:
    journal = tmp_path / "run.jsonl"
    opt = told(surrogate=surrogate, journal=journal)
    first, second = opt.ask(), opt.ask()
    del opt
    resumed = RobustOptimizer.resume(journal)
    assert torch.equal(resumed.pending, torch.cat([first, second]))
    other = told(surrogate=surrogate)
    other.ask(), other.ask()
    assert torch.equal(resumed.ask(), other.ask())
    wanted = other.recommend()
    assert resumed.recommend().expected_value == wanted.expected_value


def test_a_recipe_says_in_a_record_what_it_models_by() -> None:
    record = json.loads(json.dumps(make_recipe("erbo").to_dict()))
    assert record["options"]["surrogate"] == DEFAULT_SURROGATE
    assert recipe_from_dict(record).options["surrogate"] == DEFAULT_SURROGATE


@pytest.mark.parametrize("name", ["phased_gp_us", "regret_balancing", "edrbo"])
def test_a_recipe_with_a_surrogate_of_its_own_keeps_it(name: str) -> None:
    own = "kernels" if name == "edrbo" else "botorch"
    needed = {"horizon": 9, "num_design": 2, "reward_range": (0.0, 1.0)}
    options = needed if name == "regret_balancing" else {}
    record = make_recipe(name, **options).to_dict()
    assert record["options"]["surrogate"] == own
    del record["options"]["surrogate"]
    assert recipe_from_dict(record).to_dict()["options"]["surrogate"] == own


def made_by_hand(X: Tensor, Y: Tensor, Yvar: Tensor | None, bounds: Tensor) -> Model:
    return SingleTaskGP(X, Y)


def test_a_function_is_the_option_model_under_another_name() -> None:
    recipe = make_recipe("erbo", surrogate=made_by_hand)
    assert recipe.options["model"] is made_by_hand
    assert recipe.options["surrogate"] is None
    record = recipe.to_dict()
    again = recipe_from_dict(record, model=made_by_hand)
    assert again.options["model"] is made_by_hand


@pytest.mark.parametrize(
    "other",
    [{"model": made_by_hand}, {"hyperparameters": FixedHyperparameters(0.3, 0.1)}],
)
def test_two_ways_to_say_it_are_one_too_many(other: dict[str, Any]) -> None:
    with pytest.raises(InputDataError, match="Give one of them"):
        make_recipe("erbo", surrogate="matern", **other)


@pytest.mark.parametrize("name", RECIPES)
def test_unknown_names_are_refused_at_once(name: str) -> None:
    with pytest.raises(InputDataError, match="Did you mean `matern`"):
        make_recipe(name, surrogate="matren")


def test_phased_takes_single_models_alone() -> None:
    assert make_recipe("phased_gp_us", surrogate="matern").name == "phased_gp_us"
    with pytest.raises(UnsupportedError, match="'botorch', 'matern', 'matern32'"):
        make_recipe("phased_gp_us", surrogate="ensemble")


def test_phased_gp_us_plays_with_a_matern_model() -> None:
    opt = told("phased_gp_us", surrogate="matern", num_decisions=32)
    assert opt.ask().shape == (1, 2)


@pytest.mark.parametrize("surrogate", ["matern", "ensemble"])
def test_regret_balancing_takes_botorch_alone(surrogate: str) -> None:
    with pytest.raises(UnsupportedError, match="no other surrogate than 'botorch'"):
        make_recipe("regret_balancing", surrogate=surrogate)


def test_random_is_judged_by_it() -> None:
    assert isinstance(told("random", surrogate="ensemble").model, ModelEnsemble)


@pytest.mark.parametrize("surrogate", ["matern", "ensemble", "kernels"])
def test_perturbations_and_known_contexts(surrogate: str) -> None:
    tolerance = torch.tensor([[-0.1], [0.1]]).double()
    opt = RobustOptimizer(
        "erbo",
        UNIT,
        tolerance,
        num_initial=0,
        perturbation=True,
        surrogate=surrogate,
        **SMALL,
    )
    X, C = uniform(9, 1, seed=1), 0.2 * uniform(9, 1, seed=2) - 0.1
    opt.tell(X, C, (4 * (X + C)).sin())
    model = opt.model
    same = [
        model.posterior(torch.tensor([[[0.5, 0.02]], [[0.47, 0.05]]]).double()).mean
    ][0]
    assert torch.allclose(same[0], same[1])
    known = told(surrogate=surrogate)
    x = known.ask(context=torch.tensor([0.3]).double())
    assert x.shape == (1, 2)


def test_outcome_constraints_go_with_an_ensemble() -> None:
    opt = RobustOptimizer(
        "wdrbo_exact", UNIT, UNIT, num_initial=0, surrogate="ensemble", **SMALL
    )
    X, C = uniform(10, 1, seed=1), uniform(10, 1, seed=2)
    opt.tell(X, C, X, constraints=1.2 - X - C)
    assert opt.ask().shape == (1, 1)
    assert opt.recommend().feasibility is not None
