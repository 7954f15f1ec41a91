"""The exact posterior where numbers are hard: at the data, far from zero, at scale."""

from __future__ import annotations

import gpytorch
import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import (
    ChainedInputTransform,
    InputStandardize,
    Normalize,
)
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from torch import Tensor

from botorch_drbo.posterior import marginal_posterior
from botorch_drbo.posterior.exact import ExactPosterior
from botorch_drbo.posterior.stationary_moments import ExplainedVariance
from tests.contracts.view_case import joined, model_moments
from tests.models import make_inputs, make_model


@pytest.mark.parametrize(
    "kernel", [RBFKernel(), MaternKernel(nu=1.5), MaternKernel(nu=2.5)]
)
def test_second_derivative_at_a_training_input(kernel: Kernel) -> None:
    """At r = 0 GPyTorch's own Matern loses the second derivative; ours does not."""
    model = make_model(kernel, t=8)
    z = model.train_inputs[0][:1]
    here = marginal_posterior(model, [2], method="exact").over(z[:, 2:])

    def slope(x: Tensor) -> Tensor:
        x = x.requires_grad_()
        (gradient,) = torch.autograd.grad(
            here.at(x).moments()[0].sum(), x, create_graph=True
        )
        return gradient

    at = z[:, :2].clone().requires_grad_()
    curvature = torch.autograd.functional.jacobian(slope, at).squeeze()
    h = 1e-4 * torch.eye(2).double()
    finite = torch.cat(
        [(slope(z[:, :2] + e) - slope(z[:, :2] - e)) / 2e-4 for e in h]
    ).detach()
    torch.testing.assert_close(curvature, finite, rtol=1e-3, atol=1e-3)


def test_large_training_set_is_exact() -> None:
    """Beyond 800 points GPyTorch iterates; ours is the Cholesky answer."""
    model, (X, C) = make_model(t=850), make_inputs(n=6)
    view = marginal_posterior(model, [2]).over(C)
    assert view.method == "exact"
    mean, variance = view.at(X).moments()
    with gpytorch.settings.max_cholesky_size(2000):
        model.train().eval()
        expected_mean, expected_variance = model_moments(model, joined(X, C, [2]))
    torch.testing.assert_close(mean, expected_mean, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(variance, expected_variance, rtol=1e-6, atol=1e-8)


def far_from_zero(kernel: Kernel, transform) -> tuple[SingleTaskGP, Tensor]:
    generator = torch.Generator().manual_seed(1)
    Z = torch.rand(14, 3, generator=generator, dtype=torch.double)
    Z = Z * torch.tensor([2.0, 30.0, 0.5]).double() + 1e4
    Y = (Z - 1e4).sin().sum(-1, keepdim=True)
    model = SingleTaskGP(Z, Y, covar_module=kernel, input_transform=transform)
    model.likelihood.noise = 1e-2
    return model.eval(), Z


@pytest.mark.parametrize("columns", [[2], [0, 1], [2, 0]])
@pytest.mark.parametrize(
    ("kernel", "transform"),
    [
        (ScaleKernel(RBFKernel(ard_num_dims=3)), Normalize(3)),
        (
            ScaleKernel(MaternKernel(nu=1.5)),
            ChainedInputTransform(a=InputStandardize(3), b=Normalize(3)),
        ),
    ],
)
def test_slopes_far_from_zero(kernel: Kernel, transform, columns: list[int]) -> None:
    model, Z = far_from_zero(kernel, transform)
    others = [i for i in range(3) if i not in columns]
    X, contexts = Z[:4, others] + 0.03, Z[4:9, columns] + 0.02
    view = marginal_posterior(model, columns, method="exact").over(contexts)
    at = view.at(X).slopes()
    joint = joined(X, contexts, columns).requires_grad_()
    mean, variance = model_moments(model, joint)
    for moment, value, slope in (
        (mean, at.mean, at.mean_slope),
        (variance, at.variance, at.variance_slope),
    ):
        (expected,) = torch.autograd.grad(moment.sum(), joint, retain_graph=True)
        torch.testing.assert_close(value, moment, rtol=1e-6, atol=1e-9)
        torch.testing.assert_close(slope, expected[..., columns], rtol=1e-5, atol=1e-7)


def test_where_the_variance_is_cut_off_it_has_no_slope() -> None:
    """As if rounding had explained a little more than all there is."""
    model, (X, C) = make_model(), make_inputs()
    posterior = marginal_posterior(model, [2], method="exact")
    assert isinstance(posterior, ExactPosterior) and posterior.system is not None
    more = ExplainedVariance.of(1.05 * posterior.inverse_root, 1.0)
    posterior.system = posterior.system._replace(explained=more)
    here = posterior.over(C).at(X)
    at, variance = here.slopes(), here.moments()[1]
    torch.testing.assert_close(at.variance, variance, rtol=0, atol=1e-12)
    assert (variance >= 0.0).all()
    cut = at.variance == 0.0
    assert 0 < cut.sum() < cut.numel()
    assert (at.variance_slope[cut] == 0.0).all()
    assert (at.variance_slope[~cut] != 0.0).all()
