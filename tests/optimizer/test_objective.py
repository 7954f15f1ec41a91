"""An objective of the user's own, as an option."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo import NamedOptimizer, RobustOptimizer, Space
from botorch_drbo.ambiguity import AmbiguitySet, TotalVariation
from botorch_drbo.codec.objects import storable
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import Objective, RobustSatisficing, UncertaintyObjective
from botorch_drbo.policies.bounds import ConfidenceBound
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import make_recipe, recipe_from_dict

UNIT = torch.tensor([[0.0], [1.0]], dtype=torch.double)
SEARCH: dict[str, Any] = {"num_restarts": 2, "raw_samples": 32}
POLICIES = ["confidence_bound", "thompson", "expected_improvement"]


class BestContext(Objective):
    """Whatever may go well: the opposite of a worst case."""

    def forward(self, values: Tensor, weights: Tensor) -> Tensor:
        return values.amax(-1)


@storable
@dataclass(frozen=True)
class Target:
    """A satisficing objective that can be saved."""

    target: float

    def __call__(self, ambiguity_set: AmbiguitySet) -> RobustSatisficing:
        return RobustSatisficing(ambiguity_set, self.target)


def outcome(x: Tensor, c: Tensor) -> Tensor:
    """Steep in the context on the left, flat and lower on the right."""
    return (1 - x) * (4 * c - 1) + 0.5 * x


def data() -> History:
    generator = torch.Generator().manual_seed(1)
    X, C = torch.rand(2, 12, 1, generator=generator, dtype=torch.double)
    return History(X=X, C=C, Y=outcome(X, C), contexts=C)


def recommended(policy: str, **options: Any):
    recipe = make_recipe(
        adversary="ambiguity_set",
        policy=policy,
        reference=ContextSet(torch.tensor([[0.0], [1.0]], dtype=torch.double)),
        ambiguity_set=TotalVariation(0.8),
        contexts_complete=True,
        **SEARCH,
        **options,
    )
    return recipe, recipe.recommend(data(), SearchSpace(UNIT, UNIT), seed=0)


@pytest.mark.parametrize("policy", POLICIES)
def test_search_and_recommendation_follow_it(policy: str) -> None:
    _, cautious = recommended(policy)
    recipe, best = recommended(policy, objective=BestContext)
    assert cautious.x.item() > 0.9  # where the context does not count
    assert best.x.item() < 0.1  # where it may be very good
    # What is promised stays the worst case: half of 0.8 goes from the good to the bad.
    low, high = (outcome(best.x, torch.tensor([c])).item() for c in (0.0, 1.0))
    assert best.worst_case_value == pytest.approx(0.9 * low + 0.1 * high, abs=0.5)
    asked = recipe.propose(data(), SearchSpace(UNIT, UNIT), seed=0)
    assert asked.item() < 0.5


@pytest.mark.parametrize("policy", POLICIES)
def test_the_general_objective_written_out_is_the_same(policy: str) -> None:
    general = partial(UncertaintyObjective, value_weight=1.0, sensitivity_weight=0.5)
    found = []
    for options in ({"objective": general}, {"sensitivity_weight": 0.5}):
        recipe, best = recommended(policy, **options)
        asked = recipe.propose(data(), SearchSpace(UNIT, UNIT), seed=3)
        found.append((best.x, torch.tensor(best.worst_case_value), asked))
    for ours, theirs in zip(*found, strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": Target(1.0), "value_weight": 2.0}, "takes its place"),
        ({"objective": Target(1.0), "sensitivity_weight": 1.0}, "takes its place"),
        ({"objective": 5.0}, "function from an ambiguity set"),
        ({"objective": UncertaintyObjective.so()}, "built anew in each round"),
        ({"objective": Target(1.0), "policy": "finite_difference"}, "no `objective`"),
        (
            {
                "objective": Target(1.0),
                "policy": "lipschitz_penalty",
                "adversary": "wasserstein",
            },
            "no option",
        ),
    ],
)
def test_what_is_refused(options, message) -> None:
    with pytest.raises(InputDataError, match=message):
        make_recipe("dro", **options)


def test_a_function_that_makes_something_else() -> None:
    with pytest.raises(InputDataError, match="must return an Objective, got Total"):
        recommended("confidence_bound", objective=lambda ball: ball)


def tell(opt: RobustOptimizer) -> None:
    for c in (0.1, 0.8, 0.4):
        x, c = opt.ask(), torch.tensor([[c]], dtype=torch.double)
        opt.tell(x, c, outcome(x, c))


def best_context(ball: AmbiguitySet) -> Objective:
    return BestContext(ball)


FUNCTIONS = {
    "best_context": best_context,
    "RobustSatisficing": partial(RobustSatisficing, target=0.4),
    "BestOf": lambda ball: BestContext(ball),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_run_goes_on_with_the_function_given_again(tmp_path: Path, name: str) -> None:
    journal, function = tmp_path / "run.jsonl", FUNCTIONS[name]
    options: dict[str, Any] = {"num_initial": 3, "objective": function, **SEARCH}
    whole = RobustOptimizer("wdrbo_exact", UNIT, UNIT, **options)
    tell(whole)
    with RobustOptimizer("wdrbo_exact", UNIT, UNIT, journal=journal, **options) as opt:
        tell(opt)
        state = json.loads(json.dumps(opt.state_dict()))
    before = journal.read_bytes()
    kept = name if name != "BestOf" else "<lambda>"
    missing = f"`{kept}`, which cannot be saved. Pass it again: `objective="
    with pytest.raises(InputDataError, match=missing):
        RobustOptimizer.resume(journal)
    with pytest.raises(InputDataError, match=missing):
        RobustOptimizer.from_state_dict(state)
    with pytest.raises(InputDataError, match="function from an ambiguity set"):
        RobustOptimizer.resume(journal, objective=BestContext(TotalVariation(0.1)))  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputDataError, match="without a function as `model`"):
        RobustOptimizer.resume(journal, objective=function, model=make_nothing)
    assert journal.read_bytes() == before
    expected = whole.ask()
    with RobustOptimizer.resume(journal, objective=function) as again:
        assert again.algorithm.options["objective"] is function
        assert torch.equal(again.ask(), expected)
    again = RobustOptimizer.from_state_dict(state, objective=function)
    assert torch.equal(again.ask(), expected)


def make_nothing(*data: Tensor | None) -> Any:
    raise AssertionError("nobody should ask for a model")


def test_named_variables_and_an_objective_of_ones_own(tmp_path: Path) -> None:
    space = Space({"x": (0.0, 1.0)}, {"c": (0.0, 1.0)})
    journal = tmp_path / "run.jsonl"
    options: dict[str, Any] = {"num_initial": 2, "objective": best_context, **SEARCH}
    with NamedOptimizer("ts_wdrbo", space, journal=journal, **options) as opt:
        for c in (0.2, 0.7):
            opt.tell(opt.ask(), {"c": c}, c)
        state, expected = opt.state_dict(), opt.ask()
    with pytest.raises(InputDataError, match=r"`best_context`.*Pass it again"):
        NamedOptimizer.from_state_dict(state)
    again = NamedOptimizer.from_state_dict(state, objective=best_context)
    assert again.ask().equals(expected)
    with NamedOptimizer.resume(journal, objective=best_context) as again:
        assert len(again.pending) == 1


@pytest.mark.parametrize("options", [{}, {"objective": Target(0.4)}])
def test_a_function_too_many_is_refused(options: dict[str, Any]) -> None:
    state = RobustOptimizer("wdrbo_exact", UNIT, UNIT, **options).state_dict()
    with pytest.raises(InputDataError, match="without a function as `objective`"):
        RobustOptimizer.from_state_dict(state, objective=best_context)


def test_a_recipe_of_ones_own_parts_notes_the_function_too() -> None:
    made = make_recipe(
        adversary="wasserstein", policy=ConfidenceBound(objective=best_context)
    )
    stored = json.loads(json.dumps(made.to_dict()))
    with pytest.raises(InputDataError, match="`best_context`"):
        recipe_from_dict(stored)
    again = recipe_from_dict(stored, objective=best_context)
    assert again.options["objective"] is best_context
    assert again.to_dict() == stored


def test_what_can_be_stored_goes_on_from_a_journal(tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    options: dict[str, Any] = {"num_initial": 3, **SEARCH}
    with RobustOptimizer(
        "wdrbo_exact", UNIT, UNIT, journal=journal, objective=Target(0.4), **options
    ) as opt:
        tell(opt)
        state = opt.state_dict()
    with RobustOptimizer.resume(journal) as again:
        assert again.algorithm.options["objective"] == Target(0.4)
        asked = again.ask()
    assert torch.equal(RobustOptimizer.from_state_dict(state).ask(), asked)
