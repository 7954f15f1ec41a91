"""Acquisition functions over f(x + c): brute force with the model of x alone."""

from __future__ import annotations

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import ChainedInputTransform, InputPerturbation
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    LipschitzPenalizedUCB,
    RobustFeasibility,
    RobustThompsonSampling,
    qLogDistributionallyRobustNoisyExpectedImprovement,
)
from botorch_drbo.ambiguity import FullSimplex, TotalVariation
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.posterior.wrapped import with_perturbation
from tests.models import known_model, uniform

BETA = 2.25
ERRORS = 0.2 * (uniform(9, 2, seed=4) - 0.5)
CONTEXTS = ContextSet(ERRORS, uniform(9, seed=5) + 0.1)
BOX = torch.tensor([[-0.1, -0.1], [0.1, 0.1]], dtype=torch.double)
X = uniform(5, 1, 2, seed=6)


def model_of_decisions() -> SingleTaskGP:
    Z = uniform(14, 2, seed=3)
    return known_model(Z, (6 * Z[:, :1]).sin() * Z[:, 1:], noise=1e-2)


def bounds_at(model: SingleTaskGP, X: Tensor, errors: Tensor) -> Tensor:
    """The confidence bound of the model of x at every x + c, ``b x n``."""
    posterior = model.posterior((X + errors).unsqueeze(-2))  # b x n x 1 x 2
    return (posterior.mean + BETA**0.5 * posterior.variance.sqrt())[..., 0, 0]


def robust(objective: UncertaintyObjective) -> DistributionallyRobustUCB:
    return DistributionallyRobustUCB(
        with_perturbation(model_of_decisions()), BETA, CONTEXTS, objective
    )


def test_the_worst_error_of_execution() -> None:
    found = robust(UncertaintyObjective(FullSimplex()))(X)
    model = model_of_decisions()
    assert torch.allclose(found, bounds_at(model, X, ERRORS).amin(-1), atol=1e-8)
    # The same as BoTorch's own way to the worst case.
    model.input_transform = ChainedInputTransform(
        perturb=InputPerturbation(ERRORS), own=model.input_transform
    )
    posterior = model.eval().posterior(X)  # b x n x 1
    theirs = (posterior.mean + BETA**0.5 * posterior.variance.sqrt()).squeeze(-1)
    assert torch.allclose(found, theirs.amin(-1), atol=1e-8)


def test_the_worst_law_of_the_errors() -> None:
    """By filling up the lowest score with a quarter of the mass, one by one."""
    found = robust(UncertaintyObjective(TotalVariation(0.5)))(X)
    scores = bounds_at(model_of_decisions(), X, ERRORS).detach()
    for row, value in zip(scores, found, strict=True):
        weights, left = CONTEXTS.weights.clone(), 0.25
        for i in row.argsort(descending=True).tolist():
            moved = min(left, weights[i].item())
            weights[i], left = weights[i] - moved, left - moved
        weights[row.argmin()] += 0.25
        assert value.item() == pytest.approx((weights @ row).item(), abs=1e-8)


def test_the_penalty_is_the_steepest_slope_in_the_decision() -> None:
    acqf = LipschitzPenalizedUCB(
        with_perturbation(model_of_decisions()), BETA, CONTEXTS, 0.3, BOX
    )
    model = model_of_decisions()
    mean = (bounds_at(model, X, ERRORS) * CONTEXTS.weights).sum(-1)
    side = torch.linspace(-0.1, 0.1, 41).double()
    points = X + torch.cartesian_prod(side, side)  # b x 1681 x 2
    points = points.detach().requires_grad_()
    posterior = model.posterior(points.unsqueeze(-2))
    bound = posterior.mean + BETA**0.5 * posterior.variance.sqrt()
    (slope,) = torch.autograd.grad(bound.sum(), points)
    # The radius is in units of the box scaled to one: so are the slopes.
    steepest = (0.2 * slope).norm(dim=-1).amax(-1)
    assert torch.allclose(acqf(X), mean - 0.3 * steepest, atol=2e-3)


def thompson() -> AcquisitionFunction:
    return RobustThompsonSampling(
        with_perturbation(model_of_decisions()),
        CONTEXTS,
        UncertaintyObjective(TotalVariation(0.5)),
        num_features=64,
        seed=0,
    )


def improvement() -> AcquisitionFunction:
    return qLogDistributionallyRobustNoisyExpectedImprovement(
        with_perturbation(model_of_decisions()),
        uniform(4, 2, seed=9),
        CONTEXTS,
        UncertaintyObjective(TotalVariation(0.5)),
        num_paths=32,
        num_features=32,
        seed=0,
    )


def feasibility() -> AcquisitionFunction:
    return RobustFeasibility(
        with_perturbation(model_of_decisions()), CONTEXTS, TotalVariation(0.5)
    )


def penalised() -> AcquisitionFunction:
    return LipschitzPenalizedUCB(
        with_perturbation(model_of_decisions()), BETA, CONTEXTS, 0.3, BOX
    )


@pytest.mark.parametrize("make", [thompson, improvement, feasibility, penalised])
def test_gradients_against_finite_differences(make) -> None:
    acqf = make()
    x = X.clone().requires_grad_()
    (slope,) = torch.autograd.grad(acqf(x).sum(), x)
    for column in range(2):
        step = torch.zeros(2, dtype=torch.double)
        step[column] = 1e-6
        with torch.no_grad():
            rise = (acqf(X + step) - acqf(X - step)) / 2e-6
        assert torch.allclose(slope[:, 0, column], rise, rtol=1e-3, atol=1e-4)
