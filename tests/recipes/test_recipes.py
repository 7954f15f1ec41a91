"""Each recipe against a direct computation with BoTorch's own posterior."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.ambiguity import FullSimplex, NoAmbiguity, Wasserstein
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import RobustRecipe, make_recipe, recipe_from_dict
from botorch_drbo.schedules import InverseSquareRoot, SpreadRadius
from botorch_drbo.surrogate import BoTorchDefault, ModelData
from tests.products import exploring, product, robust_set

SPACE = SearchSpace(
    bounds=torch.tensor([[0.0], [1.0]], dtype=torch.double),
    context_bounds=torch.tensor([[0.0, 0.0], [1.0, 100.0]], dtype=torch.double),
)
BETA = 2.0


def history(t: int = 9, num_late: int = 0) -> History:
    generator = torch.Generator().manual_seed(5)
    X = torch.rand(t, 1, generator=generator, dtype=torch.double)
    contexts = torch.rand(t + num_late, 2, generator=generator, dtype=torch.double)
    contexts[:, 1] *= 100.0
    C = contexts[:t]
    Y = torch.sin(4 * X) + X * C[:, :1] - 0.01 * C[:, 1:]
    return History(X=X, C=C, Y=Y, contexts=contexts)


def joint_model(data: History) -> SingleTaskGP:
    scaled = torch.cat([data.X, data.C], dim=-1)
    return SingleTaskGP(scaled, data.Y)


def ucb(model: SingleTaskGP, X: Tensor, contexts: Tensor) -> Tensor:
    """``b x n`` upper confidence bounds, point by point."""
    rows = []
    for x in X:
        z = torch.cat([x.expand(len(contexts), -1), contexts], dim=-1)
        posterior = model.posterior(z.unsqueeze(-2))
        sigma = posterior.variance.sqrt()
        rows.append((posterior.mean + BETA**0.5 * sigma).flatten())
    return torch.stack(rows)


def values(algorithm: RobustRecipe, data: History, X: Tensor) -> Tensor:
    acqf = exploring(algorithm, joint_model(data), data, SPACE, beta=BETA, seed=4)
    return acqf(X.unsqueeze(-2)).detach()


X_TEST = torch.linspace(0.05, 0.95, 5, dtype=torch.double).unsqueeze(-1)


def test_erbo_averages_over_all_contexts_seen() -> None:
    data = history(num_late=3)
    expected = ucb(joint_model(data), X_TEST, data.contexts).mean(-1)
    assert torch.allclose(values(product("erbo"), data, X_TEST), expected)


def test_stable_opt_takes_the_worst_of_a_clipped_box() -> None:
    data = history()
    algorithm = product("stable_opt", num_contexts=50)
    contexts, ambiguity = robust_set(algorithm, joint_model(data), data, SPACE, 4)
    mean, std = data.contexts.mean(0), data.contexts.std(0, correction=0)
    low = (mean - std).clamp(SPACE.context_bounds[0], SPACE.context_bounds[1])
    high = (mean + std).clamp(SPACE.context_bounds[0], SPACE.context_bounds[1])
    assert isinstance(ambiguity, FullSimplex)
    assert contexts.points.shape == (50, 2)
    assert (contexts.points >= low).all() and (contexts.points <= high).all()
    # The Sobol set fills that box: its extremes lie within a few per cent of it.
    assert (contexts.points.amin(0) - low).div(high - low).max() < 0.05
    assert (high - contexts.points.amax(0)).div(high - low).max() < 0.05
    expected = ucb(joint_model(data), X_TEST, contexts.points).amin(-1)
    assert torch.allclose(values(algorithm, data, X_TEST), expected)


def test_sbo_kde_averages_over_the_density_estimate() -> None:
    data = history()
    algorithm = product("sbo_kde", num_contexts=64)
    contexts, ambiguity = robust_set(algorithm, joint_model(data), data, SPACE, 4)
    same = ContextSet.kernel_density(
        data.contexts, num_samples=64, bounds=SPACE.context_bounds, seed=4
    )
    assert isinstance(ambiguity, NoAmbiguity)
    assert torch.equal(contexts.points, same.points)
    expected = ucb(joint_model(data), X_TEST, same.points).mean(-1)
    assert torch.allclose(values(algorithm, data, X_TEST), expected)


def test_wdrbo_penalty_follows_radius_and_contexts() -> None:
    data, late = history(), history(num_late=7)  # 9 and 16 contexts
    free = values(product("erbo"), data, X_TEST)
    assert torch.allclose(values(product("wdrbo", radius=0.0), data, X_TEST), free)
    penalty = free - values(product("wdrbo", radius=0.1), data, X_TEST)
    assert (penalty > 0).all()  # f does depend on the context
    # The penalty is the radius times L(x), and .3 / sqrt(9) is .1.
    as_published = product("wdrbo", radius=InverseSquareRoot(0.3))
    assert torch.allclose(values(as_published, data, X_TEST), free - penalty)
    for contexts, radius in ((data, 0.3 / 3), (late, 0.3 / 4)):
        ball = robust_set(as_published, joint_model(data), contexts, SPACE, 4)[1]
        assert ball.radius.item() == pytest.approx(radius)


@pytest.mark.parametrize("name", ["wdrbo", "wdrbo_exact", "ec_wdrbo"])
def test_default_radius_follows_the_spread_in_units_of_the_box(name: str) -> None:
    for data in (history(), history(num_late=7)):
        unit = data.contexts.numpy() / [1.0, 100.0]
        trace = np.trace(np.cov(unit.T))
        recipe = make_recipe(name)
        assert isinstance(recipe, RobustRecipe)
        ball = robust_set(recipe, joint_model(data), data, SPACE, 4)[1]
        expected = 1.25 * math.sqrt(trace / len(unit))
        assert ball.radius.item() == pytest.approx(expected)
        scaled = make_recipe(name, radius=SpreadRadius(0.5))
        assert recipe_from_dict(scaled.to_dict()).options["radius"] == SpreadRadius(0.5)


def test_wdrbo_is_judged_by_a_ball_in_normalised_units() -> None:
    data = history()
    contexts, ball = robust_set(
        product("wdrbo", radius=0.2), joint_model(data), data, SPACE, 4
    )
    assert isinstance(ball, Wasserstein)
    unit = contexts.points / torch.tensor([1.0, 100.0], dtype=torch.double)
    expected = (unit[:, None, :] - unit[None, :, :]).square().sum(-1).sqrt()
    assert torch.allclose(ball.cost, expected)
    assert ball.cost.diagonal().abs().max() == 0


def test_gp_ucb_hallucinates_pending_decisions() -> None:
    data = history()
    model = SingleTaskGP(data.X, data.Y)
    pending = torch.tensor([[0.15], [0.85]], dtype=torch.double)

    def evaluate(beta: float, X_pending: Tensor | None) -> Tensor:
        acqf = exploring(
            product("gp_ucb"),
            model,
            data,
            SPACE,
            beta=beta,
            X_pending=X_pending,
            seed=0,
        )
        acqf.repulsion = 0.0  # pyright: ignore[reportAttributeAccessIssue]
        return acqf(X_TEST.unsqueeze(-2)).detach()

    posterior = model.posterior(X_TEST)
    mean, sigma = posterior.mean.flatten(), posterior.variance.sqrt().flatten()
    assert torch.allclose(evaluate(BETA, None), mean + BETA**0.5 * sigma)
    assert torch.allclose(evaluate(0.0, pending), mean, atol=1e-6)
    # What the variance would be with two more observations, whatever their values.
    conditioned = SingleTaskGP(
        torch.cat([data.X, pending]),
        torch.cat([data.Y, torch.zeros(2, 1, dtype=torch.double)]),
        outcome_transform=None,
    )
    plain = SingleTaskGP(data.X, data.Y, outcome_transform=None)
    ratio = (
        conditioned.posterior(X_TEST).variance / plain.posterior(X_TEST).variance
    ).flatten()
    found = (evaluate(BETA, pending) - mean).square() / (BETA * sigma.square())
    assert ratio.max() < 0.999 and ratio.min() < 0.5
    assert torch.allclose(found, ratio, rtol=1e-4)


@pytest.mark.parametrize("name", ["erbo", "wdrbo", "stable_opt", "gp_ucb"])
def test_recommendation_beats_every_decision_tried(name: str) -> None:
    data = history(t=15)
    # A hopeless search: one random start, one step. The decisions tried save it.
    search = {"num_restarts": 1, "raw_samples": 1, "max_iterations": 1}
    algorithm = make_recipe(name, surrogate="botorch", **search)
    assert isinstance(algorithm, RobustRecipe)
    inputs, bounds = data.X, SPACE.bounds
    if name != "gp_ucb":
        inputs, bounds = torch.cat([data.X, data.C], dim=-1), SPACE.joint_bounds
    model = BoTorchDefault().fit(ModelData(inputs, data.Y, bounds))
    for seed in range(3):
        best = algorithm.recommend(data, SPACE, seed=seed)
        acqf = algorithm.exploiting(algorithm.state_of(model, data, SPACE, seed))
        tried = acqf(data.X.unsqueeze(-2)).max().item()
        found = acqf(best.x.reshape(1, 1, -1)).item()
        if name == "stable_opt":  # its search has a part of the list
            assert best.objective <= found
            assert best.objective == pytest.approx(best.worst_case_value, abs=1e-4)
            continue
        assert best.objective == pytest.approx(found, rel=1e-6)
        assert found >= tried - 1e-9


def test_recommendation_finds_the_robust_optimum() -> None:
    # f = -(x - c)^2 is best in expectation at the mean of c, and in the worst case over
    # [mean - std, mean + std] as well; a skewed reference tells the two recipes apart.
    unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    space = SearchSpace(unit, unit)
    grid = torch.linspace(0.0, 1.0, 7, dtype=torch.double)
    X, C = (g.reshape(-1, 1) for g in torch.meshgrid(grid, grid, indexing="ij"))
    data = History(X=X, C=C, Y=-(X - C).square(), contexts=C)
    reference = ContextSet(
        torch.tensor([[0.1], [0.7]], dtype=torch.double), torch.tensor([0.75, 0.25])
    )
    erbo = product("erbo", reference=reference, num_restarts=2, raw_samples=32)
    best = erbo.recommend(data, space)
    assert best.x.item() == pytest.approx(0.25, abs=0.01)
    assert best.expected_value == pytest.approx(-0.0675, abs=2e-3)  # minus the variance
    assert best.worst_case_value == best.expected_value
    robust = product(
        "wdrbo", reference=reference, radius=10.0, num_restarts=2, raw_samples=32
    )
    ball = robust.recommend(data, space)
    # A ball of radius 10 covers the box: all mass goes to the farther end of it.
    assert ball.worst_case_weights.tolist() == [0.0, 0.0, 1.0]
    end = ball.context_set.points[-1].item()
    assert end == pytest.approx(round(end))
    assert abs(ball.x.item() - end) > 0.5 - 1e-3  # in the middle both are as far
    assert ball.worst_case_value == pytest.approx(
        -((ball.x.item() - end) ** 2), abs=5e-3
    )
