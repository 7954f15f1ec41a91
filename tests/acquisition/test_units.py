"""Values of outcomes in another unit are the values in that unit, gradients too."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.models.transforms import Standardize
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    EnlargedConfidenceUCB,
    FiniteDifferenceUCB,
    LipschitzPenalizedUCB,
    RobustThompsonSampling,
)
from botorch_drbo.ambiguity import MaximumMeanDiscrepancy, TotalVariation, Wasserstein
from botorch_drbo.objectives import UncertaintyObjective
from tests.models import ensemble, known_model, uniform

UNITS = [1e-9, 1e9, 1e-100, 1e100]
C_BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)

Make = Callable[..., AcquisitionFunction]


def model(unit: float) -> SingleTaskGP:
    Z = uniform(40, 4, seed=1)
    Y = (5 * Z[:, :1]).sin() + Z[:, 1:2] * (6 * Z[:, 2:3]).cos() + Z[:, 3:]
    transform = Standardize(m=1, min_stdv=0.0)
    options = {"noise": 1e-3, "normalise": False, "outcome_transform": transform}
    return known_model(Z, unit * Y, **options)


CONTEXTS = ContextSet(uniform(60, 2, seed=2))  # enough for the product path
COST = torch.cdist(CONTEXTS.points, CONTEXTS.points)
KERNEL = (-0.5 * COST.square() / 0.1).exp()


def robust(objective: UncertaintyObjective, **more: Tensor) -> Make:
    def make(model: Model, unit: float, **options: object) -> AcquisitionFunction:
        return DistributionallyRobustUCB(
            model, 2.25, CONTEXTS, objective, **more, **options
        )

    return make


def penalised(model: Model, unit: float, **options: object) -> AcquisitionFunction:
    return LipschitzPenalizedUCB(model, 2.25, CONTEXTS, 0.2, C_BOUNDS, **options)


def enlarged(model: Model, unit: float, **options: object) -> AcquisitionFunction:
    tv = UncertaintyObjective(TotalVariation(0.3))
    wrong = 0.02 * unit
    return EnlargedConfidenceUCB(model, 2.25, wrong, CONTEXTS, tv, **options)


def difference(model: Model, unit: float, **options: object) -> AcquisitionFunction:
    gen = UncertaintyObjective.gen(TotalVariation(0.3))
    return FiniteDifferenceUCB(model, 2.25, CONTEXTS, gen, **options)


MEMBERS: dict[str, Make] = {
    "expectation": robust(UncertaintyObjective.so()),
    "tv_outside": robust(
        UncertaintyObjective(TotalVariation(0.3)),
        outside_contexts=uniform(50, 2, seed=5),
    ),
    "mmd": robust(UncertaintyObjective(MaximumMeanDiscrepancy(0.2, KERNEL))),
    "wasserstein": robust(UncertaintyObjective(Wasserstein(0.1, COST))),
    "penalised": penalised,
    "enlarged": enlarged,
    "difference": difference,
}


def value_and_gradient(acqf: AcquisitionFunction) -> tuple[Tensor, Tensor]:
    X = torch.cat([uniform(3, 2, seed=4), uniform(1, 4, seed=1)[:, :2]]).unsqueeze(-2)
    X.requires_grad_()
    value = acqf(X)
    (gradient,) = torch.autograd.grad(value.sum(), X)
    return value.detach(), gradient


def check(make: Callable[[float], AcquisitionFunction], units: list[float]) -> None:
    value, gradient = value_and_gradient(make(1.0))
    assert gradient.abs().min() > 1e-3
    for unit in units:
        same, slope = value_and_gradient(make(unit))
        torch.testing.assert_close(same / unit, value, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(slope / unit, gradient, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("path", ["product", "exact", "generic"])
@pytest.mark.parametrize("name", MEMBERS)
def test_every_unit_of_the_outcome(name: str, path: str) -> None:
    check(lambda unit: MEMBERS[name](model(unit), unit, method=path), UNITS)


@pytest.mark.parametrize("path", ["exact", "generic"])
def test_with_pending_decisions(path: str) -> None:
    pending = uniform(2, 2, seed=6)
    make = MEMBERS["expectation"]
    check(lambda u: make(model(u), u, method=path, X_pending=pending), UNITS)


def test_thompson_sampling() -> None:
    objective = UncertaintyObjective(TotalVariation(0.3))
    check(
        lambda u: RobustThompsonSampling(model(u), CONTEXTS, objective, seed=3), UNITS
    )


def test_an_ensemble() -> None:
    Z = uniform(12, 4, seed=1)

    def make(unit: float) -> Model:
        return ensemble(Z, unit * Z.sum(-1, keepdim=True).sin(), members=2)

    check(lambda u: MEMBERS["expectation"](make(u), u), [1e-6, 1e6])
