"""The density of hyper-parameters, against GPyTorch and by hand."""

from __future__ import annotations

import math

import gpytorch
import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch.distributions import Gamma as TorchGamma
from torch.distributions import LogNormal as TorchLogNormal

from botorch_drbo.surrogate.base import ModelData
from botorch_drbo.surrogate.evidence import (
    RBF,
    Correlation,
    Family,
    Flat,
    Gamma,
    LogNormal,
    LogPosterior,
    ProductMatern,
    RadialMatern,
    RationalQuadratic,
)
from botorch_drbo.surrogate.gaussian_process import model_with
from tests.models import uniform

CORRELATIONS = [
    RBF(),
    ProductMatern(1.5),
    ProductMatern(2.5),
    RadialMatern(1.5),
    RadialMatern(2.5),
    RationalQuadratic(),
]
BOX = torch.tensor([[0.0, -1.0, 2.0], [2.0, 1.0, 3.0]], dtype=torch.double)


def data(t: int = 12, *, known_noise: bool = False) -> ModelData:
    Z = BOX[0] + (BOX[1] - BOX[0]) * uniform(t, 3, seed=1)
    Y = 3.0 + 20 * (Z[:, :1] * Z[:, 1:2]).sin() + Z[:, 2:]
    Yvar = 0.1 + uniform(t, 1, seed=2) if known_noise else None
    return ModelData(Z, Y, BOX, Yvar)


def family(correlation: Correlation, *, has_mean: bool = True) -> Family:
    return Family(
        correlation,
        Gamma(3.0, 6.0),
        LogNormal(0.2, 0.7),
        Gamma(1.1, 0.05),
        has_mean=has_mean,
    )


def point(posterior: LogPosterior) -> np.ndarray:
    steps = np.random.default_rng(0).normal(size=posterior.size)
    return posterior.vector(0.4, 1.7, 0.05) + 0.3 * steps


@pytest.mark.parametrize("correlation", CORRELATIONS, ids=repr)
@pytest.mark.parametrize("known_noise", [False, True])
@pytest.mark.parametrize("has_mean", [False, True])
def test_the_density_is_gpytorchs_and_that_of_the_priors(
    correlation: Correlation, known_noise: bool, has_mean: bool
) -> None:
    observed = data(known_noise=known_noise)
    posterior = LogPosterior(family(correlation, has_mean=has_mean), observed)
    at = point(posterior)
    model = model_with(observed, posterior, at).train()
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        mll = ExactMarginalLogLikelihood(model.likelihood, model)
        mll.train()
        (Z,) = model.train_inputs
        likelihood = mll(model(Z), model.train_targets, [Z]).item() * 12
    values = posterior.hyperparameters(at)
    lengthscales = torch.tensor(values.lengthscales)
    # of a density only differences count: these lack their constants
    wanted = likelihood + 6.0 * math.log(2 * math.pi)
    wanted += (TorchGamma(3.0, 6.0).log_prob(lengthscales)).sum().item()
    wanted -= 3 * (3 * math.log(6.0) - math.lgamma(3.0))
    s = torch.tensor(values.outputscale)
    wanted += TorchLogNormal(0.2, 0.7).log_prob(s).item()
    wanted += math.log(0.7) + 0.5 * math.log(2 * math.pi)
    if values.noise is not None:
        noise = torch.tensor(values.noise, dtype=torch.double)
        wanted += TorchGamma(1.1, 0.05).log_prob(noise).item()
        wanted -= 1.1 * math.log(0.05) - math.lgamma(1.1)
    assert posterior(at).log_density == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("correlation", CORRELATIONS, ids=repr)
@pytest.mark.parametrize("known_noise", [False, True])
def test_the_gradient_is_that_of_finite_differences(
    correlation: Correlation, known_noise: bool
) -> None:
    observed = data(known_noise=known_noise)
    posterior = LogPosterior(family(correlation), observed)
    at = point(posterior)
    steps = 1e-5 * np.eye(posterior.size)
    wanted = [
        (posterior(at + h).log_density - posterior(at - h).log_density) / 2e-5
        for h in steps
    ]
    assert np.allclose(posterior(at).gradient, wanted, atol=1e-6)


def test_the_mean_is_the_most_likely_one() -> None:
    observed = data()
    free = LogPosterior(family(RBF()), observed)
    at = point(free)
    found = free(at)
    K = 0.0
    values = free.hyperparameters(at)
    Z = (observed.inputs - BOX[0]) / (BOX[1] - BOX[0]) / torch.tensor(values[0])
    K = values.outputscale * torch.exp(-0.5 * torch.cdist(Z, Z).square())
    P = torch.linalg.inv(K + values.noise * torch.eye(12))
    y = (observed.outcomes - observed.outcomes.mean()) / observed.outcomes.std()
    assert found.mean == pytest.approx(((P @ y).sum() / P.sum()).item())
    assert found.mean_precision == pytest.approx(P.sum().item())


def test_a_product_of_matern_kernels_is_the_written_formula() -> None:
    """Brute force: one pair after the other, one column after the other."""
    observed = data(6)
    posterior = LogPosterior(family(ProductMatern(2.5)), observed)
    at = point(posterior)
    lengthscales, _, s, *_ = posterior.hyperparameters(at)
    model = model_with(observed, posterior, at)
    Z = (observed.inputs - BOX[0]) / (BOX[1] - BOX[0])
    kernel = model.covar_module(Z).to_dense()
    for i in range(6):
        for j in range(6):
            wanted = s
            for column in range(3):
                gap = abs(Z[i, column] - Z[j, column]).item()
                a = math.sqrt(5.0) * gap / lengthscales[column]
                wanted *= (1.0 + a + a * a / 3.0) * math.exp(-a)
            assert kernel[i, j].item() == pytest.approx(wanted, rel=1e-6)


def test_in_one_column_the_product_is_the_radial_form() -> None:
    Z = uniform(8, 1, seed=3)
    observed = ModelData(Z, Z.sin(), torch.tensor([[0.0], [1.0]]).double())
    posterior = LogPosterior(family(ProductMatern(2.5)), observed)
    at = point(posterior)
    lengthscales, _, s, *_ = posterior.hyperparameters(at)
    radial = ScaleKernel(MaternKernel(2.5)).double()
    radial.outputscale = torch.tensor(s)
    radial.base_kernel.lengthscale = torch.tensor(lengthscales)
    own = model_with(observed, posterior, at).covar_module(Z).to_dense()
    assert torch.allclose(own, radial(Z).to_dense())


def test_a_flat_prior_says_nothing() -> None:
    value, slope = Flat().log_density(np.array([0.3, -2.0]))
    assert not value.any() and not slope.any()
