"""f(x + c): the model of x alone, asked at x + c, is the oracle everywhere."""

from __future__ import annotations

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.deterministic import GenericDeterministicModel
from botorch.models.transforms.input import (
    ChainedInputTransform,
    InputPerturbation,
    Normalize,
)
from botorch.models.transforms.outcome import Standardize
from gpytorch.kernels import MaternKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from botorch_drbo.posterior import marginal_posterior
from botorch_drbo.posterior.wrapped import (
    AddedPerturbation,
    with_known_columns,
    with_perturbation,
)
from botorch_drbo.sample_paths import PosteriorPaths
from tests.models import known_model, uniform

BOX = torch.tensor([[0.0, 10.0], [1.0, 30.0]], dtype=torch.double)


def decisions(num: int, seed: int = 1) -> Tensor:
    return BOX[0] + (BOX[1] - BOX[0]) * uniform(num, 2, seed=seed)


def model_of_decisions(normalise: bool = True) -> SingleTaskGP:
    X = decisions(10)
    Y = 100 + 7 * (5 * X[:, :1]).sin() * X[:, 1:] / 30
    options = {"input_transform": Normalize(2, bounds=BOX)} if normalise else {}
    return known_model(
        X, Y, noise=1e-2, normalise=False, outcome_transform=Standardize(1), **options
    )


X = decisions(4, seed=2)
C = (uniform(6, 2, seed=3) - 0.5) * torch.tensor([0.2, 4.0]).double()


