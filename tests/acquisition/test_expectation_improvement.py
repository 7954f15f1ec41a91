"""Expected improvement of the expectation: against sampling, quadrature and BoTorch."""

from __future__ import annotations

import math

import pytest
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.models.transforms.outcome import Log
from botorch.optim import optimize_acqf
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import (
    LogExpectedImprovementOfExpectation,
    OverJointInputs,
)
from botorch_drbo.testing.fixtures import ensemble, known_model, member_of
from tests.contracts.view_case import joined
from tests.models import uniform

MINUS = ScalarizedPosteriorTransform(torch.tensor([-1.0], dtype=torch.double))
CONTEXTS = ContextSet(uniform(7, 1, seed=5), uniform(7, seed=6))
X = uniform(4, 2, seed=9)
LogEI = LogExpectedImprovementOfExpectation


def data() -> tuple[Tensor, Tensor]:
    Z = uniform(9, 3, seed=7)
    return Z, (5 * Z[:, :1]).sin() + Z[:, 1:2] * (4 * Z[:, 2:]).cos()


def gp(unit: float = 1.0, level: float = 0.0):
    Z, Y = data()
    return known_model(Z, level + unit * Y, lengthscale=0.4, noise=1e-2)


def tried() -> Tensor:
    return data()[0][:, :2]


