"""Where BoTorch's risk measures and ours mean the same, both give the same number.

BoTorch: a model with `AppendFeatures`, and an objective over its draws. Ours: the same
Gaussian process over `[x, c]`, a context set, and an ambiguity set.
"""

from __future__ import annotations

from math import ceil

import pytest
import torch
from botorch.acquisition import (
    ExpectedImprovement,
    PosteriorMean,
    UpperConfidenceBound,
    qExpectedImprovement,
    qNoisyExpectedImprovement,
)
from botorch.acquisition.objective import ExpectationPosteriorTransform
from botorch.acquisition.risk_measures import CVaR, Expectation, WorstCase
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import AppendFeatures
from botorch.sampling import SobolQMCNormalSampler
from torch import Tensor

from benchmarks.experiments.improvement import PlainExpectedImprovement
from botorch_drbo import ContextSet
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    qLogDistributionallyRobustNoisyExpectedImprovement,
)
from botorch_drbo.ambiguity import (
    ConditionalValueAtRisk,
    FullSimplex,
    NoAmbiguity,
)
from botorch_drbo.objectives import UncertaintyObjective
from tests.models import known_model, uniform

N = 7
CONTEXTS = uniform(N, 1, seed=2)
WEIGHTS = uniform(N, seed=3) / uniform(N, seed=3).sum()
Z = uniform(12, 3, seed=1)
Y = (5 * Z[:, :1]).sin() + 2 * Z[:, 1:2] * (4 * Z[:, 2:]).cos()
X = uniform(5, 2, 2, seed=4)  # batches of two decisions
BEST = 0.2
MANY = {"num_paths": 4096, "num_features": 128, "seed": 0}
LEVELS = (0.1, 0.5, 4 / N, 0.6, 0.9)


def joint_gp() -> SingleTaskGP:
    return known_model(Z, Y, noise=1e-2, lengthscale=0.4, normalise=False)


def appended_gp() -> SingleTaskGP:
    return known_model(
        Z,
        Y,
        noise=1e-2,
        lengthscale=0.4,
        normalise=False,
        input_transform=AppendFeatures(CONTEXTS),
    )


def same_level(alpha: float) -> float:
    """BoTorch averages the lowest n - ceil(n alpha) + 1 draws, each in full."""
    return (ceil(N * alpha) - 1) / N


MEASURES = {
    "expectation": (Expectation(n_w=N), NoAmbiguity()),
    "worst case": (WorstCase(n_w=N), FullSimplex()),
} | {
    f"cvar {alpha:.2f}": (
        CVaR(alpha, n_w=N),
        ConditionalValueAtRisk(same_level(alpha)),
    )
    for alpha in LEVELS
}


@pytest.mark.parametrize("name", MEASURES)
def test_the_same_of_given_outcomes(name):
    measure, ambiguity = MEASURES[name]
    values = torch.randn(
        40, 3, N, generator=torch.Generator().manual_seed(0), dtype=torch.double
    )
    theirs = measure(values.reshape(40, 3 * N, 1))  # n_w rows for each decision
    ours = UncertaintyObjective(ambiguity)(values, torch.full((N,), 1 / N).double())
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("name", ["expectation", "worst case", "cvar 0.50"])
def test_the_same_expected_improvement_of_a_batch(name):
    """On average over draws: both take the measure of each draw."""
    measure, ambiguity = MEASURES[name]
    theirs = qExpectedImprovement(
        appended_gp(),
        BEST,
        sampler=SobolQMCNormalSampler(torch.Size([2048]), seed=0),
        objective=measure,
    )
    ours = PlainExpectedImprovement(
        joint_gp(),
        BEST,
        ContextSet.empirical(CONTEXTS),
        UncertaintyObjective(ambiguity),
        **MANY,
    )
    torch.testing.assert_close(ours(X), theirs(X), atol=0.02, rtol=0.03)


def test_the_same_noisy_expected_improvement():
    tried = Z[:5, :2]
    theirs = qNoisyExpectedImprovement(
        appended_gp(),
        tried,
        sampler=SobolQMCNormalSampler(torch.Size([2048]), seed=0),
        objective=WorstCase(n_w=N),
        prune_baseline=False,
        cache_root=False,
    )
    ours = qLogDistributionallyRobustNoisyExpectedImprovement(
        joint_gp(),
        tried,
        ContextSet.empirical(CONTEXTS),
        UncertaintyObjective.ro(),
        **MANY,
    )
    torch.testing.assert_close(ours(X).exp(), theirs(X), atol=0.02, rtol=0.05)


def weighted() -> ExpectationPosteriorTransform:
    return ExpectationPosteriorTransform(n_w=N, weights=WEIGHTS.unsqueeze(-1))


def one(X: Tensor) -> Tensor:
    return X[:, :1]


def test_the_same_posterior_mean_of_the_expectation():
    theirs = PosteriorMean(appended_gp(), posterior_transform=weighted())
    ours = DistributionallyRobustUCB(
        joint_gp(), 0.0, ContextSet(CONTEXTS, WEIGHTS), UncertaintyObjective.so()
    )
    torch.testing.assert_close(ours(one(X)), theirs(one(X)), atol=1e-6, rtol=1e-6)


def test_the_same_expected_improvement_of_the_expectation():
    """BoTorch in closed form."""
    theirs = ExpectedImprovement(appended_gp(), BEST, posterior_transform=weighted())
    ours = PlainExpectedImprovement(
        joint_gp(),
        BEST,
        ContextSet(CONTEXTS, WEIGHTS),
        UncertaintyObjective.so(),
        **MANY,
    )
    torch.testing.assert_close(ours(one(X)), theirs(one(X)), atol=0.02, rtol=0.03)


def test_a_bound_for_each_context_is_at_least_the_bound_of_the_expectation():
    """The deviation of a mean is at most the mean of the deviations."""
    theirs = UpperConfidenceBound(appended_gp(), 4.0, posterior_transform=weighted())
    ours = DistributionallyRobustUCB(
        joint_gp(), 4.0, ContextSet(CONTEXTS, WEIGHTS), UncertaintyObjective.so()
    )
    assert bool((ours(one(X)) > theirs(one(X))).all())
