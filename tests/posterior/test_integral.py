"""A weighted sum of outcomes over contexts: its mean and variance.

The judge is the dense joint posterior of BoTorch, ``w' Sigma(x) w``.
"""

from __future__ import annotations

from typing import cast

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.deterministic import PosteriorMeanModel
from botorch.models.model import Model
from botorch.models.transforms.input import Normalize
from botorch.models.transforms.outcome import Log
from botorch.posteriors import GPyTorchPosterior
from gpytorch.kernels import (
    LinearKernel,
    MaternKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)
from torch import Tensor

from botorch_drbo.posterior import marginal_posterior
from botorch_drbo.posterior.ensemble import ModelEnsemble
from botorch_drbo.posterior.exact import ExactPosterior, RowsIntegral
from botorch_drbo.posterior.factory import Method
from botorch_drbo.posterior.product import ProductPosterior
from botorch_drbo.posterior.wrapped import with_known_columns, with_perturbation
from botorch_drbo.problem.search_space import Categories
from botorch_drbo.surrogate.base import model_inputs
from tests.contracts.view_case import joined
from tests.models import make_inputs, make_model, uniform
from tests.posterior.cases import MINUS, PENDING, SETTINGS

# Of one kernel each that factorises, and one that does not.
PRODUCT = "units"


def weights_of(n: int) -> Tensor:
    """Not those of a distribution: neither positive nor of sum one."""
    return uniform(n, seed=8) - 0.3


