"""The scale of a model without its data, in the units of y."""

from __future__ import annotations

import pytest
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.deterministic import GenericDeterministicModel
from botorch.models.transforms import Standardize
from gpytorch.kernels import MaternKernel, ScaleKernel
from torch import Tensor

from botorch_drbo.posterior.models import prior_variance
from tests.models import ensemble

WEIGHTS = torch.tensor([2.0, -3.0], dtype=torch.double)


@pytest.fixture
def data() -> tuple[Tensor, Tensor]:
    Z = torch.rand(7, 2, dtype=torch.double)
    return Z, torch.cat([Z.sum(-1, True).sin(), 5.0 + Z[:, :1] ** 2], dim=-1)


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_outputscale_times_the_variance_of_the_outcomes(data, unit: float) -> None:
    Z, Y = data
    model = SingleTaskGP(
        Z,
        unit * Y[:, :1],
        covar_module=ScaleKernel(MaternKernel()).double(),
        outcome_transform=Standardize(m=1, min_stdv=0.0),
    )
    model.covar_module.outputscale = 2.5  # pyright: ignore
    expected = 2.5 * unit**2 * Y[:, 0].var().item()
    assert prior_variance(model) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("listed", [True, False])
def test_of_several_outputs_the_weighted_sum(data, listed: bool) -> None:
    Z, Y = data
    model = SingleTaskGP(Z, Y)
    if listed:
        model = ModelListGP(*[SingleTaskGP(Z, y) for y in Y.split(1, dim=-1)])
    expected = (WEIGHTS.square() * Y.var(0)).sum().item()
    found = prior_variance(model, ScalarizedPosteriorTransform(WEIGHTS))
    assert found == pytest.approx(expected)


def test_of_an_ensemble_the_average(data) -> None:
    Z, Y = data
    model = ensemble(Z, Y[:, :1])
    scale = model.covar_module.outputscale.mean() * Y[:, 0].var()  # pyright: ignore
    assert prior_variance(model) == pytest.approx(scale.item())


@pytest.mark.parametrize("weight", [-1.0, 0.5, -3.0])
def test_of_one_output_the_square_of_its_weight(data, weight: float) -> None:
    Z, Y = data
    model, many = SingleTaskGP(Z, Y[:, :1]), ensemble(Z, Y[:, :1])
    transform = ScalarizedPosteriorTransform(torch.tensor([weight]).double(), 7.0)
    for each in (model, many):
        expected = weight**2 * prior_variance(each)
        assert prior_variance(each, transform) == pytest.approx(expected)
    inputs = Z.unsqueeze(-2) + 1e6  # where no outcome says anything
    far = model.posterior(inputs, posterior_transform=transform).variance.mean()
    assert prior_variance(model, transform) == pytest.approx(far.item())


def test_a_certain_model_has_none() -> None:
    model = GenericDeterministicModel(lambda Z: Z[..., :1])
    assert prior_variance(model, at=torch.rand(3, 2)) == 0.0


def test_the_data_do_not_matter(data) -> None:
    Z, Y = data
    model = SingleTaskGP(Z, Y[:, :1])
    before = prior_variance(model)
    model.posterior(Z)  # fills GPyTorch's caches
    assert prior_variance(model) == before
    far = model.posterior(Z + 1e6).variance
    torch.testing.assert_close(far, torch.full_like(far, before))
