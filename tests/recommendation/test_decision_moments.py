"""The mean at one decision, without variances, against the model's posterior."""

from __future__ import annotations

import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel

from botorch_drbo.posterior.ensemble import ModelEnsemble
from botorch_drbo.posterior.stationary_moments import ExplainedVariance
from botorch_drbo.recommendation.worst_case import mean_at, moments_at


def gp(seed: int) -> SingleTaskGP:
    generator = torch.Generator().manual_seed(seed)
    Z = 3.0 * torch.rand(20, 3, generator=generator).double()
    Y = 5.0 + Z.sin().sum(-1, keepdim=True)
    return SingleTaskGP(
        Z, Y, input_transform=Normalize(3), outcome_transform=Standardize(1)
    ).eval()


@pytest.mark.parametrize("kind", ["one", "ensemble"])
def test_means_and_their_slopes_are_those_of_the_posterior(kind, monkeypatch):
    members = [gp(0), gp(1)][: 1 if kind == "one" else 2]
    model = members[0] if kind == "one" else ModelEnsemble(members)
    monkeypatch.setattr("botorch_drbo.posterior.view.MEANS_ALONE_FROM", 0)
    x = torch.tensor([0.3, 1.2]).double()
    contexts = torch.rand(6, 1).double().requires_grad_()
    found = mean_at(model, x)(contexts)
    Z = torch.cat([x.expand(6, -1), contexts], -1)
    expected = sum(m.posterior(Z).mean.squeeze(-1) for m in members) / len(members)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    slopes = [torch.autograd.grad(v.sum(), contexts)[0] for v in (found, expected)]
    torch.testing.assert_close(*slopes, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("kind", ["one", "ensemble"])
def test_moments_are_those_of_the_mixture(kind):
    """``E[f^2] - E[f]^2`` of the members, each by its own posterior."""
    members = [gp(0), gp(1)][: 1 if kind == "one" else 2]
    model = members[0] if kind == "one" else ModelEnsemble(members)
    x, contexts = torch.tensor([0.3, 1.2]).double(), torch.rand(6, 1).double() * 3.0
    Z = torch.cat([x.expand(6, -1), contexts], -1)
    with torch.no_grad():
        found = moments_at(model, x)(contexts)
        own = [m.posterior(Z) for m in members]
    means = torch.stack([each.mean.squeeze(-1) for each in own])
    squares = torch.stack([each.variance.squeeze(-1) for each in own]) + means.square()
    expected = means.mean(0), squares.mean(0) - means.mean(0).square()
    assert kind == "one" or (means[0] - means[1]).abs().max() > 0.01
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kernel", [RBFKernel(), MaternKernel(), None])
def test_no_variance_is_found_where_nobody_asks_for_it(kernel, monkeypatch):
    """Of few pairs too: joint kernels, and one of decision and context apart."""

    def fail(*_):
        raise AssertionError("a variance")

    model = gp(0)
    apart = ScaleKernel(MaternKernel(active_dims=[0, 1])) * RBFKernel(active_dims=[2])
    model.covar_module = apart if kernel is None else ScaleKernel(kernel)
    model.double().eval()
    monkeypatch.setattr(ExplainedVariance, "__call__", fail)
    monkeypatch.setattr(ExplainedVariance, "with_weights", fail)
    x, contexts = torch.tensor([0.3, 1.2]).double(), torch.rand(6, 1).double()
    mean = mean_at(ModelEnsemble([model, model]), x)
    for graph in (False, True):
        found = mean(contexts.requires_grad_(graph))
        Z = torch.cat([x.expand(6, -1), contexts], -1)
        expected = model.posterior(Z).mean.squeeze(-1)
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    slopes = [torch.autograd.grad(v.sum(), contexts)[0] for v in (found, expected)]
    torch.testing.assert_close(*slopes, rtol=1e-7, atol=1e-7)
