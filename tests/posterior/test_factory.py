"""Which posterior a model gets, and which models are refused with what advice."""

from __future__ import annotations

import pytest
import torch
from botorch.acquisition.objective import (
    ExpectationPosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import UnsupportedError
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.gpytorch import GPyTorchModel
from botorch.models.model import Model
from botorch.models.transforms.input import AppendFeatures
from botorch.models.transforms.outcome import Log
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, RQKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ConstantMean, LinearMean
from gpytorch.models import ExactGP
from torch import Tensor

from botorch_drbo.posterior import marginal_posterior
from botorch_drbo.posterior.exact import ExactPosterior
from botorch_drbo.posterior.factory import Method
from botorch_drbo.posterior.generic import GenericPosterior
from botorch_drbo.posterior.product import ProductPosterior
from tests.contracts.view_case import joined
from tests.models import make_model, uniform

Z = torch.rand(6, 3, dtype=torch.double)
SPLIT = MaternKernel(active_dims=[0]) * MaternKernel(active_dims=[2])


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (None, ProductPosterior),
        (ScaleKernel(SPLIT), ProductPosterior),
        (MaternKernel(ard_num_dims=3), ExactPosterior),
        (RQKernel(), ExactPosterior),
        (SPLIT + MaternKernel(active_dims=[1, 2]), ExactPosterior),
    ],
)
def test_the_kernel_decides(kernel: Kernel | None, expected: type) -> None:
    assert type(marginal_posterior(make_model(kernel), [2])) is expected


def test_so_do_the_mean_and_the_outcome_transform() -> None:
    linear = make_model(mean_module=LinearMean(3))
    assert type(marginal_posterior(linear, [2])) is ExactPosterior
    logged = make_model(units=True, outcome_transform=Log())
    assert type(marginal_posterior(logged, [2])) is GenericPosterior


def test_a_subclass_with_a_posterior_of_its_own_is_asked_for_it() -> None:
    class Cautious(SingleTaskGP):
        def posterior(self, *args, **kwargs):
            return super().posterior(*args, **kwargs)

    model = Cautious(Z, Z[:, :1])
    assert type(marginal_posterior(model, [2])) is GenericPosterior


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("product", ProductPosterior),
        ("exact", ExactPosterior),
        ("generic", GenericPosterior),
    ],
)
def test_a_method_can_be_asked_for(method: Method, expected: type) -> None:
    assert type(marginal_posterior(make_model(), [2], method=method)) is expected


def test_two_outputs_need_a_transform() -> None:
    model = SingleTaskGP(Z, Z[:, :2])
    with pytest.raises(UnsupportedError, match="posterior_transform"):
        marginal_posterior(model, [2])
    weights = ScalarizedPosteriorTransform(torch.tensor([0.5, 0.5]).double())
    posterior = marginal_posterior(model, [2], posterior_transform=weights)
    assert posterior(Z[:, :2], Z[:, 2:])[0].shape == (6, 6)
    three = ScalarizedPosteriorTransform(torch.ones(3).double())
    with pytest.raises(UnsupportedError, match="3 weights"):
        marginal_posterior(model, [2], posterior_transform=three)


def batch() -> Model:
    return SingleTaskGP(Z.expand(2, -1, -1), Z[:, :1].expand(2, -1, -1))


def two_models() -> Model:
    return ModelListGP(SingleTaskGP(Z, Z[:, :1]), SingleTaskGP(Z, Z[:, 1:2]))


def with_added_points() -> Model:
    transform = AppendFeatures(torch.rand(4, 1, dtype=torch.double))
    return SingleTaskGP(Z, Z[:, :1], input_transform=transform)


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (two_models, "2 outputs"),
        (batch, "batch of models"),
        (with_added_points, "ContextSet"),
    ],
)
def test_models_that_no_posterior_takes(make, advice: str) -> None:
    with pytest.raises(UnsupportedError, match=advice):
        marginal_posterior(make(), [2])


def test_methods_that_do_not_take_a_model() -> None:
    logged = make_model(units=True, outcome_transform=Log())
    with pytest.raises(UnsupportedError, match="method='auto'"):
        marginal_posterior(logged, [2], method="exact")
    rough = make_model(MaternKernel())
    with pytest.raises(UnsupportedError, match="method='exact'"):
        marginal_posterior(rough, [2], method="product")
    with pytest.raises(UnsupportedError, match="factorises"):
        ProductPosterior(rough, [2])


def test_pending_needs_a_gaussian_posterior() -> None:
    logged = make_model(units=True, outcome_transform=Log())
    with pytest.raises(UnsupportedError, match="Gaussian"):
        marginal_posterior(logged, [2], pending=Z[:1])


def test_a_posterior_transform_is_one() -> None:
    with pytest.raises(UnsupportedError, match="PosteriorTransform"):
        marginal_posterior(
            make_model(),
            [2],
            posterior_transform=torch.nn.Identity(),  # pyright: ignore
        )


class PlainGP(ExactGP):
    def __init__(self, Z: Tensor, y: Tensor) -> None:
        super().__init__(Z, y, GaussianLikelihood())
        self.mean_module = ConstantMean()
        self.covar_module = ScaleKernel(RBFKernel())

    def forward(self, Z: Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean_module(Z), self.covar_module(Z))


class OfBoTorchToo(PlainGP, GPyTorchModel):
    _num_outputs = 1


def test_a_plain_gpytorch_model_is_refused_and_one_of_botorch_taken() -> None:
    Z = uniform(8, 2, seed=1)
    with pytest.raises(UnsupportedError, match=r"PlainGP.*GPyTorchModel"):
        marginal_posterior(PlainGP(Z, Z.sum(-1)).double(), [1])
    with pytest.raises(UnsupportedError, match="BoTorch model, got str"):
        marginal_posterior("model", [1])
    model = OfBoTorchToo(Z, Z.sum(-1)).double()
    mean, variance = marginal_posterior(model, [1])(Z[:3, :1], Z[:, 1:])
    posterior = model.posterior(joined(Z[:3, :1], Z[:, 1:], [1]).unsqueeze(-2))
    torch.testing.assert_close(mean, posterior.mean.reshape(3, 8))
    torch.testing.assert_close(variance, posterior.variance.reshape(3, 8))


def test_botorchs_expectation_over_contexts_is_refused_with_ours() -> None:
    Z = uniform(8, 2, seed=1)
    model = SingleTaskGP(Z, Z.sum(-1, True))
    transform = ExpectationPosteriorTransform(n_w=2)
    with pytest.raises(UnsupportedError, match=r"UncertaintyObjective\.so\(\)"):
        marginal_posterior(model, [1], posterior_transform=transform)
