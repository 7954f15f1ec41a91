"""Thompson sampling and expected improvement of the robust objectives."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.sampling import SobolQMCNormalSampler
from scipy.optimize import linprog
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.ambiguity import NoAmbiguity
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import make_recipe
from botorch_drbo.sample_paths import PosteriorPaths
from botorch_drbo.surrogate import FixedHyperparameters
from tests.products import product, robust_set

PRIOR = FixedHyperparameters(lengthscale=(0.3, 0.25), noise_variance=1e-3)
UNIT = torch.tensor([[0.0], [1.0]], dtype=torch.double)
SPACE = SearchSpace(UNIT, UNIT)
LISTED = torch.linspace(0, 1, 9, dtype=torch.double).unsqueeze(-1)
RADIUS = 0.15


@cache
def history() -> History:
    generator = torch.Generator().manual_seed(4)
    X, C = torch.rand(2, 7, 1, generator=generator, dtype=torch.double)
    Y = (4 * X).sin() + (X - 0.5) * (7 * C).cos()
    return History(X=X, C=C, Y=Y, contexts=C)


def transported(f: np.ndarray, cost: np.ndarray, radius: float) -> float:
    """The worst case by linear programming over transport plans."""
    n = len(f)
    leaves = np.kron(np.eye(n), np.ones((1, n)))
    solved = linprog(
        np.tile(f, n),
        A_ub=cost.reshape(1, -1),
        b_ub=[radius],
        A_eq=leaves,
        b_eq=np.full(n, 1 / n),
    )
    return solved.fun


def test_ei_wdrbo_takes_the_decision_of_the_largest_expected_improvement() -> None:
    data = history()
    n = len(data.C)
    model = PRIOR.model(torch.cat([data.X, data.C], -1), data.Y, SPACE.joint_bounds, 2)
    both = torch.cat([LISTED, data.X])
    Z = torch.cat([both[:, None].expand(-1, n, 1), data.C.expand(16, n, 1)], dim=-1)
    sampler = SobolQMCNormalSampler(torch.Size([128]), seed=2)
    with torch.no_grad():
        samples = sampler(model.posterior(Z.reshape(-1, 2))).reshape(128, 16, n)
    cost = torch.cdist(data.C, data.C).numpy()
    values = np.array(
        [[transported(f, cost, RADIUS) for f in row] for row in samples.numpy()]
    )
    gain = (values[:, :9] - values[:, 9:].max(-1, keepdims=True)).clip(0.0).mean(0)
    recipe = make_recipe(
        "ei_wdrbo", radius=RADIUS, hyperparameters=PRIOR, num_paths=512
    )
    x = recipe.propose(data, SPACE, candidates=LISTED)
    assert gain[(x == LISTED).squeeze().nonzero()] >= 0.85 * gain.max() > 0.0
    assert gain.max() > 1.5 * np.median(gain)


@pytest.mark.parametrize("kind", ["ts", "ei"])
def test_without_a_radius_the_ball_is_the_expectation(kind: str) -> None:
    options = {"hyperparameters": PRIOR}
    plain = make_recipe(f"{kind}_erbo", **options)
    ball = make_recipe(f"{kind}_wdrbo", radius=0.0, **options)
    for seed in range(4):
        x, robust = (r.propose(history(), SPACE, seed=seed) for r in (plain, ball))
        torch.testing.assert_close(x, robust, rtol=0, atol=1e-4)


def test_ts_erbo_is_ts_bocu_without_ambiguity() -> None:
    options = {"hyperparameters": PRIOR}
    bocu = product("ts_bocu", ambiguity_set=NoAmbiguity(), **options)
    for seed in range(4):
        x = product("ts_erbo", **options).propose(history(), SPACE, seed=seed)
        assert torch.equal(x, bocu.propose(history(), SPACE, seed=seed))


@pytest.mark.parametrize("kind", ["ts", "ei"])
def test_other_contexts_than_those_seen_are_an_option(kind: str) -> None:
    made = {
        num: make_recipe(
            f"{kind}_wdrbo", num_candidates=num, hyperparameters=PRIOR
        ).recommend(history(), SPACE, candidates=LISTED)
        for num in (0, 64)
    }
    assert made[64].objective <= made[0].objective + 1e-9
    with pytest.raises(InputDataError, match="num_candidates"):
        make_recipe(f"{kind}_wdrbo", num_candidates=-1)


def test_far_from_data_a_path_pays_for_robustness_and_a_bound_does_not() -> None:
    data = history()
    near = data.X[:3]
    data = History(X=0.4 * data.X, C=data.C, Y=data.Y, contexts=data.C)
    near, far = 0.4 * near, torch.ones(1, 1, dtype=torch.double)
    prior = FixedHyperparameters(lengthscale=(0.1, 0.25), noise_variance=1e-3)
    model = prior.model(torch.cat([data.X, data.C], -1), data.Y, SPACE.joint_bounds, 2)
    recipe = product("wdrbo_exact", radius=RADIUS, num_candidates=0)
    contexts, ball = robust_set(recipe, model, data, SPACE, 0)  # pyright: ignore

    def price_of_bound(x: Tensor) -> float:
        plain, robust = (
            DistributionallyRobustUCB(model, 2.25, contexts, UncertaintyObjective(kind))
            for kind in (NoAmbiguity(), ball)
        )
        with torch.no_grad():
            return (plain(x.unsqueeze(1)) - robust(x.unsqueeze(1))).mean().item()

    def price_of_paths(x: Tensor) -> float:
        paths = PosteriorPaths(model, [1], num_paths=256, num_features=128, seed=0)
        values = paths(x, contexts.points)  # 256 x N x n
        robust = ball.value(values, contexts.weights)
        return (values @ contexts.weights - robust).mean().item()

    assert price_of_bound(far) < 0.05 * price_of_bound(near)
    assert price_of_paths(far) > 0.5 * price_of_paths(near)


def test_a_batch_of_improvements_is_spread_out() -> None:
    recipe = product("ei_erbo", hyperparameters=PRIOR)
    x = recipe.propose(history(), SPACE, q=3)
    gaps = torch.cdist(x, x).fill_diagonal_(1.0)
    assert gaps.min() > 0.01


def test_a_known_law_is_believed() -> None:
    law = ContextSet(torch.tensor([[0.9]], dtype=torch.double))
    recipe = product("ts_erbo", hyperparameters=PRIOR, reference=law)
    best = recipe.recommend(history(), SPACE, candidates=LISTED)
    assert best.objective == pytest.approx(best.worst_case_value)
