"""The expected share of contexts above a threshold, and its bound: against samples."""

from __future__ import annotations

import math

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor
from torch.distributions import Normal

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import ShareAboveUCB
from botorch_drbo.posterior.ensemble import ModelEnsemble
from tests.models import make_model, uniform

CONTEXTS = ContextSet(
    uniform(7, 1, seed=3), torch.tensor([0.1, 0.3, 0.05, 0.05, 0.2, 0.2, 0.1]).double()
)
X = uniform(5, 2, seed=4)
THRESHOLD = 0.3


def joint(x: Tensor) -> Tensor:
    """``[x, c]`` for each context, ``n x 3``."""
    n = CONTEXTS.num_points
    return torch.cat([x.expand(n, -1), CONTEXTS.points], dim=-1)


@pytest.mark.parametrize("units", [False, True])
def test_the_expected_share_is_that_of_samples(units: bool) -> None:
    model = make_model(units=units)
    level = model.posterior(joint(X[0])).mean.median().item()
    acqf = ShareAboveUCB(model, 0.0, CONTEXTS, threshold=level)
    for x in X:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            paths = model.posterior(joint(x)).rsample(torch.Size([20_000])).squeeze(-1)
        shares = (paths > level).double() @ CONTEXTS.weights
        error = 4.0 * shares.std() / math.sqrt(len(shares)) + 1e-4
        assert abs(acqf(x.view(1, 1, 2)).exp().item() - shares.mean()) < error


@pytest.mark.parametrize("beta", [0.0, 2.25])
def test_the_bound_is_of_the_indicator_at_each_context(beta: float) -> None:
    model = make_model()
    acqf = ShareAboveUCB(model, beta, CONTEXTS, threshold=THRESHOLD)
    for x in X:
        posterior = model.posterior(joint(x))
        law = Normal(posterior.mean.squeeze(-1), posterior.variance.sqrt().squeeze(-1))
        share = 1.0 - law.cdf(torch.tensor(THRESHOLD).double())
        bounds = share + (beta * share * (1.0 - share)).sqrt()
        expected = (CONTEXTS.weights * bounds).sum().log()
        torch.testing.assert_close(acqf(x.view(1, 1, 2))[0], expected)


@pytest.mark.parametrize("threshold", [THRESHOLD, 8.0])  # nearly certain, and far off
@pytest.mark.parametrize("beta", [0.0, 2.25])
def test_its_gradient_is_a_difference(beta: float, threshold: float) -> None:
    acqf = ShareAboveUCB(make_model(), beta, CONTEXTS, threshold=threshold)
    batch = X.unsqueeze(-2).clone().requires_grad_()
    assert torch.autograd.gradcheck(acqf, (batch,), atol=1e-4)
    (slope,) = torch.autograd.grad(acqf(batch).sum(), batch)
    assert slope.abs().amax(-1).min() > 0.0


def test_shares_of_an_ensemble_are_averaged() -> None:
    members = [make_model(), make_model(lengthscale=0.3)]
    both = ShareAboveUCB(ModelEnsemble(members), 0.0, CONTEXTS, threshold=THRESHOLD)
    each = [ShareAboveUCB(m, 0.0, CONTEXTS, threshold=THRESHOLD) for m in members]
    batch = X.unsqueeze(-2)
    mean = torch.stack([acqf(batch).exp() for acqf in each]).mean(0)
    torch.testing.assert_close(both(batch).exp(), mean)


def test_a_pending_decision_leaves_less_to_learn() -> None:
    model, x = make_model(noise=1e-4), X[:1]
    level = model.posterior(joint(x[0])).mean.mean().item()
    free, waiting = (
        ShareAboveUCB(model, 9.0, CONTEXTS, threshold=level, X_pending=pending)(
            x.view(1, 1, 2)
        ).item()
        for pending in (None, x)
    )
    assert waiting < free - 1e-3


def test_a_threshold_is_a_number() -> None:
    with pytest.raises(InputDataError, match="`threshold` must be a finite number"):
        ShareAboveUCB(make_model(), 0.0, CONTEXTS, threshold=math.nan)
