"""Decisions asked in parallel are no replicates of each other."""

from __future__ import annotations

import pytest
import torch
from botorch.optim import optimize_acqf
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import DistributionallyRobustUCB, LipschitzPenalizedUCB
from botorch_drbo.algorithms import History, SearchSpace, make_algorithm
from botorch_drbo.ambiguity import TotalVariation
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.posterior import marginal_posterior

UNIT = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
SPACE = SearchSpace(UNIT, UNIT[:, :1])
RECIPES = ["wdrbo", "erbo", "gp_ucb", "sbo_kde", "drbo_kde", "stable_opt", "ec_wdrbo"]


def uniform(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, generator=generator, dtype=torch.double)


def history(unit: float = 1.0) -> History:
    """A smooth hill, known well: little is left to explore."""
    X, C = uniform(40, 2, seed=0), uniform(40, 1, seed=1)
    noise = 0.02 * (uniform(40, 1, seed=2) - 0.5)
    hill = -(X - 0.4).square().sum(-1, keepdim=True)
    Y = hill + 0.3 * (3 * C).sin() * X[:, :1] + noise
    return History(X=X, C=C, Y=unit * Y, contexts=C)


def nearest(X: Tensor) -> float:
    """The least distance of two decisions, in sides of the box."""
    return torch.pdist(X, p=torch.inf).min().item()


@pytest.mark.parametrize("name", RECIPES)
def test_four_at_once_lie_apart(name: str) -> None:
    recipe = make_algorithm(name, num_restarts=4, raw_samples=64)
    assert nearest(recipe.propose(history(), SPACE, q=4, seed=1)) > 0.01


def test_what_is_pending_repels_too() -> None:
    recipe = make_algorithm("wdrbo", num_restarts=4, raw_samples=64)
    first = recipe.propose(history(), SPACE, seed=1)
    second = recipe.propose(history(), SPACE, X_pending=first, seed=1)
    assert nearest(torch.cat([first, second])) > 0.01


def test_the_unit_of_the_outcome_does_not_count() -> None:
    recipe = make_algorithm("erbo", num_restarts=4, raw_samples=64)
    found = [recipe.propose(history(u), SPACE, q=3, seed=1) for u in (1.0, 1e-6)]
    torch.testing.assert_close(*found, rtol=0.0, atol=1e-4)


@pytest.mark.parametrize("penalised", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_sequential_optimisation_spreads(penalised: bool, seed: int) -> None:
    model = make_algorithm("erbo")._model(history(), SPACE, True)
    contexts = ContextSet.empirical(history().C)
    if penalised:
        acqf = LipschitzPenalizedUCB(model, 2.25, contexts, 0.05, UNIT[:, :1])
    else:
        objective = UncertaintyObjective.dro(TotalVariation(0.3))
        acqf = DistributionallyRobustUCB(model, 2.25, contexts, objective)
    X, _ = optimize_acqf(
        acqf,
        UNIT,
        q=3,
        num_restarts=3,
        raw_samples=32,
        sequential=True,
        options={"seed": seed, "maxiter": 60},
    )
    assert nearest(X) > 0.01


def test_the_repulsion_by_its_formula() -> None:
    """Against deviations from posteriors that are made here."""
    model = make_algorithm("erbo")._model(history(), SPACE, True)
    contexts = ContextSet.empirical(history().C[:6])
    objective = UncertaintyObjective.so()
    pending, X = uniform(2, 2, seed=4), uniform(5, 2, seed=5)
    plain = DistributionallyRobustUCB(model, 2.25, contexts, objective)
    acqf = DistributionallyRobustUCB(
        model, 2.25, contexts, objective, X_pending=pending
    )
    joint = plain.observed.join(pending, contexts.points).flatten(0, 1)

    def deviation(share: float | None) -> Tensor:
        options = {} if share is None else {"pending": joint, "pending_noise": share}
        posterior = marginal_posterior(model, [2], method="generic", **options)
        return posterior(X, contexts.points)[1].mean(-1).sqrt()

    s = deviation(1e-8) / deviation(None)
    expected = 0.05 * 1.5 * deviation(None) * (1 + s.log() - s)
    found = acqf(X.unsqueeze(-2)) - acqf._values(X)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-9)
    at_pending = acqf(pending.unsqueeze(-2)) - acqf._values(pending)
    assert at_pending.max() < found.min()
