"""The small rules of recipes with a model, each against its definition."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from botorch_drbo.ambiguity import FullSimplex
from botorch_drbo.problem import History, Round, SearchSpace
from botorch_drbo.recipes import make_recipe
from botorch_drbo.recipes.fitted_state import FittedState
from botorch_drbo.recipes.model_based import ModelBasedRecipe
from botorch_drbo.recommendation.best_decision import incumbents
from botorch_drbo.recommendation.stability import rivals_of
from botorch_drbo.surrogate import FixedHyperparameters
from tests.models import uniform

BOX = torch.tensor([[0.0, 0.0], [1.0, 4.0]], dtype=torch.double)
SPACE = SearchSpace(BOX, torch.tensor([[0.0], [1.0]], dtype=torch.double))
PRIOR = FixedHyperparameters(lengthscale=0.3, noise_variance=1e-2)


def recipe(name: str, **options: object) -> ModelBasedRecipe:
    budget = {"num_restarts": 2, "raw_samples": 16, "hyperparameters": PRIOR}
    made = make_recipe(name, **{**budget, **options})
    assert isinstance(made, ModelBasedRecipe)
    return made


def history(t: int = 10) -> History:
    X, C = BOX[1] * uniform(t, 2, seed=1), uniform(t, 1, seed=2)
    Y = torch.sin(5 * X[:, :1] + 3 * C) - 0.1 * X[:, 1:].square()
    return History(X=X, C=C, Y=Y, contexts=C)


def moments(one: ModelBasedRecipe, data: History, x: Tensor) -> tuple[Tensor, Tensor]:
    """BoTorch's own at ``x`` and each context seen."""
    inputs = torch.cat([x.expand(len(data.contexts), -1), data.contexts], dim=-1)
    with torch.no_grad():
        found = one.fitted_model(data, SPACE).posterior(inputs.unsqueeze(-2))
    return found.mean.flatten(), found.variance.flatten()


@pytest.mark.parametrize("row", range(4))
def test_the_context_chosen_leaves_the_mean_least_uncertain(row: int) -> None:
    data, x = history(), BOX[1] * uniform(4, 2, seed=3)[row : row + 1]
    inputs = torch.cat([x.expand(len(data.contexts), -1), data.contexts], dim=-1)
    model = recipe("erbo").fitted_model(data, SPACE)
    with torch.no_grad():
        S, noisy = (
            model.posterior(inputs, observation_noise=noise).covariance_matrix
            for noise in (False, True)
        )
    left = []
    for i in range(len(S)):  # the covariance if this one is measured
        after = S - S[:, i : i + 1] @ S[i : i + 1] / noisy[i, i]
        left.append(after.mean())
    chosen = recipe("erbo").choose_contexts(data, SPACE, x)
    expected = data.contexts[torch.stack(left).argmin()].unsqueeze(0)
    torch.testing.assert_close(chosen, expected)


@pytest.mark.parametrize("row", range(4))
def test_the_adversary_of_a_chosen_context_is_pessimistic(row: int) -> None:
    data, x = history(), BOX[1] * uniform(4, 2, seed=3)[row : row + 1]
    robust = recipe("dro", ambiguity_set=FullSimplex())
    mean, variance = moments(robust, data, x)
    worst = (mean - 1.5 * variance.sqrt()).argmin()
    chosen = robust.choose_contexts(data, SPACE, x)
    torch.testing.assert_close(chosen, data.contexts[worst].unsqueeze(0))


def test_a_chosen_context_has_what_is_known_exactly() -> None:
    space = SearchSpace(BOX, torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double())
    data = history()
    both = torch.cat([data.C, uniform(10, 1, seed=5)], dim=-1)
    data = replace(data, C=both, contexts=both)
    known = torch.tensor([torch.nan, 0.3], dtype=torch.double)
    chosen = recipe("drbo_kde", num_contexts=32, num_outside=32).choose_contexts(
        data, space, data.X[:2], this_round=Round(known_context=known)
    )
    assert chosen[:, 1].tolist() == [0.3, 0.3]


@pytest.mark.parametrize(
    "probabilities", [[0.2, 0.5, 0.6, 0.1], [0.95, 0.2, 0.99, 0.0]]
)
def test_what_has_to_be_beaten_is_the_best_that_is_allowed(
    probabilities: list[float],
) -> None:
    data = history(4)
    tried = data.X.unique(dim=0)
    one = recipe("erbo")
    model = one.fitted_model(data, SPACE)
    values = torch.stack([moments(one, data, x.unsqueeze(0))[0].mean() for x in tried])
    level = torch.tensor(probabilities).double()
    chance: Any = SimpleNamespace(allows=lambda X: level >= 0.9, level=0.9)
    state = one.state_of(model, data, SPACE, 0)
    found, reference = incumbents(one.exploiting(state), chance, state)
    allowed = level >= 0.9
    if not allowed.any():  # any decision is a gain
        allowed = values == values.min()
    assert torch.equal(cast(Tensor, found.history.baseline), tried[allowed])
    assert reference == pytest.approx(values[allowed].max().item())


def test_of_decisions_alone_the_noise_is_not_what_was_told_of_it() -> None:
    data = history()
    noisy = replace(data, Yvar=torch.linspace(1e-4, 2.0, 10).double().unsqueeze(-1))
    alone = recipe("gp_ucb")
    assert torch.equal(alone.propose(data, SPACE), alone.propose(noisy, SPACE))
    joint = recipe("erbo")
    assert not torch.equal(joint.propose(data, SPACE), joint.propose(noisy, SPACE))


def test_rivals_are_apart_in_some_variable() -> None:
    x = torch.tensor([0.5, 2.0]).double()
    shifts = torch.tensor([[0.0, 0.0], [0.009, 0.036], [0.011, 0.0], [0.0, 0.044]])
    X = x + shifts.double()
    data = History(X=X, C=X[:, :1], Y=X[:, :1], contexts=X[:, :1])
    found, _ = rivals_of(x, data.X, SPACE, None, None)
    assert sorted(found.tolist()) == sorted(X[2:].tolist())


def test_a_recommendation_is_no_worse_than_what_was_tried() -> None:
    for t in (10, 20, 30):
        data = history(t)
        lazy = recipe("erbo", num_restarts=1, raw_samples=1, max_iterations=1)
        best = lazy.recommend(data, SPACE)
        tried = torch.stack(
            [moments(lazy, data, x.unsqueeze(0))[0].mean() for x in data.X]
        )
        assert best.objective >= tried.max().item() - 1e-9


def test_a_batch_sees_its_own_decisions_as_pending() -> None:
    data = history()
    for name in ("erbo", "gp_ucb", "wdrbo_exact"):
        one = recipe(name, raw_samples=256)
        first = one.propose(data, SPACE, seed=2)
        second = one.propose(data, SPACE, seed=2, X_pending=first)
        both = one.propose(data, SPACE, q=2, seed=2)
        torch.testing.assert_close(both[:1], first)
        # The second row comes from a list that was ranked with the first.
        state = FittedState(data, SPACE, 2)
        acqf = one.exploring(one._round_of(one._search_model(state), state), first)
        with torch.no_grad():
            found, alone, again = acqf(torch.stack([both[1:], second, first]))
        assert found > alone - 0.05 * (alone - again).abs()
