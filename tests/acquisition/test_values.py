"""The acquisition values themselves, against formulas written out by hand."""

from __future__ import annotations

import math

import pytest
import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.acquisition.objective import ExpectationPosteriorTransform
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.map_saas import EnsembleMapSaasSingleTaskGP
from botorch.models.transforms.input import AppendFeatures

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import DistributionallyRobustUCB, LipschitzPenalizedUCB
from botorch_drbo.ambiguity import FullSimplex, NoAmbiguity, Wasserstein
from botorch_drbo.confidence.information_gain import with_noise_ratio
from botorch_drbo.objectives import UncertaintyObjective
from tests.models import UNIT, known_model, uniform


@pytest.fixture
def model() -> SingleTaskGP:
    Z = uniform(15, 3, seed=11)
    Y = (5 * Z[:, :1]).sin() + Z[:, 1:2] * (6 * Z[:, 2:]).cos()
    return known_model(Z, Y, normalise=False)


@pytest.fixture
def context_set() -> ContextSet:
    points = torch.tensor([[0.1], [0.5], [0.55], [0.9]], dtype=torch.double)
    return ContextSet(points, torch.tensor([0.1, 0.4, 0.3, 0.2], dtype=torch.double))


X = torch.tensor([[0.2, 0.8], [0.6, 0.4], [0.9, 0.1]], dtype=torch.double)


def ucb(model, x, c, beta=2.25):
    posterior = model.posterior(torch.cat([x, c])[None])
    return (posterior.mean + math.sqrt(beta) * posterior.variance.sqrt()).item()


def test_expectation_and_worst_case_by_hand(model, context_set):
    table = torch.tensor(
        [[ucb(model, x, c) for c in context_set.points] for x in X],
        dtype=torch.double,
    )
    expectation = DistributionallyRobustUCB(
        model, 2.25, context_set, UncertaintyObjective(NoAmbiguity())
    )
    worst = DistributionallyRobustUCB(
        model, 2.25, context_set, UncertaintyObjective(FullSimplex())
    )
    torch.testing.assert_close(expectation(X[:, None]), table @ context_set.weights)
    torch.testing.assert_close(worst(X[:, None]), table.amin(-1))
    robust = worst.robust_value(X)
    assert torch.equal(robust.weights.argmax(-1), table.argmin(-1))


def test_one_context_is_botorchs_ucb(model):
    """A point mass leaves BoTorch's own UCB at the joint input."""
    c = torch.tensor([0.3], dtype=torch.double)
    acqf = DistributionallyRobustUCB(
        model, 2.25, ContextSet.fixed(c), UncertaintyObjective(NoAmbiguity())
    )
    joint = torch.cat([X, c.expand(3, 1)], dim=-1)
    expected = UpperConfidenceBound(model, beta=2.25)(joint[:, None])
    torch.testing.assert_close(acqf(X[:, None]), expected)


def test_beta_zero_is_botorchs_expected_mean(model, context_set):
    """BoTorch's AppendFeatures and ExpectationPosteriorTransform as the oracle."""
    Z, Y = model.train_inputs[0], model.train_targets
    appended = SingleTaskGP(
        Z,
        Y.unsqueeze(-1),
        covar_module=model.covar_module,
        mean_module=model.mean_module,
        likelihood=model.likelihood,
        outcome_transform=None,
        input_transform=AppendFeatures(context_set.points),
    ).eval()
    transform = ExpectationPosteriorTransform(
        n_w=4, weights=context_set.weights.unsqueeze(-1)
    )
    expected = appended.posterior(X[:, None], posterior_transform=transform).mean
    standardised = SingleTaskGP(
        Z,
        Y.unsqueeze(-1),
        covar_module=model.covar_module,
        mean_module=model.mean_module,
        likelihood=model.likelihood,
        outcome_transform=None,
    )
    acqf = DistributionallyRobustUCB(
        standardised, 0.0, context_set, UncertaintyObjective(NoAmbiguity())
    )
    torch.testing.assert_close(acqf(X[:, None]), expected.flatten())


def test_penalty_by_hand(model, context_set):
    acqf = LipschitzPenalizedUCB(model, 2.25, context_set, 0.2, UNIT)
    grid = torch.linspace(0, 1, 801, dtype=torch.double)
    for x, value in zip(X, acqf(X[:, None]), strict=True):
        table = torch.tensor([ucb(model, x, c) for c in context_set.points])
        fine = torch.tensor([ucb(model, x, c[None]) for c in grid])
        steepest = ((fine[1:] - fine[:-1]) * 800).abs().max()
        expected = table.double() @ context_set.weights - 0.2 * steepest
        assert abs(value - expected) <= 0.02 * 0.2 * steepest