def oracle(model: SingleTaskGP, X: Tensor) -> tuple[Tensor, Tensor]:
    """Moments at every decision and perturbation, point by point."""
    pairs = [[model.posterior((x + c).unsqueeze(0)) for c in C] for x in X]
    mean, variance = (
        torch.stack(
            [torch.stack([getattr(p, k).squeeze() for p in row]) for row in pairs]
        )
        for k in ("mean", "variance")
    )
    return mean, variance


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("method", ["auto", "exact", "generic"])
def test_moments_are_those_at_the_executed_decision(
    method: str, normalise: bool
) -> None:
    model = model_of_decisions(normalise)
    posterior = marginal_posterior(with_perturbation(model), [2, 3], method=method)
    mean, variance = posterior(X, C)
    expected = oracle(model, X)
    assert torch.allclose(mean, expected[0], rtol=1e-7)
    assert torch.allclose(variance, expected[1], rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("method", ["auto", "generic"])
def test_slopes_in_the_perturbation_are_those_in_the_decision(method: str) -> None:
    model = model_of_decisions()
    view = marginal_posterior(with_perturbation(model), [2, 3], method=method).over(C)
    slopes = view.at(X).slopes()
    leaf = (X.unsqueeze(1) + C).requires_grad_()
    posterior = model.posterior(leaf.unsqueeze(-2))
    (mean,) = torch.autograd.grad(posterior.mean.sum(), leaf, retain_graph=True)
    (variance,) = torch.autograd.grad(posterior.variance.sum(), leaf)
    assert torch.allclose(slopes.mean_slope, mean, rtol=1e-5, atol=1e-7)
    assert torch.allclose(slopes.variance_slope, variance, rtol=1e-4, atol=1e-6)


def test_gradients_against_finite_differences() -> None:
    view = marginal_posterior(with_perturbation(model_of_decisions()), [2, 3]).over(C)
    x = X.clone().requires_grad_()
    for part in range(2):
        (slope,) = torch.autograd.grad(view.at(x).moments()[part].sum(), x)
        for column, size in enumerate((1e-5, 2e-4)):
            step = torch.zeros(2, dtype=torch.double)
            step[column] = size
            with torch.no_grad():
                high, low = (
                    view.at(X + s * step).moments()[part].sum(-1) for s in (1, -1)
                )
            rise = (high - low) / (2 * size)
            assert torch.allclose(slope[:, column], rise, rtol=1e-4, atol=1e-4)


def test_the_same_as_botorchs_input_perturbation() -> None:
    model = model_of_decisions()
    botorchs = model_of_decisions()
    botorchs.input_transform = ChainedInputTransform(
        perturb=InputPerturbation(C), own=botorchs.input_transform
    )
    botorchs.eval()
    with torch.no_grad():
        expected = botorchs.posterior(X.unsqueeze(1)).mean.squeeze(-1)  # 4 x 6
    mean, _ = marginal_posterior(with_perturbation(model), [2, 3])(X, C)
    assert torch.allclose(mean, expected)


def test_pending_perturbed_decisions_lower_the_variance_there() -> None:
    model, joint = model_of_decisions(), torch.cat([X[:2], C[:2]], dim=-1)
    perturbed = with_perturbation(model)
    own = [
        marginal_posterior(perturbed, [2, 3], pending=joint, method=method)(X, C)[1]
        for method in ("exact", "generic")
    ]
    assert torch.allclose(*own, rtol=1e-4, atol=1e-6)
    noise = 1e-2 * model.outcome_transform.stdvs.square().squeeze()
    executed = X[:2] + C[:2]
    for i, j in ((0, 1), (3, 2)):
        points = torch.cat([(X[i] + C[j]).unsqueeze(0), executed])
        K = model.posterior(points).distribution.covariance_matrix
        noisy = K[1:, 1:] + noise * torch.eye(2)
        left = K[0, 0] - K[0, 1:] @ torch.linalg.solve(noisy, K[1:, 0])
        assert torch.allclose(own[0][i, j], left, rtol=1e-4)


def test_a_kernel_that_is_not_smooth() -> None:
    """The context enters through all columns that the kernel sees."""
    model = model_of_decisions()
    model.covar_module = MaternKernel(nu=1.5, ard_num_dims=2).double()
    posterior = marginal_posterior(with_perturbation(model.eval()), [2, 3])
    assert not posterior.smooth
    assert torch.allclose(posterior(X, C)[0], oracle(model, X)[0])


def test_known_columns_of_the_perturbation() -> None:
    model = model_of_decisions()
    known = with_known_columns(
        with_perturbation(model), [2], torch.tensor([0.05]).double()
    )
    mean, _ = marginal_posterior(known, [2, 3])(X, C)
    fixed = C.clone()
    fixed[:, 0] = 0.05
    at = (X.unsqueeze(1) + fixed).unsqueeze(-2)
    assert torch.allclose(mean, model.posterior(at).mean[..., 0, 0])


def test_sample_paths_have_the_moments_of_the_posterior() -> None:
    model = model_of_decisions()
    paths = PosteriorPaths(
        with_perturbation(model), [2, 3], num_paths=2000, num_features=64, seed=0
    )
    values = paths(X, C)  # 2000 x 4 x 6
    mean, variance = oracle(model, X)
    error = (variance / 2000).sqrt()
    assert ((values.mean(0) - mean).abs() < 5 * error).all()
    assert torch.allclose(values.var(0), variance, rtol=0.2)
    # A path is a function of x + c.
    moved = paths(X + C[:1], torch.zeros(1, 2).double())
    assert torch.allclose(values[..., 0], moved[..., 0])


def test_a_model_fitted_to_joint_inputs_is_the_model_of_the_executed_decisions() -> (
    None
):
    """Training inputs [x, c] behind the transform, or x + c: the same fit."""
    X, C = decisions(8, seed=5), (uniform(8, 2, seed=6) - 0.5) * 0.1
    Y = (X + C).sin().sum(-1, True)
    own = SingleTaskGP(X + C, Y, input_transform=Normalize(2, bounds=BOX))
    joint = SingleTaskGP(
        torch.cat([X, C], dim=-1),
        Y,
        input_transform=ChainedInputTransform(
            added=AddedPerturbation(), own=Normalize(2, bounds=BOX)
        ),
    )
    for model in (own, joint):
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        model.eval()
    found = joint.posterior(torch.cat([X, 0 * C], dim=-1)).mean
    assert torch.allclose(found, own.posterior(X).mean, rtol=1e-5)


def test_bad_input() -> None:
    with pytest.raises(UnsupportedError, match="SingleTaskGP, got Generic"):
        with_perturbation(GenericDeterministicModel(lambda X: X[..., :1]))
    perturbing = known_model(
        decisions(5), decisions(5)[:, :1], input_transform=InputPerturbation(C)
    )
    with pytest.raises(UnsupportedError, match="InputPerturbation adds points"):
        with_perturbation(perturbing)
    with pytest.raises(BotorchTensorDimensionError, match="as many columns"):
        AddedPerturbation()(torch.zeros(2, 3))