def dense(model, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, covariance and the moments of the expectation, by the joint posterior."""
    with torch.no_grad():
        posterior = model.posterior(joined(X, CONTEXTS.points, [2]))
        mean = posterior.distribution.mean
        covariance = posterior.distribution.covariance_matrix
    w = CONTEXTS.weights
    return mean, covariance, torch.stack([mean @ w, (covariance @ w) @ w])


def bar() -> Tensor:
    return dense(gp(), tried())[2][0].max()


def test_the_mean_of_many_joint_samples() -> None:
    mean, covariance, _ = dense(gp(), X)
    root = torch.linalg.cholesky(covariance + 1e-9 * torch.eye(7).double())
    normal = torch.randn(
        100_000, 7, 1, generator=torch.Generator().manual_seed(0), dtype=torch.double
    )
    found = LogEI(gp(), tried(), CONTEXTS)(X.unsqueeze(1)).exp()
    for row in range(len(X)):
        samples = mean[row] + (root[row] @ normal).squeeze(-1)  # of f at all contexts
        gains = (samples @ CONTEXTS.weights - bar()).clamp_min(0.0)
        error = gains.std() / math.sqrt(len(gains))
        assert abs(found[row] - gains.mean()) < 4 * error
        assert gains.mean() > 10 * error


def test_quadrature_over_the_one_number_that_matters() -> None:
    mean, variance = dense(gp(), X)[2]
    grid = torch.linspace(-12.0, 12.0, 200_001, dtype=torch.double)
    density = (-0.5 * grid.square()).exp() / math.sqrt(2 * math.pi)
    values = mean[:, None] + variance.sqrt()[:, None] * grid
    expected = torch.trapezoid((values - bar()).clamp_min(0.0) * density, grid)
    found = LogEI(gp(), tried(), CONTEXTS)(X.unsqueeze(1))
    torch.testing.assert_close(found.exp(), expected, rtol=1e-6, atol=1e-9)


def test_one_context_is_botorchs_own() -> None:
    model, c = gp(), CONTEXTS.points[:1]
    with torch.no_grad():
        best = model.posterior(joined(tried(), c, [2]).squeeze(1)).mean.max()
    own = LogExpectedImprovement(model, best)
    found = LogEI(model, tried(), ContextSet(c))(X.unsqueeze(1))
    torch.testing.assert_close(found, own(joined(X, c, [2])), rtol=1e-7, atol=1e-7)


def test_pointwise_deviations_would_overstate_it() -> None:
    covariance = dense(gp(), X)[1]
    pointwise = covariance.diagonal(dim1=-2, dim2=-1).sqrt() @ CONTEXTS.weights
    _, variance = LogEI(gp(), tried(), CONTEXTS).integral(X)
    assert (variance.sqrt() < 0.95 * pointwise).all()


@pytest.mark.parametrize("method", ["generic", "exact", "product"])
def test_gradients(method: str) -> None:
    model = gp()
    model.requires_grad_(False)
    acqf = LogEI(model, tried(), CONTEXTS, method=method)
    rows = X.unsqueeze(1).clone().requires_grad_()
    assert torch.autograd.gradcheck(acqf, rows, atol=1e-4, rtol=1e-3)


def test_far_below_the_bar_it_still_has_a_slope() -> None:
    model = gp(level=0.0)
    acqf = LogEI(model, tried(), CONTEXTS)
    acqf._bar = acqf._bar + 1e4
    rows = X.unsqueeze(1).clone().requires_grad_()
    value = acqf(rows)
    (slope,) = torch.autograd.grad(value.sum(), rows)
    assert torch.isfinite(value).all() and (slope.abs().amax(-1) > 0).all()


@pytest.mark.parametrize(("unit", "level"), [(1e-6, 0.0), (1e9, 5e9), (3.0, -40.0)])
def test_another_unit_adds_a_constant(unit: float, level: float) -> None:
    plain = LogEI(gp(), tried(), CONTEXTS)(X.unsqueeze(1))
    found = LogEI(gp(unit, level), tried(), CONTEXTS)(X.unsqueeze(1))
    torch.testing.assert_close(found, plain + math.log(unit), rtol=1e-6, atol=1e-5)


def test_minimisation() -> None:
    """A model of -y, and the sign turned back."""
    plain = LogEI(gp(), tried(), CONTEXTS)(X.unsqueeze(1))
    turned = LogEI(gp(-1.0), tried(), CONTEXTS, posterior_transform=MINUS)
    torch.testing.assert_close(turned(X.unsqueeze(1)), plain, rtol=1e-6, atol=1e-6)


def test_a_context_twice_is_a_context_of_twice_the_weight() -> None:
    points, weights = CONTEXTS.points, CONTEXTS.weights
    split = ContextSet(
        torch.cat([points, points]), torch.cat([0.3 * weights, 0.7 * weights])
    )
    torch.testing.assert_close(
        LogEI(gp(), tried(), split)(X.unsqueeze(1)),
        LogEI(gp(), tried(), CONTEXTS)(X.unsqueeze(1)),
        rtol=1e-7,
        atol=1e-8,
    )


@pytest.mark.parametrize("pending", [None, X[:1]])
def test_an_ensemble_has_the_mean_improvement_of_its_models(pending) -> None:
    Z, Y = data()
    model = ensemble(Z, (Y - Y.mean()) / Y.std())
    rows = X.unsqueeze(1)
    alone = torch.stack(
        [
            LogEI(member_of(model, s), tried(), CONTEXTS, X_pending=pending)(rows)
            for s in range(3)
        ]
    ).exp()
    assert (alone.amax(0) > 1.1 * alone.amin(0)).all()
    found = LogEI(model, tried(), CONTEXTS, X_pending=pending)(rows)
    torch.testing.assert_close(found.exp(), alone.mean(0), rtol=1e-4, atol=1e-7)


def test_pending_decisions_lower_it_and_are_forgotten() -> None:
    acqf, rows = LogEI(gp(), tried(), CONTEXTS), X[:1].unsqueeze(1)
    plain = acqf(rows)
    acqf.set_X_pending(X[:1])
    assert acqf(rows) < plain - 0.1
    constructed = LogEI(gp(), tried(), CONTEXTS, X_pending=X[:1])
    torch.testing.assert_close(constructed(rows), acqf(rows))
    acqf.set_X_pending(None)
    torch.testing.assert_close(acqf(rows), plain)


def test_optimisers_and_joint_inputs() -> None:
    acqf = LogEI(gp(), tried(), CONTEXTS)
    box = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
    x, value = optimize_acqf(
        acqf, box, q=2, num_restarts=2, raw_samples=16, sequential=True
    )
    assert x.shape == (2, 2) and torch.pdist(x) > 1e-3
    with torch.no_grad():
        assert value[0] >= acqf(uniform(64, 1, 2, seed=3)).max() - 1e-4
    joint = joined(X, CONTEXTS.points[:1], [2])
    torch.testing.assert_close(OverJointInputs(acqf)(joint), acqf(X.unsqueeze(1)))


def test_a_changed_model_is_noticed() -> None:
    model = gp()
    acqf = LogEI(model, tried(), CONTEXTS)
    before = acqf(X.unsqueeze(1))
    model.likelihood.noise = 0.5
    after = LogEI(model, tried(), CONTEXTS)(X.unsqueeze(1))
    assert not torch.allclose(before, after)
    torch.testing.assert_close(acqf(X.unsqueeze(1)), after)


def test_shapes_and_dtypes() -> None:
    acqf = LogEI(gp(), tried(), CONTEXTS)
    assert acqf._log is True
    assert acqf(X.reshape(2, 2, 1, 2)).shape == (2, 2)
    found = acqf(X.float().unsqueeze(1))
    assert found.dtype == torch.float
    torch.testing.assert_close(
        found.double(), acqf(X.unsqueeze(1)), rtol=1e-4, atol=1e-4
    )
    with pytest.raises(UnsupportedError, match="sequential=True"):
        acqf(X.reshape(2, 2, 2))


def test_bad_arguments() -> None:
    with pytest.raises(BotorchTensorDimensionError, match="X_baseline"):
        LogEI(gp(), data()[0], CONTEXTS)
    with pytest.raises(InputDataError, match="ContextSet"):
        LogEI(gp(), tried(), CONTEXTS.points)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputDataError, match="`method`"):
        LogEI(gp(), tried(), CONTEXTS, method="fast")  # pyright: ignore
    Z, Y = data()
    positive = known_model(Z, Y.exp(), outcome_transform=Log())
    with pytest.raises(UnsupportedError, match="jointly Gaussian"):
        LogEI(positive, tried(), CONTEXTS)