def dense(model: Model, joint: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """From the covariance matrix of all contexts of a decision, ``b x n x d``."""
    distribution = cast(GPyTorchPosterior, model.posterior(joint)).distribution
    covariance = distribution.covariance_matrix
    mean = distribution.mean @ weights.to(joint)
    return mean, torch.einsum("...ij,i,j->...", covariance, *2 * (weights.to(joint),))


PLAIN = [
    (name, method)
    for name, setting in SETTINGS.items()
    if not setting.options and setting.oracle is None and name != "log outcomes"
    for method in setting.methods
]


class Door:
    """One model behind one method, with decisions and contexts to ask it about."""

    def __init__(self, name: str, method: str) -> None:
        self.case, self.method = SETTINGS[name], method
        self.model = self.case.make()
        self.X, self.C = make_inputs(columns=self.case.columns, units=self.case.units)


@pytest.mark.parametrize(("name", "method"), PLAIN)
def test_moments_are_those_of_the_joint_posterior(name: str, method: Method) -> None:
    door = Door(name, method)
    posterior = marginal_posterior(door.model, door.case.columns, method=method)
    weights = weights_of(len(door.C))
    found = posterior.integral(door.C, weights)(door.X)
    joint = joined(door.X, door.C, door.case.columns)
    joint = joint.to(next(door.model.parameters()))
    expected = dense(door.model, joint, weights)
    tolerance = 100 * door.case.tolerance  # a sum over the contexts
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        torch.testing.assert_close(
            a, b.detach().to(a), rtol=tolerance, atol=tolerance * b.abs().max().item()
        )


@pytest.mark.parametrize("method", ["generic", "exact", "product"])
def test_one_context_has_the_moments_of_the_view(method: Method) -> None:
    """With pending decisions, and with the sign of the outcome turned."""
    model = make_model(units=True)
    X, C = make_inputs(units=True)
    posterior = marginal_posterior(
        model, [2], method=method, pending=PENDING, posterior_transform=MINUS
    )
    mean, variance = posterior.over(C[:1]).at(X).moments()
    found = posterior.integral(C[:1], torch.ones(1).double())(X)
    torch.testing.assert_close(found[0], mean.squeeze(-1), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(found[1], variance.squeeze(-1), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("method", ["exact", "product"])
def test_pending_decisions_count_in_the_covariance_too(method: Method) -> None:
    model = make_model(units=True)
    X, C = make_inputs(units=True)
    w = weights_of(len(C))
    options = {"pending": PENDING, "posterior_transform": MINUS}
    quick = marginal_posterior(model, [2], method=method, **options)
    slow = marginal_posterior(model, [2], method="generic", **options)
    for a, b in zip(quick.integral(C, w)(X), slow.integral(C, w)(X), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-7)
    free = marginal_posterior(model, [2], method=method, posterior_transform=MINUS)
    assert (quick.integral(C, w)(X)[1] < free.integral(C, w)(X)[1]).all()


@pytest.mark.parametrize("method", ["generic", "exact", "product"])
def test_a_context_twice_is_a_context_of_twice_the_weight(method: Method) -> None:
    door = Door(PRODUCT, method)
    posterior = marginal_posterior(door.model, door.case.columns, method=method)
    C, w = door.C[:7], weights_of(7)
    once = posterior.integral(C, w)(door.X)
    halves = posterior.integral(torch.cat([C, C]), torch.cat([0.25 * w, 0.75 * w]))
    for a, b in zip(once, halves(door.X), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("method", ["generic", "exact", "product"])
def test_shapes_dtypes_and_blocks(method: Method) -> None:
    door = Door(PRODUCT, method)
    columns = door.case.columns
    w = weights_of(len(door.C))
    posterior = marginal_posterior(door.model, columns, method=method)
    small = marginal_posterior(door.model, columns, method=method, memory_budget=1)
    whole = posterior.integral(door.C, w)(door.X)
    X = door.X.expand(2, -1, -1).unsqueeze(1)  # 2 x 1 x b x d_x
    for a, b in zip(posterior.integral(door.C, w)(X), whole, strict=True):
        torch.testing.assert_close(a, b.expand(2, 1, -1))
    for a, b in zip(small.integral(door.C, w)(door.X), whole, strict=True):
        torch.testing.assert_close(a, b)
    assert posterior.integral(door.C, w)(door.X.float())[1].dtype == torch.float


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("units", "product"),
        ("smooth sum", "product"),
        ("warped", "product"),
        ("matern52", "exact"),
        ("rational quadratic", "exact"),
        ("linear", "exact"),
        ("linear mean", "exact"),
        ("units", "generic"),
        ("ensemble", "generic"),
    ],
)
def test_gradients_in_the_decision(name: str, method: Method) -> None:
    door = Door(name, method)
    door.model.requires_grad_(False)
    C, w = door.C[:6], weights_of(6)
    posterior = marginal_posterior(door.model, door.case.columns, method=method)
    integral = posterior.integral(C, w)
    X = door.X[:2].clone().requires_grad_()
    assert torch.autograd.gradcheck(integral, X, atol=1e-4, rtol=1e-3)


def test_the_prior_is_computed_once_where_no_decision_changes_it() -> None:
    """A perturbation too: ``x + c`` and ``x + c'`` differ by ``c - c'``."""
    X, C = make_inputs(columns=(2,))
    joint = make_model(ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=3)))
    executed = SingleTaskGP(
        uniform(8, 2, seed=3), uniform(8, 1, seed=4), input_transform=Normalize(2)
    )
    perturbed = with_perturbation(executed.eval())
    known = with_known_columns(joint, [2], torch.tensor([0.3]).double())
    nonlinear = make_model(LinearKernel())
    for model, columns, contexts, fixed in (
        (joint, [2], C, True),
        (make_model(ScaleKernel(RQKernel(ard_num_dims=3))), [2], C, True),
        (SETTINGS["warped"].make(), [2], C, True),
        (known, [2], C, True),
        (perturbed, [2, 3], 0.1 * uniform(9, 2, seed=5), True),
        (nonlinear, [2], C, False),
    ):
        w = weights_of(len(contexts))
        integral = marginal_posterior(model, columns).integral(contexts, w)
        assert isinstance(integral, RowsIntegral)
        assert (integral.prior is not None) == fixed
        expected = dense(model, joined(X, contexts, columns), w)
        for a, b in zip(integral(X), expected, strict=True):
            torch.testing.assert_close(a, b.detach(), rtol=1e-7, atol=1e-7)


