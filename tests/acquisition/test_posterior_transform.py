"""Minimisation by a posterior transform, on sample paths as on moments."""

from __future__ import annotations

import pytest
import torch
from botorch.acquisition import ExpectedImprovement, UpperConfidenceBound
from botorch.acquisition.objective import (
    ExpectationPosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import UnsupportedError
from botorch.models import SingleTaskGP

from benchmarks.experiments.improvement import PlainExpectedImprovement
from botorch_drbo import ContextSet
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    RobustThompsonSampling,
    best_robust_value,
    qDistributionallyRobustUCB,
)
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.sample_paths import PosteriorPaths
from tests.models import known_model, uniform

SO, RO = UncertaintyObjective.so(), UncertaintyObjective.ro()
MANY = {"num_paths": 4096, "num_features": 64, "seed": 0}


def transform(weight: float = -1.0, offset: float = 0.0):
    weights = torch.tensor([weight], dtype=torch.double)
    return ScalarizedPosteriorTransform(weights, offset)


def gp(sign: float = 1.0) -> SingleTaskGP:
    Z = uniform(12, 3, seed=1)
    Y = 2 + 3 * (5 * Z[:, :1]).sin() + Z[:, 1:2] * (6 * Z[:, 2:]).cos()
    return known_model(Z, sign * Y, lengthscale=0.4, noise=1e-2)


def contexts() -> ContextSet:
    return ContextSet(uniform(5, 1, seed=2), uniform(5, seed=3))


X = uniform(6, 1, 2, seed=4)


def test_a_path_is_multiplied_and_shifted():
    points, decisions = contexts().points, X.squeeze(1)
    plain = PosteriorPaths(gp(), [2], num_paths=3, seed=0)
    moved = PosteriorPaths(
        gp(), [2], num_paths=3, seed=0, posterior_transform=transform(-2.0, 0.3)
    )
    expected = 0.3 - 2 * plain(decisions, points)
    torch.testing.assert_close(moved(decisions, points), expected)


@pytest.mark.parametrize("objective", [SO, RO], ids=["expectation", "worst_case"])
def test_thompson_sampling_minimises(objective):
    """The worst context of a minimiser is the one of the highest outcome."""
    plain = RobustThompsonSampling(gp(), contexts(), objective, seed=0)
    f = plain.paths.own(X, contexts().points).squeeze(1)  # b x n
    weights = contexts().weights
    expected = -f.amax(-1) if objective is RO else -(f @ weights)
    acqf = RobustThompsonSampling(
        gp(), contexts(), objective, seed=0, posterior_transform=transform()
    )
    torch.testing.assert_close(acqf(X), expected)


def test_expected_improvement_is_that_of_the_minimiser():
    """With one context: BoTorch's closed form."""
    context = ContextSet.fixed(torch.tensor([0.4], dtype=torch.double))
    acqf = PlainExpectedImprovement(
        gp(), 0.5, context, SO, posterior_transform=transform(), **MANY
    )
    joint = torch.cat([X, context.points.expand(6, 1, 1)], dim=-1)
    closed = ExpectedImprovement(gp(), 0.5, posterior_transform=transform())
    torch.testing.assert_close(acqf(X), closed(joint), atol=0.05, rtol=0.05)


def test_batch_bound_is_that_of_the_minimiser():
    context = ContextSet.fixed(torch.tensor([0.4], dtype=torch.double))
    acqf = qDistributionallyRobustUCB(
        gp(), 2.25, context, SO, posterior_transform=transform(-0.5, 2.0), **MANY
    )
    joint = torch.cat([X, context.points.expand(6, 1, 1)], dim=-1)
    closed = UpperConfidenceBound(gp(), 2.25, posterior_transform=transform(-0.5, 2.0))
    torch.testing.assert_close(acqf(X), closed(joint), atol=0.05, rtol=0.05)


def test_batch_bound_has_the_sign_of_the_analytic_one():
    options = {"posterior_transform": transform()}
    acqf = qDistributionallyRobustUCB(gp(), 2.25, contexts(), SO, **options, **MANY)
    exact = DistributionallyRobustUCB(gp(), 2.25, contexts(), SO, **options)
    torch.testing.assert_close(acqf(X), exact(X), atol=0.1, rtol=0.05)


@pytest.mark.parametrize("kind", ["ucb", "ei"])
def test_minimising_is_maximising_the_mirror_image(kind):
    def make(model, **options):
        if kind == "ucb":
            return qDistributionallyRobustUCB(
                model, 2.25, contexts(), RO, **options, **MANY
            )
        return PlainExpectedImprovement(model, -2.0, contexts(), RO, **options, **MANY)

    batches = uniform(4, 2, 2, seed=5)
    minimised = make(gp(), posterior_transform=transform())(batches)
    torch.testing.assert_close(minimised, make(gp(-1.0))(batches), atol=0.1, rtol=0.05)
    assert (minimised - make(gp())(batches)).abs().min() > 0.2


def test_best_robust_value_of_a_minimiser():
    tried = uniform(12, 3, seed=1)[:, :2]
    found = best_robust_value(
        gp(), tried, contexts(), RO, posterior_transform=transform()
    )
    mirrored = best_robust_value(gp(-1.0), tried, contexts(), RO)
    torch.testing.assert_close(found, mirrored, rtol=1e-6, atol=1e-8)


REFUSED = {
    "of contexts": (ExpectationPosteriorTransform(n_w=2), "ExpectationPosterior"),
    "two weights": (
        ScalarizedPosteriorTransform(torch.ones(2, dtype=torch.double)),
        "2 weights for one output",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("kind", ["ucb", "ei", "thompson"])
def test_other_transforms_are_refused(kind, case):
    given, text = REFUSED[case]
    options = {"posterior_transform": given, "seed": 0}
    with pytest.raises(UnsupportedError, match=text):
        if kind == "thompson":
            RobustThompsonSampling(gp(), contexts(), RO, **options)
        elif kind == "ucb":
            qDistributionallyRobustUCB(gp(), 2.25, contexts(), RO, **options)
        else:
            PlainExpectedImprovement(gp(), 0.0, contexts(), RO, **options)
