"""EC-GP-UCB and EC-WDRBO: what they add to the recipes that they widen."""

from __future__ import annotations

import math

import pytest
import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.exceptions.errors import InputDataError

from botorch_drbo.acquisition import LipschitzPenalizedUCB
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import make_recipe
from botorch_drbo.surrogate import FixedHyperparameters
from tests.models import UNIT

SMALL = {"num_restarts": 2, "raw_samples": 32, "max_iterations": 20}
SPACE = SearchSpace(UNIT, UNIT)
PRIOR = FixedHyperparameters(lengthscale=0.2, noise_variance=0.04, outputscale=2.0)


def history(t: int = 9) -> History:
    generator = torch.Generator().manual_seed(2)
    X, C = torch.rand(2, t, 1, generator=generator, dtype=torch.double)
    return History(X=X, C=C, Y=(7 * X).sin() + C, contexts=C)


@pytest.mark.parametrize(
    ("enlarged", "plain"), [("ec_gp_ucb", "gp_ucb"), ("ec_wdrbo", "wdrbo")]
)
def test_without_misspecification_nothing_is_new(enlarged: str, plain: str) -> None:
    widened = make_recipe(enlarged, misspecification=0.0, **SMALL)
    for pending in (None, torch.tensor([[0.4]]).double()):
        x = widened.propose(history(), SPACE, X_pending=pending)
        expected = make_recipe(plain, **SMALL).propose(
            history(), SPACE, X_pending=pending
        )
        torch.testing.assert_close(x, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", ["ec_gp_ucb", "ec_wdrbo"])
def test_recommendations_do_not_depend_on_it(name: str) -> None:
    wide = make_recipe(name, misspecification=5.0, **SMALL)
    narrow = make_recipe(name, misspecification=0.0, **SMALL)
    first, second = (r.recommend(history(), SPACE) for r in (wide, narrow))
    assert torch.equal(first.x, second.x)
    assert first.objective == second.objective


def test_scores_by_a_wider_plain_bound() -> None:
    """Equal noise: the enlargement is sqrt(beta) plus eps sqrt(t) / noise."""
    data, X = history(), torch.linspace(0, 1, 20).double().reshape(-1, 1, 1)
    width = 1.5 + 0.3 * math.sqrt(9) / 0.2
    options = {"hyperparameters": PRIOR, "misspecification": 0.3}
    recipe = make_recipe("ec_gp_ucb", **options)
    model = recipe.fitted(data, SPACE, uses_contexts=False)
    acqf = recipe.exploring(recipe.state_of(model, data, SPACE, 0), None)
    expected = UpperConfidenceBound(model, beta=width**2)
    torch.testing.assert_close(acqf(X), expected(X), rtol=1e-7, atol=1e-9)
    recipe = make_recipe("ec_wdrbo", radius=0.2, **options)
    model = recipe.fitted(data, SPACE, uses_contexts=True)
    acqf = recipe.exploring(recipe.state_of(model, data, SPACE, 0), None)
    contexts = recipe.state_of(None, data, SPACE, 0).contexts()
    expected = LipschitzPenalizedUCB(model, width**2, contexts, 0.2, UNIT)
    torch.testing.assert_close(acqf(X), expected(X), rtol=1e-7, atol=1e-9)


def test_a_wide_bound_explores() -> None:
    """With a large epsilon the most uncertain decision is taken."""
    X = torch.tensor([[0.4], [0.5], [0.55], [0.7]], dtype=torch.double)
    C = torch.full_like(X, 0.5)
    data = History(X=X, C=C, Y=-(X - 0.5).square(), contexts=C)
    for name in ("ec_gp_ucb", "ec_wdrbo"):
        options = {"hyperparameters": PRIOR, "misspecification": 100.0, **SMALL}
        x = make_recipe(name, **options).propose(data, SPACE)
        assert x.item() == pytest.approx(0.0, abs=0.02)


@pytest.mark.parametrize("name", ["ec_gp_ucb", "ec_wdrbo"])
@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, "0.1", True, None])
def test_bad_misspecification(name: str, value: object) -> None:
    with pytest.raises(InputDataError, match="misspecification"):
        make_recipe(name, misspecification=value)