def test_categories_keep_the_prior_fixed() -> None:
    categories: Categories = {0: 2, 2: 3}
    bounds = torch.tensor([[0.0, 0.0, 0.0], [1.0, 1.0, 2.0]], dtype=torch.double)
    Z = uniform(9, 3, seed=2)
    Z[:, 0], Z[:, 2] = Z[:, 0].round(), (2 * Z[:, 2]).round()
    transform = model_inputs(bounds, categories)
    kernel = RBFKernel(ard_num_dims=6).double()
    model = SingleTaskGP(
        Z, Z.sum(-1, True), covar_module=kernel, input_transform=transform
    ).eval()
    X, C = Z[:4, :2], torch.tensor([[0.0], [1.0], [2.0]], dtype=torch.double)
    w = weights_of(3)
    integral = marginal_posterior(model, [2]).integral(C, w)
    assert isinstance(integral, RowsIntegral) and integral.prior is not None
    for a, b in zip(integral(X), dense(model, joined(X, C, [2]), w), strict=True):
        torch.testing.assert_close(a, b.detach(), rtol=1e-7, atol=1e-7)


def test_the_product_needs_no_rows_of_the_contexts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For 400 contexts a decision costs what it costs for one."""
    model = make_model()
    X, C = make_inputs(n=400)
    posterior = marginal_posterior(model, [2])
    assert isinstance(posterior, ProductPosterior)
    w = weights_of(400)
    integral = posterior.integral(C, w)
    expected = dense(model, joined(X, C, [2]), w)

    def refused(*arguments: object) -> None:
        raise AssertionError("kernel rows of every context")

    monkeypatch.setattr(ExactPosterior, "rows", refused)
    monkeypatch.setattr(ExactPosterior, "covariance", refused)
    for a, b in zip(integral(X), expected, strict=True):
        torch.testing.assert_close(a, b.detach(), rtol=1e-8, atol=1e-8)


def test_a_certain_model_has_no_variance() -> None:
    model = make_model()
    X, C = make_inputs(n=5)
    w = weights_of(5)
    certain = marginal_posterior(PosteriorMeanModel(model), [2])
    mean, variance = certain.integral(C, w)(X)
    expected = dense(model, joined(X, C, [2]), w)[0]
    torch.testing.assert_close(mean, expected.detach())
    assert torch.equal(variance, torch.zeros(len(X), dtype=torch.double))


def test_what_is_refused() -> None:
    _, C = make_inputs(n=5, units=True)
    posterior = marginal_posterior(make_model(units=True), [2])
    with pytest.raises(BotorchTensorDimensionError, match="one weight for each of the"):
        posterior.integral(C, torch.ones(4).double())
    with pytest.raises(BotorchTensorDimensionError, match="`n x 1`"):
        posterior.integral(C[0], torch.ones(1).double())
    positive = marginal_posterior(make_model(units=True, outcome_transform=Log()), [2])
    with pytest.raises(UnsupportedError, match=r"jointly Gaussian.*`Standardize`"):
        positive.integral(C, torch.ones(5).double())


def test_an_ensemble_is_each_of_its_models() -> None:
    """Members of three kinds of kernel, each by its own method."""
    kernels = [
        RBFKernel(ard_num_dims=3),
        ScaleKernel(RQKernel(ard_num_dims=3)),
        ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=3)),
    ]
    members = [make_model(kernel) for kernel in kernels]
    X, C = make_inputs(n=60)
    w = weights_of(60)
    found = marginal_posterior(ModelEnsemble(members), [2]).integral(C, w)(X)
    for s, member in enumerate(members):
        expected = dense(member, joined(X, C, [2]), w)
        for a, b in zip(found, expected, strict=True):
            assert a.shape == (len(X), 3)
            torch.testing.assert_close(a[:, s], b.detach(), rtol=1e-7, atol=1e-7)