def test_radius_zero_is_the_expectation(model, context_set):
    erbo = LipschitzPenalizedUCB(model, 2.25, context_set, 0.0, UNIT)
    expectation = DistributionallyRobustUCB(
        model, 2.25, context_set, UncertaintyObjective(NoAmbiguity())
    )
    torch.testing.assert_close(erbo(X[:, None]), expectation(X[:, None]))


def test_penalty_bounds_the_wasserstein_ball_from_below(model, context_set):
    """The point of the penalty: no distribution in the ball does worse."""
    grid = torch.linspace(0, 1, 101, dtype=torch.double)[:, None]
    for radius in (0.01, 0.05, 0.2):
        acqf = LipschitzPenalizedUCB(model, 2.25, context_set, radius, UNIT)
        candidates = torch.cat([context_set.points, grid])
        ball = Wasserstein(radius, torch.cdist(context_set.points, candidates))
        exact = ball.worst_case(acqf.scores(X, candidates), context_set.weights)
        assert (acqf(X[:, None]) <= exact.value + 1e-6).all()
        assert (exact.value <= acqf.scores(X) @ context_set.weights + 1e-12).all()


def test_certified_bound(model, context_set):
    acqf = LipschitzPenalizedUCB(model, 2.25, context_set, 0.2, UNIT)
    assert acqf.lipschitz_upper_bound() >= acqf.lipschitz_constant(X).max()
    Z = torch.rand(8, 3, dtype=torch.double)
    ensemble = EnsembleMapSaasSingleTaskGP(Z, Z[:, :1], num_taus=2).eval()
    acqf = LipschitzPenalizedUCB(ensemble, 2.25, context_set, 0.2, UNIT)
    with pytest.raises(UnsupportedError, match="SingleTaskGP"):
        acqf.lipschitz_upper_bound()


@pytest.mark.parametrize("radius", [-0.1, float("inf"), float("nan")])
def test_bad_radius(model, context_set, radius):
    with pytest.raises(InputDataError, match="radius"):
        LipschitzPenalizedUCB(model, 2.25, context_set, radius, UNIT)


def test_contexts_outside_their_bounds(model, context_set):
    with pytest.raises(InputDataError, match="context_bounds"):
        LipschitzPenalizedUCB(model, 2.25, context_set, 0.1, 0.5 * UNIT)


def test_objective_of_another_kind(model, context_set):
    with pytest.raises(InputDataError, match="UncertaintyObjective"):
        DistributionallyRobustUCB(model, 2.25, context_set, FullSimplex())  # pyright: ignore


def test_set_and_context_set_of_different_sizes(model, context_set):
    ball = Wasserstein(0.1, torch.zeros(3, 3))
    with pytest.raises(Exception, match="scores"):
        DistributionallyRobustUCB(model, 2.25, context_set, UncertaintyObjective(ball))(
            X[:, None]
        )


@pytest.mark.parametrize("method", ["exact", "generic"])
def test_a_variance_below_a_trillionth_of_the_prior_is_rounding(method):
    """It counts as that, and has no slope: sigma's would be infinite."""
    Z = torch.tensor([[0.1, 0.2], [0.4, 0.5], [0.9, 0.1]], dtype=torch.double)
    Y = 100.0 * torch.tensor([[0.3], [-0.2], [1.1]], dtype=torch.double)
    model = with_noise_ratio(SingleTaskGP(Z, Y), 1e-15)
    acqf = DistributionallyRobustUCB(
        model,
        4.0,
        ContextSet.fixed(Z[1, 1:]),
        UncertaintyObjective.so(),
        method=method,
    )
    x = Z[1, :1].reshape(1, 1, 1).requires_grad_()
    value = acqf(x)
    bonus = 2.0 * 1e-6 * Y.std().item()
    assert value.item() - Y[1].item() == pytest.approx(bonus, rel=0.05)
    (slope,) = torch.autograd.grad(value.sum(), x)

    def mean(x: float) -> float:
        at = torch.tensor([[x, Z[1, 1].item()]], dtype=torch.double)
        return model.posterior(at).mean.item()

    expected = (mean(0.4 + 1e-4) - mean(0.4 - 1e-4)) / 2e-4
    assert slope.item() == pytest.approx(expected, rel=1e-3)
