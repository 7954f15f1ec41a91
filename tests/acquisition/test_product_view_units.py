"""Acquisition functions in their own units: product view against exact view."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import Warp
from gpytorch.kernels import RBFKernel
from torch import Tensor

from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    LipschitzPenalizedUCB,
)
from botorch_drbo.ambiguity import (
    AmbiguitySet,
    ConditionalValueAtRisk,
    FullSimplex,
    NoAmbiguity,
    TotalVariation,
)
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import UncertaintyObjective
from tests.models import known_model, uniform

BOX = torch.tensor([[-10.0], [30.0]], dtype=torch.double)


def make_model() -> SingleTaskGP:
    Z = uniform(60, 3)
    Y = (5 * Z[:, :1]).sin() + Z[:, 1:2] * (4 * Z[:, 2:]).cos()
    Z[:, 2] = 40 * Z[:, 2] - 10
    return known_model(Z, 7 * Y, lengthscale=0.4)


def contexts(n: int = 120) -> ContextSet:
    return ContextSet(40 * uniform(n, 1, seed=1) - 10, 0.5 + uniform(n, seed=2))


def robust(ambiguity_set: AmbiguitySet, **extra: Tensor) -> Callable:
    def make(**options) -> AcquisitionFunction:
        return DistributionallyRobustUCB(
            make_model(),
            beta=2.25,
            context_set=contexts(),
            objective=UncertaintyObjective(ambiguity_set),
            **extra,
            **options,
        )

    return make


def penalized(radius: float, misspecification: float = 0.0) -> Callable:
    def make(**options) -> AcquisitionFunction:
        return LipschitzPenalizedUCB(
            make_model(),
            beta=2.25,
            context_set=contexts(),
            radius=radius,
            context_bounds=BOX,
            misspecification=misspecification,
            **options,
        )

    return make


MAKERS = {
    "expectation": robust(NoAmbiguity()),
    "worst_case": robust(FullSimplex()),
    "total_variation": robust(TotalVariation(0.4)),
    "cvar": robust(ConditionalValueAtRisk(0.7)),
    "outside": robust(
        TotalVariation(0.4), outside_contexts=40 * uniform(90, 1, seed=3) - 10
    ),
    "wdrbo": penalized(0.3),
    "erbo": penalized(0.0),
    "enlarged": penalized(0.3, misspecification=0.5),
}


def value_and_gradient(acqf: AcquisitionFunction, X: Tensor) -> tuple[Tensor, Tensor]:
    leaf = X.clone().requires_grad_()
    value = acqf(leaf)
    return value, torch.autograd.grad(value.sum(), leaf)[0]


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("minimise", [False, True])
@pytest.mark.parametrize("name", MAKERS)
def test_same_as_on_the_exact_view(name: str, minimise: bool, pending: bool) -> None:
    options = {
        "posterior_transform": ScalarizedPosteriorTransform(
            torch.tensor([-1.0], dtype=torch.double)
        )
        if minimise
        else None,
        "X_pending": torch.tensor([[0.3, 0.6]]).double() if pending else None,
    }
    product = MAKERS[name](**options)
    exact = MAKERS[name](method="exact", **options)
    assert (product.view.method, exact.view.method) == ("product", "exact")
    X = uniform(6, 1, 2, seed=4)
    values = [value_and_gradient(acqf, X) for acqf in (product, exact)]
    for a, b in zip(*values, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)
    with torch.no_grad():
        torch.testing.assert_close(product(X), values[0][0])


@pytest.mark.parametrize("name", MAKERS)
def test_float32_decisions_are_evaluated_in_the_dtype_of_the_model(name: str) -> None:
    acqf, X = MAKERS[name](), uniform(4, 1, 2, seed=9).float()
    value = acqf(X)
    assert value.dtype == torch.float
    assert torch.equal(value, acqf(X.double()).float())


def test_wdrbo_gradient() -> None:
    acqf = MAKERS["wdrbo"]()
    assert acqf.view.method == "product"
    X = uniform(3, 1, 2, seed=5).requires_grad_()
    assert torch.autograd.gradcheck(acqf, (X,), eps=1e-5, atol=1e-4)


def test_new_hyperparameters_are_noticed() -> None:
    product, exact = MAKERS["wdrbo"](), MAKERS["wdrbo"](method="exact")
    X = uniform(3, 1, 2, seed=7)
    product(X)
    for acqf in (product, exact):
        acqf.model.covar_module.lengthscale = 0.8
    torch.testing.assert_close(product(X), exact(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("warped", [[2], [0], [0, 2]])
@pytest.mark.parametrize("name", ["expectation", "worst_case", "wdrbo"])
def test_a_kernel_that_ignores_the_decision_has_slope_zero(name, warped) -> None:
    """Also where the input transform is none that can be read off."""
    Z = uniform(30, 3)
    model = SingleTaskGP(
        Z,
        (5 * Z[:, 2:]).sin(),
        covar_module=RBFKernel(active_dims=[2]),
        input_transform=Warp(d=3, indices=warped),
    ).double()
    context_set, bounds = ContextSet.empirical(uniform(120, 1)), BOX.clamp(0.0, 1.0)

    def make(path):
        if name == "wdrbo":
            return LipschitzPenalizedUCB(
                model, 2.0, context_set, 0.1, bounds, method=path
            )
        ambiguity = NoAmbiguity() if name == "expectation" else FullSimplex()
        objective = UncertaintyObjective(ambiguity)
        return DistributionallyRobustUCB(
            model, 2.0, context_set, objective, method=path
        )

    X = uniform(3, 1, 2, seed=7).requires_grad_()
    value = make("product")(X)
    torch.testing.assert_close(value, make("exact")(X), rtol=1e-5, atol=1e-6)
    (slope,) = torch.autograd.grad(value.sum(), X)
    assert (slope == 0.0).all()
