"""A set without distances takes those of the contexts it is used on."""

from __future__ import annotations

import copy

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from torch import Tensor

from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    FiniteDifferenceUCB,
    RobustFeasibility,
    RobustThompsonSampling,
    best_robust_value,
    qLogDistributionallyRobustNoisyExpectedImprovement,
)
from botorch_drbo.ambiguity import MinimaxApproximation, Wasserstein
from botorch_drbo.codec import decode, encode
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import Objective, RobustSatisficing, UncertaintyObjective
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import make_recipe
from tests.models import make_model

POINTS = torch.tensor([[0.0], [0.3], [1.0]], dtype=torch.double)
WEIGHTS = torch.tensor([0.5, 0.3, 0.2], dtype=torch.double)
CONTEXTS = ContextSet(POINTS, WEIGHTS)
COST = (POINTS - POINTS.mT).abs()  # one column: the Euclidean distance
SCORES = torch.tensor([[2.0, 1.0, -1.0], [0.0, 3.0, 1.0]], dtype=torch.double)
X = torch.rand(4, 1, 1, generator=torch.Generator().manual_seed(0)).double()


def ucb(objective: Objective) -> Tensor:
    return DistributionallyRobustUCB(make_model(d=2), 2.25, CONTEXTS, objective)(X)


def difference(objective: UncertaintyObjective) -> Tensor:
    return FiniteDifferenceUCB(make_model(d=2), 2.25, CONTEXTS, objective)(X)


def thompson(objective: Objective) -> Tensor:
    return RobustThompsonSampling(make_model(d=2), CONTEXTS, objective, seed=0)(X)


def improvement(objective: Objective) -> Tensor:
    model, tried = make_model(d=2), X[:2, 0]
    acqf = qLogDistributionallyRobustNoisyExpectedImprovement(
        model, tried, CONTEXTS, objective, seed=0, num_paths=8
    )
    return torch.cat(
        [acqf(X), best_robust_value(model, tried, CONTEXTS, objective)[None]]
    )


@pytest.mark.parametrize("acquisition", [ucb, difference, thompson, improvement])
def test_an_acquisition_function_makes_the_cost(acquisition) -> None:
    bare = UncertaintyObjective(Wasserstein(0.2), 1.0, 0.5)
    given = UncertaintyObjective(Wasserstein(0.2, COST), 1.0, 0.5)
    assert torch.equal(acquisition(bare), acquisition(given))
    assert bare.ambiguity_set.cost is None  # the user's is left as it is


def test_other_objectives_and_sets_around_it() -> None:
    assert torch.equal(
        ucb(RobustSatisficing(Wasserstein(0.01), 0.5)),
        ucb(RobustSatisficing(Wasserstein(0.01, COST), 0.5)),
    )
    bare = MinimaxApproximation(Wasserstein(0.2))
    given = MinimaxApproximation(Wasserstein(0.2, COST))
    expected = ucb(UncertaintyObjective(given))
    assert torch.equal(ucb(UncertaintyObjective(bare)), expected)


def test_probability_of_feasibility() -> None:
    found = [
        RobustFeasibility(make_model(d=2), CONTEXTS, ball).probability(X[:, 0])
        for ball in (Wasserstein(0.2), Wasserstein(0.2, COST))
    ]
    assert torch.equal(*found)


def test_alone_it_says_what_is_missing() -> None:
    ball = Wasserstein(0.2)
    for ask in (
        lambda: ball.worst_case(SCORES, WEIGHTS),
        lambda: ball.worst_case(SCORES, WEIGHTS, "cvxpylayers"),
        lambda: ball.value(SCORES, WEIGHTS),
        lambda: ball.sensitivity(SCORES, WEIGHTS),
        lambda: ball.lower_bound(SCORES, WEIGHTS),
        lambda: ball.distance(WEIGHTS, WEIGHTS),
        lambda: MinimaxApproximation(ball).value(SCORES, WEIGHTS),
    ):
        with pytest.raises(InputDataError, match=r"without a `cost`.*at\(points\)"):
            ask()


def test_copies_have_no_cost_either() -> None:
    for twin in (
        Wasserstein(0.1).with_radius(0.2),
        copy.deepcopy(Wasserstein(0.2)),
        decode(encode(Wasserstein(0.2)), Wasserstein),
    ):
        assert twin.cost is None and twin.diameter is None
        there = twin.at(POINTS)
        assert torch.equal(
            there.value(SCORES, WEIGHTS), Wasserstein(0.2, COST).value(SCORES, WEIGHTS)
        )
        assert there.at(POINTS + 1) is there


def test_the_recipe_for_any_set_takes_the_contexts_of_the_round() -> None:
    C = torch.tensor([[0.0], [0.3], [1.0], [0.3]], dtype=torch.double)
    D = torch.tensor([[0.1], [0.5], [0.9], [0.7]], dtype=torch.double)
    history = History(X=D, C=C, Y=(3 * D * C).sin(), contexts=C)
    box = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    reference = ContextSet(POINTS, WEIGHTS)
    found = []
    for ball in (Wasserstein(0.1), Wasserstein(0.1, COST)):
        recipe = make_recipe(
            "dro",
            ambiguity_set=ball,
            reference=reference,
            num_restarts=1,
            raw_samples=8,
        )
        best = recipe.recommend(history, SearchSpace(box, box), seed=1)
        x = recipe.propose(history, SearchSpace(box, box), seed=1)
        found.append((best.x, best.worst_case_value, x))
    for bare, given in zip(*found, strict=True):
        assert torch.equal(torch.as_tensor(bare), torch.as_tensor(given))


def test_categories_have_no_distances() -> None:
    C = torch.tensor([[0.0], [1.0], [2.0], [0.0]], dtype=torch.double)
    history = History(X=C / 2, C=C, Y=C.sin(), contexts=C)
    space = SearchSpace(
        torch.tensor([[0.0], [1.0]], dtype=torch.double),
        torch.tensor([[0.0], [2.0]], dtype=torch.double),
        context_categories={0: 3},
    )
    recipe = make_recipe("dro", ambiguity_set=Wasserstein(0.1))
    with pytest.raises(UnsupportedError, match="categories have none"):
        recipe.propose(history, space, seed=1)
