"""Acquisition functions on the product view against the same ones on the exact view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import Normalize
from botorch.models.transforms.outcome import Standardize
from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from torch import Tensor

from botorch_drbo.acquisition import DistributionallyRobustUCB, LipschitzPenalizedUCB
from botorch_drbo.ambiguity import AmbiguitySet, NoAmbiguity, TotalVariation
from botorch_drbo.contexts import ContextSet
from botorch_drbo.lipschitz.sampled import LipschitzConstant
from botorch_drbo.objectives import UncertaintyObjective
from tests.models import UNIT, uniform


def product() -> Kernel:
    decision = RBFKernel(ard_num_dims=2, active_dims=(0, 1))
    return ScaleKernel(decision * RBFKernel(active_dims=(2,)))


KERNELS: dict[str, Callable[[], Kernel]] = {
    "rbf": lambda: RBFKernel(ard_num_dims=3),
    "scaled": lambda: ScaleKernel(RBFKernel(ard_num_dims=3)),
    "sum": lambda: product() + product(),
    "blind_to_decisions": lambda: product() + ScaleKernel(RBFKernel(active_dims=(2,))),
    "blind_to_contexts": lambda: (
        product() + ScaleKernel(RBFKernel(ard_num_dims=2, active_dims=(0, 1)))
    ),
}


def make_model(kernel: str = "rbf") -> SingleTaskGP:
    Z = uniform(60, 3)
    Y = (5 * Z[:, :1]).sin() + Z[:, 1:2] * (4 * Z[:, 2:]).cos()
    covariance = KERNELS[kernel]().double()
    for number, part in enumerate(covariance.modules()):
        if isinstance(part, RBFKernel):
            part.lengthscale = 0.4 + 0.05 * number
    return SingleTaskGP(
        Z,
        7 * Y,
        covar_module=covariance,
        input_transform=Normalize(3),
        outcome_transform=Standardize(1),
    )


def contexts() -> ContextSet:
    weights = (torch.arange(120) % 3 > 0).double()  # equal, or zero
    return ContextSet(uniform(120, 1, seed=1), weights)


def robust(ambiguity_set: AmbiguitySet, **extra: Tensor) -> Callable:
    def make(model: SingleTaskGP, **options: Any) -> AcquisitionFunction:
        objective = UncertaintyObjective(ambiguity_set)
        return DistributionallyRobustUCB(
            model, 2.25, contexts(), objective, **extra, **options
        )

    return make


def penalized(model: SingleTaskGP, **options: Any) -> AcquisitionFunction:
    return LipschitzPenalizedUCB(
        model, 2.25, contexts(), radius=0.3, context_bounds=UNIT, **options
    )


MAKERS: dict[str, Callable] = {
    "expectation": robust(NoAmbiguity()),
    "total_variation": robust(TotalVariation(0.4)),
    "outside": robust(TotalVariation(0.4), outside_contexts=uniform(40, 1, seed=3)),
    "wdrbo": penalized,
}


def value_and_gradient(acqf: AcquisitionFunction, X: Tensor) -> tuple[Tensor, Tensor]:
    leaf = X.clone().requires_grad_()
    value = acqf(leaf)
    return value.detach(), torch.autograd.grad(value.sum(), leaf)[0]


def check_same(
    acqf: AcquisitionFunction, exact: AcquisitionFunction, X: Tensor
) -> None:
    found, expected = value_and_gradient(acqf, X), value_and_gradient(exact, X)
    with torch.no_grad():
        found, expected = (*found, acqf(X)), (*expected, expected[0])
    for a, b in zip(found, expected, strict=True):
        size = float(b.abs().max())
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-7 * size)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", MAKERS)
def test_same_as_on_the_exact_view(name: str, kernel: str) -> None:
    model = make_model(kernel)
    acqf, exact = MAKERS[name](model), MAKERS[name](model, method="exact")
    check_same(acqf, exact, uniform(6, 1, 2, seed=4))
    assert (acqf.view.method, exact.view.method) == ("product", "exact")


@pytest.mark.parametrize("name", MAKERS)
def test_more_decisions_than_are_taken_at_a_time(name: str) -> None:
    model = make_model()
    acqf, exact = MAKERS[name](model), MAKERS[name](model, method="exact")
    X = uniform(1500, 1, 2, seed=4)
    with torch.no_grad():
        torch.testing.assert_close(acqf(X), exact(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("batch", [(2, 3), (1, 3), (2, 1, 2), (0,), (1,)])
def test_any_batch_of_decisions(name: str, batch: tuple[int, ...]) -> None:
    model = make_model()
    acqf = MAKERS[name](model)
    X = uniform(*batch, 1, 2, seed=4)
    values, gradients = value_and_gradient(acqf, X)
    assert values.shape == batch
    if X.numel():
        one_by_one, slopes = value_and_gradient(
            MAKERS[name](model, method="exact"), X.reshape(-1, 1, 2)
        )
        torch.testing.assert_close(values.flatten(), one_by_one, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(gradients.reshape(slopes.shape), slopes)


@pytest.mark.parametrize("name", ["expectation", "wdrbo"])
def test_second_derivatives(name: str) -> None:
    """Those of ``L`` at a fixed context: here the best of fixed ones."""
    options = {}
    if name == "wdrbo":
        options["lipschitz"] = LipschitzConstant(UNIT, num_ascent_steps=0)
    acqf = MAKERS[name](make_model(), **options)
    X = uniform(2, 1, 2, seed=4).requires_grad_()
    assert torch.autograd.gradcheck(acqf, X)
    assert torch.autograd.gradgradcheck(acqf, X, rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("name", MAKERS)
def test_decisions_that_depend_on_something(name: str) -> None:
    model = make_model()
    X, gradients = uniform(5, 1, 2, seed=4), []
    for method in ("auto", "exact"):
        theta = uniform(2, seed=5).requires_grad_()
        value = MAKERS[name](model, method=method)((X * theta).sin()).sum()
        gradients.append(torch.autograd.grad(value, theta)[0])
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("name", MAKERS)
def test_beta_changed_behind_autograds_back(name: str) -> None:
    model, X = make_model(), uniform(3, 1, 2, seed=4)
    acqf, exact = MAKERS[name](model), MAKERS[name](model, method="exact")
    acqf(X)
    for changed in (acqf, exact):
        changed.beta.data.fill_(9.0)
    check_same(acqf, exact, X)


@pytest.mark.parametrize("name", MAKERS)
def test_gradient_in_beta(name: str) -> None:
    model, X = make_model(), uniform(3, 1, 2, seed=4)
    gradients = []
    for method in ("auto", "exact"):
        acqf = MAKERS[name](model, method=method)
        acqf(X)
        acqf.beta.requires_grad_()
        gradients.append(torch.autograd.grad(acqf(X).sum(), acqf.beta)[0])
    torch.testing.assert_close(*gradients)


def test_gradient_in_the_radius() -> None:
    acqf = penalized(make_model())
    acqf.radius.requires_grad_()
    X = uniform(3, 1, 2, seed=4)
    (slope,) = torch.autograd.grad(acqf(X).sum(), acqf.radius)
    torch.testing.assert_close(slope, -acqf.lipschitz_constant(X[:, 0]).sum())


def test_a_single_decision_without_batch() -> None:
    model, x = make_model(), uniform(2, seed=4)
    acqf, exact = penalized(model), penalized(model, method="exact")
    for name in ("lipschitz_constant", "scores"):
        found, expected = (getattr(a, name)(x) for a in (acqf, exact))
        torch.testing.assert_close(found, expected)


def test_slopes_count_in_widths_of_the_box() -> None:
    """The derivative of the value in the radius is minus L, here in a wider box."""
    box = torch.tensor([[-0.1], [1.2]], dtype=torch.double)
    X = uniform(6, 1, 2, seed=9)
    found = []
    for method in ("auto", "exact"):
        acqf = LipschitzPenalizedUCB(
            make_model(), 2.25, contexts(), 0.3, context_bounds=box, method=method
        )
        found.append(value_and_gradient(acqf, X))
    torch.testing.assert_close(*found, rtol=1e-6, atol=1e-6)
