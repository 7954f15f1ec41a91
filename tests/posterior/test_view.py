"""What holds for every view, on every model that it takes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from botorch_drbo.posterior import marginal_posterior
from tests.contracts.view_case import ViewUnderTest, joined
from tests.contracts.views import PosteriorViewContract
from tests.models import make_inputs, make_model
from tests.posterior.cases import CASES, EVERY, PENDING, case

pytestmark = pytest.mark.usefixtures("no_least_size")


class TestOurViews(PosteriorViewContract):
    cases = CASES


@pytest.mark.parametrize("method", EVERY)
def test_moments_are_the_textbooks(method: str) -> None:
    """Against plain algebra, so that no posterior is its own judge."""
    model, (X, C) = make_model(), make_inputs()
    Z, y = model.train_inputs[0], model.train_targets
    level, noise = model.mean_module.constant.item(), model.likelihood.noise.item()
    lengthscale = model.covar_module.lengthscale.detach()

    def k(a: Tensor, b: Tensor) -> Tensor:
        gaps = (a[:, None] - b[None]) / lengthscale
        return (-0.5 * gaps.square().sum(-1)).exp()

    K = k(Z, Z) + noise * torch.eye(len(Z), dtype=torch.double)
    cross = k(joined(X, C, [2]).flatten(0, 1), Z)
    expected_mean = level + cross @ torch.linalg.solve(K, y - level)
    explained = (cross * torch.linalg.solve(K, cross.mT).mT).sum(-1)
    view = marginal_posterior(model, [2], method=method).over(C)
    assert view.method == method
    mean, variance = view.at(X).moments()
    torch.testing.assert_close(mean.flatten(), expected_mean, rtol=0, atol=1e-9)
    torch.testing.assert_close(variance.flatten(), 1 - explained, rtol=0, atol=1e-9)


def test_each_model_of_an_ensemble_has_contexts_of_its_own() -> None:
    under = ViewUnderTest(case("ensemble", "generic"))
    X, contexts = under.X, under.own()
    own = torch.stack([contexts, contexts.flip(1), contexts / 2], 1)
    found = under.view().at(X).slopes(own)  # b x S x k x d_c
    for s in range(3):
        expected = [part[:, s] for part in under.expected_slopes(X, own[:, s])]
        under.assert_slopes([part[:, s] for part in found], expected)


@pytest.mark.parametrize("method", EVERY)
def test_pending_among_outcomes_of_unequal_noise(method: str) -> None:
    """What is pending will be as noisy as the data were on average."""
    model, (X, C) = make_model(fixed_noise=True, units=True), make_inputs(units=True)
    model.likelihood.noise = model.likelihood.noise * torch.logspace(0, 3, 12).double()
    noise = model.likelihood.noise * model.outcome_transform.stdvs.square().squeeze()
    joint = joined(X, C, [2]).reshape(-1, 1, 3)
    with torch.no_grad():  # conditioning of BoTorch's joint posterior
        both = torch.cat([joint, PENDING.expand(len(joint), -1, -1)], dim=-2)
        covariance = model.posterior(both).distribution.covariance_matrix
    cross, own = covariance[:, :1, 1:], covariance[:, 1:, 1:]
    own = own + noise.mean() * torch.eye(2, dtype=torch.double)
    explained = cross @ torch.linalg.solve(own, cross.mT)
    expected = (covariance[:, :1, :1] - explained).reshape(len(X), len(C))
    posterior = marginal_posterior(model, [2], pending=PENDING, method=method)
    view = posterior.over(C)
    assert view.method == method
    found = view.at(X).moments()[1]
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)
