"""The robust probability of being feasible, against BoTorch, cvxpy, closed forms."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.deterministic import GenericDeterministicModel
from scipy.stats import norm
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import RobustFeasibility
from botorch_drbo.ambiguity import (
    AmbiguitySet,
    ConditionalValueAtRisk,
    FullSimplex,
    KullbackLeibler,
    NoAmbiguity,
    TotalVariation,
    Wasserstein,
)
from tests.contracts.view_case import joined, model_moments
from tests.models import ensemble, make_model, uniform

D = 3  # two decision columns, one context


def constraint(shift: float = 0.0, sign: float = 1.0) -> SingleTaskGP:
    """Outcomes on both sides of zero."""
    Z = uniform(10, D, seed=3)
    Y = sign * ((5 * Z[:, :1]).sin() + Z[:, 1:2] - 2 * Z[:, 2:]) + shift
    model = SingleTaskGP(Z, Y)
    model.covar_module.lengthscale = 0.6
    model.likelihood.noise = 1e-2
    return model.eval()


def contexts(n: int = 7) -> ContextSet:
    return ContextSet(uniform(n, 1, seed=4), uniform(n, seed=5) + 0.1)


def brute_force(models: list[SingleTaskGP], X: Tensor, points: Tensor) -> np.ndarray:
    """``b x n`` probabilities by BoTorch's posterior and SciPy's normal law."""
    product = np.ones((len(X), len(points)))
    for model in models:
        with torch.no_grad():
            mean, variance = model_moments(model, joined(X, points, [D - 1]))
        product *= norm.cdf(mean.numpy() / variance.sqrt().numpy())
    return product


def worst_total_variation(p: np.ndarray, values: np.ndarray, radius: float) -> float:
    q = cp.Variable(len(p), nonneg=True)
    problem = cp.Problem(
        cp.Minimize(values @ q), [cp.sum(q) == 1, cp.norm1(q - p) <= radius]
    )
    return float(problem.solve(solver=cp.CLARABEL))


def worst_transport(p: np.ndarray, values: np.ndarray, points: np.ndarray, r: float):
    n = len(p)
    plan = cp.Variable((n, n), nonneg=True)
    cost = np.abs(points - points.T)
    problem = cp.Problem(
        cp.Minimize(cp.sum(plan, axis=0) @ values),
        [cp.sum(plan, axis=1) == p, cp.sum(cp.multiply(plan, cost)) <= r],
    )
    return float(problem.solve(solver=cp.CLARABEL))


def worst_divergence(p: np.ndarray, values: np.ndarray, radius: float) -> float:
    q = cp.Variable(len(p), nonneg=True)
    problem = cp.Problem(
        cp.Minimize(values @ q),
        [cp.sum(q) == 1, cp.sum(cp.rel_entr(q, p)) <= radius],
    )
    return float(problem.solve(solver=cp.CLARABEL))


X = uniform(6, D - 1, seed=6)
MODELS = [constraint(), constraint(1.0, -0.7)]


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("name", ["total variation", "wasserstein", "divergence"])
def test_against_cvxpy_on_probabilities_of_botorch(name: str, k: int) -> None:
    reference, radius = contexts(), 0.3
    p, points = reference.weights.numpy(), reference.points.numpy()
    ball: AmbiguitySet
    if name == "total variation":
        ball = TotalVariation(radius)
    elif name == "wasserstein":
        ball = Wasserstein(radius, torch.cdist(reference.points, reference.points))
    else:
        ball = KullbackLeibler(radius)

    def oracle(values: np.ndarray) -> float:
        if name == "total variation":
            return worst_total_variation(p, values, radius)
        if name == "wasserstein":
            return worst_transport(p, values, points, radius)
        return worst_divergence(p, values, radius)

    feasible = RobustFeasibility(ModelListGP(*MODELS[:k]), reference, ball)
    probabilities = brute_force(MODELS[:k], X, reference.points)
    expected = np.array([oracle(row) for row in probabilities])
    assert np.allclose(feasible.probabilities(X), probabilities, atol=1e-8)
    assert np.allclose(feasible.probability(X), expected, atol=1e-6)
    assert np.allclose(feasible(X.unsqueeze(-2)).exp(), expected, atol=1e-6)
    assert np.allclose(feasible.robust_value(X).value, expected, atol=1e-6)
    spread = probabilities.max(-1) - expected
    assert spread.max() > 0.2  # the adversary has something to do


def test_closed_forms() -> None:
    reference = contexts()
    probabilities = torch.from_numpy(brute_force(MODELS, X, reference.points))
    model = ModelListGP(*MODELS)

    def found(ball: AmbiguitySet) -> Tensor:
        return RobustFeasibility(model, reference, ball).probability(X)

    mean = (probabilities * reference.weights).sum(-1)
    assert torch.allclose(found(NoAmbiguity()), mean, atol=1e-8)
    assert torch.allclose(found(FullSimplex()), probabilities.amin(-1), atol=1e-8)
    # The worst tail, by filling up weights in the order of the scores.
    order = probabilities.argsort(-1)
    left, tail = torch.full((len(X),), 0.4), torch.zeros(len(X))
    for column in order.T:
        mass = torch.minimum(left, reference.weights[column])
        tail += mass * probabilities.gather(1, column.unsqueeze(-1)).squeeze(-1)
        left = left - mass
    cvar = found(ConditionalValueAtRisk(0.6))
    assert torch.allclose(cvar, tail.double() / 0.4, atol=1e-6)


def test_a_list_and_one_model_of_two_outputs_agree() -> None:
    Z = uniform(10, D, seed=3)
    Y = torch.stack([Z.sum(-1) - 1.2, 0.8 - Z[:, 0] * Z[:, 2]], dim=-1)
    models = [SingleTaskGP(Z, Y[:, j : j + 1]) for j in range(2)]
    both = SingleTaskGP(Z, Y)
    for model in (*models, both):
        model.covar_module.lengthscale = 0.5
        model.likelihood.noise = 1e-2
    found = [
        RobustFeasibility(model, contexts(), TotalVariation(0.2)).probability(X)
        for model in (ModelListGP(*models), both)
    ]
    assert torch.allclose(*found, atol=1e-6)


def test_an_ensemble_counts_with_the_mean_of_its_probabilities() -> None:
    Z = uniform(8, D, seed=3)
    model = ensemble(Z, Z.sum(-1, True) - 1.5)
    reference = contexts(5)
    with torch.no_grad():
        mean, variance = model_moments(model, joined(X, reference.points, [D - 1]))
    expected = norm.cdf(mean / variance.sqrt()).mean(1)  # b x S x n
    feasible = RobustFeasibility(model, reference, FullSimplex())
    assert np.allclose(feasible.probabilities(X), expected, atol=1e-6)
    assert np.allclose(feasible.probability(X), expected.min(-1), atol=1e-6)


@pytest.mark.parametrize("name", ["total variation", "wasserstein"])
def test_gradients_against_finite_differences(name: str) -> None:
    reference = contexts()
    ball: AmbiguitySet = TotalVariation(0.3)
    if name == "wasserstein":
        ball = Wasserstein(0.1, torch.cdist(reference.points, reference.points))
    feasible = RobustFeasibility(ModelListGP(*MODELS), reference, ball)
    x = X.clone().requires_grad_()
    (slope,) = torch.autograd.grad(feasible(x.unsqueeze(-2)).sum(), x)
    for column in range(D - 1):
        step = torch.zeros(D - 1, dtype=torch.double)
        step[column] = 1e-5
        with torch.no_grad():
            high, low = (feasible((X + s * step).unsqueeze(-2)) for s in (1, -1))
        assert torch.allclose(slope[:, column], (high - low) / 2e-5, rtol=1e-4)


def test_there_is_a_slope_where_every_probability_is_tiny() -> None:
    hopeless = constraint(-40.0)
    feasible = RobustFeasibility(hopeless, contexts(), TotalVariation(0.3))
    assert (feasible.probability(X) < 1e-100).all()
    x = X.clone().requires_grad_()
    values = feasible(x.unsqueeze(-2))
    (slope,) = torch.autograd.grad(values.sum(), x)
    assert values.isfinite().all() and slope.isfinite().all()
    assert (slope.abs().amax(-1) > 1.0).all()
    # One step uphill is one.
    with torch.no_grad():
        moved = feasible((X + 1e-6 * slope / slope.norm()).unsqueeze(-2))
    assert (moved >= values).all() and moved.sum() > values.sum()


def test_a_constraint_that_is_known_is_met_or_not() -> None:
    known = GenericDeterministicModel(lambda Z: Z[..., :1] - Z[..., 2:])
    reference = ContextSet(torch.tensor([[0.2], [0.4], [0.6], [0.8]]).double())
    x = torch.tensor([[0.1, 0.5], [0.5, 0.5], [0.9, 0.5]]).double()
    found = RobustFeasibility(known, reference, TotalVariation(0.5), num_inputs=3)
    # A quarter of the mass moves to a context that violates, where there is one.
    assert torch.allclose(found.probability(x), torch.tensor([0, 0.25, 1]).double())


def test_values_follow_a_model_that_was_trained_since() -> None:
    model = constraint()
    feasible = RobustFeasibility(model, contexts(), TotalVariation(0.3))
    before = feasible.probability(X)
    model.covar_module.lengthscale = 0.2
    after = RobustFeasibility(model, contexts(), TotalVariation(0.3)).probability(X)
    assert torch.allclose(feasible.probability(X), after)
    assert not torch.allclose(before, after)


def test_blocks_do_not_matter() -> None:
    model, reference = ModelListGP(*MODELS), contexts()
    rows = uniform(40, D - 1, seed=8)
    whole, small = (
        RobustFeasibility(model, reference, TotalVariation(0.3), memory_budget=budget)
        for budget in (2**30, 2**10)
    )
    assert torch.allclose(whole.probability(rows), small.probability(rows))
    x = rows.clone().requires_grad_()
    slopes = [
        torch.autograd.grad(f(x.unsqueeze(-2)).sum(), x)[0] for f in (whole, small)
    ]
    assert torch.allclose(*slopes)


def test_contexts_may_stand_in_any_column_and_dtypes_are_kept() -> None:
    model, first = constraint(), [1, 2, 0]
    Z, Y = model.train_inputs[0], model.train_targets.unsqueeze(-1)
    moved = SingleTaskGP(Z[:, [2, 0, 1]], Y, outcome_transform=None)
    plain = SingleTaskGP(Z, Y, outcome_transform=None)
    assert torch.equal(moved.train_inputs[0][:, first], Z)
    for gp in (moved, plain):
        gp.covar_module.lengthscale = 0.6
        gp.likelihood.noise = 1e-2
    own = RobustFeasibility(plain, contexts(), TotalVariation(0.3))
    other = RobustFeasibility(
        moved, contexts(), TotalVariation(0.3), context_indices=[0]
    )
    assert torch.allclose(own.probability(X), other.probability(X), atol=1e-8)
    assert own(X.float().unsqueeze(-2)).dtype == torch.float
    small = make_model(dtype=torch.float)
    points = ContextSet(contexts().points.float(), contexts().weights.float())
    found = RobustFeasibility(small, points, TotalVariation(0.3))(
        X.float().unsqueeze(-2)
    )
    assert found.dtype == torch.float and found.isfinite().all()


def test_bad_input() -> None:
    model, reference = constraint(), contexts()
    with pytest.raises(InputDataError, match="AmbiguitySet, got float"):
        RobustFeasibility(model, reference, 0.3)
    with pytest.raises(BotorchTensorDimensionError, match="ambiguity_set"):
        RobustFeasibility(model, reference, Wasserstein(0.1, torch.zeros(3, 3)))
    with pytest.raises(InputDataError, match="floor"):
        RobustFeasibility(model, reference, TotalVariation(0.3, floor=-8.0))
    with pytest.raises(InputDataError, match="floor"):
        RobustFeasibility(model, reference, TotalVariation(0.3, floor=0.5))
    with pytest.raises(InputDataError, match="method"):
        RobustFeasibility(model, reference, FullSimplex(), method="fast")
    feasible = RobustFeasibility(model, reference, TotalVariation(0.3))
    with pytest.raises(BotorchTensorDimensionError, match="2 columns"):
        feasible.probability(uniform(4, 3))
    with pytest.raises(UnsupportedError, match="sequential=True"):
        feasible(uniform(4, 2, 2))
    # Mass at a floor of zero meets no constraint: that is a probability.
    lost = RobustFeasibility(model, reference, TotalVariation(0.3, floor=0.0))
    full = RobustFeasibility(model, reference, TotalVariation(0.3))
    assert (lost.probability(X) <= full.probability(X) + 1e-12).all()


def test_a_probability_is_at_most_one() -> None:
    """Worst-case weights sum to one up to rounding, sometimes to more."""
    weights = uniform(7, seed=5) ** 3 + 0.01
    sure = constraint(shift=1e4)
    for seed in range(40):
        points = ContextSet(uniform(7, 1, seed=seed), uniform(7, seed=seed) + weights)
        feasible = RobustFeasibility(sure, points, TotalVariation(0.3))
        X = uniform(5, D - 1, seed=6)
        assert (feasible.probability(X) <= 1.0).all()
        assert (feasible.robust_value(X).value <= 1.0).all()
