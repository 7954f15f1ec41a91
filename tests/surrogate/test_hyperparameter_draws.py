"""Draws of hyper-parameters, against quadrature in two of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.models import SingleTaskGP
from torch import Tensor
from torch.distributions import Gamma, MultivariateNormal

from botorch_drbo.posterior.ensemble import ModelEnsemble, members_of
from botorch_drbo.surrogate import (
    GaussianProcess,
    HyperparameterDraws,
    ModelData,
    hyperparameters,
)
from botorch_drbo.surrogate.evidence import LogPosterior
from botorch_drbo.surrogate.hyperparameters import _root
from tests.models import uniform

pytestmark = pytest.mark.usefixtures("each_fit_is_made")

NOISE, GRID = 0.05, 120
UNIT = torch.tensor([[0.0], [1.0]], dtype=torch.double)


def data(t: int = 8) -> ModelData:
    Z = uniform(t, 1, seed=1)
    Y = (6 * Z).sin()
    Y = (Y - Y.mean()) / Y.std()  # so that the model's units are these
    return ModelData(Z, Y, UNIT, torch.full_like(Y, NOISE))


def by_quadrature() -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of the logarithms of lengthscale and size.

    The constant mean is one more kernel, a constant of a very large variance.
    """
    observed = data()
    gap = (observed.inputs - observed.inputs.T).abs()
    grid_l = torch.linspace(np.log(0.02), np.log(8.0), GRID).double()
    grid_s = torch.linspace(np.log(0.02), np.log(400.0), GRID).double()
    scale, s = torch.meshgrid(grid_l.exp(), grid_s.exp(), indexing="ij")
    a = 5**0.5 * gap / scale[..., None, None]
    K = s[..., None, None] * (1 + a + a.square() / 3) * (-a).exp()
    K = K + NOISE * torch.eye(len(gap)) + 1e6
    normal = MultivariateNormal(torch.zeros(len(gap)).double(), K)
    density = normal.log_prob(observed.outcomes.flatten())
    density = density + Gamma(3.0, 6.0).log_prob(scale) + Gamma(2.0, 0.15).log_prob(s)
    density = density + scale.log() + s.log()  # of the logarithms
    weights = (density - density.max()).exp()
    weights = weights / weights.sum()
    values = torch.stack([scale.log(), s.log()])
    mean = (weights * values).sum((1, 2))
    second = (weights * values.square()).sum((1, 2))
    return mean, (second - mean.square()).sqrt()


def logarithms(model: ModelEnsemble) -> Tensor:
    rows = []
    for member in model.members:
        assert isinstance(member, SingleTaskGP)
        kernel = member.covar_module
        rows.append(
            torch.stack(
                [kernel.base_kernel.lengthscale.flatten()[0], kernel.outputscale]
            )
        )
    return torch.stack(rows).log().detach()


@pytest.mark.parametrize("seed", range(3))
def test_draws_are_those_of_the_posterior(seed: int) -> None:
    many = HyperparameterDraws(num_draws=400, num_proposals=4000)
    family = GaussianProcess().family(1)
    posterior = LogPosterior(family, data(), marginal=True)
    found = many.draws(posterior, 0.5, np.random.default_rng(seed))
    mean, deviation = map(Tensor.numpy, by_quadrature())
    assert (np.abs(found.mean(0) - mean) < 0.15 * deviation).all()
    assert (np.abs(found.std(0) / deviation - 1.0) < 0.15).all()


@pytest.mark.parametrize("end", ["lower", "upper"])
def test_draws_lie_within_the_ranges(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the proposals about a half lie beyond the end."""
    posterior = LogPosterior(GaussianProcess().family(1), data(), marginal=True)
    mean = by_quadrature()[0].numpy()
    limits = {"lower": (mean[0], np.inf), "upper": (-np.inf, mean[0])}[end]
    given = [np.array(limits), np.array([-np.inf, np.inf])]
    monkeypatch.setattr(hyperparameters, "ranges", lambda posterior: given)
    many = HyperparameterDraws(num_draws=100, num_proposals=400)
    found = many.draws(posterior, 0.5, np.random.default_rng(0))
    assert (found[:, 0] >= limits[0]).all() and (found[:, 0] <= limits[1]).all()


def test_where_no_draw_is_possible_all_are_the_most_likely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing lies between an end and itself, and the first maximum is the highest."""
    posterior = LogPosterior(GaussianProcess().family(1), data(), marginal=True)
    maxima = np.array([[-1.0, 0.5], [2.0, 3.0]])
    monkeypatch.setattr(hyperparameters, "maxima", lambda *given: maxima)
    monkeypatch.setattr(hyperparameters, "ranges", lambda posterior: [[9.0, 9.0]] * 2)
    many = HyperparameterDraws(num_draws=3, num_proposals=4)
    found = many.draws(posterior, 0.5, np.random.default_rng(0))
    assert found.tolist() == [[-1.0, 0.5]] * 3


@pytest.mark.parametrize("curvature", [0.0, -3.0, 0.25, 4.0])
def test_proposals_are_no_wider_than_the_widest(curvature: float) -> None:
    """A quadratic density: one over the root of its curvature, or 1.5."""

    class Quadratic:
        def __call__(self, point: np.ndarray) -> SimpleNamespace:
            return SimpleNamespace(gradient=-curvature * point)

    root = _root(cast(LogPosterior, Quadratic()), np.array([0.3, -0.2]))
    wanted = min(1.5, max(curvature, 1e-12) ** -0.5)
    np.testing.assert_allclose(root @ root.T, wanted**2 * np.eye(2), rtol=1e-6)


def test_the_mean_is_drawn_given_the_others() -> None:
    """Oracle: of a very long lengthscale and no noise but the given, the average."""
    many = HyperparameterDraws(num_draws=150, num_proposals=1000)
    model = many.fit(data())
    means = torch.tensor([m.mean_module.constant.item() for m in model.members])
    observed = data()
    gap = (observed.inputs - observed.inputs.T).abs()
    expected, spread = [], []
    for lengthscale, size in logarithms(model).exp():
        a = 5**0.5 * gap / lengthscale
        K = size * (1 + a + a.square() / 3) * (-a).exp() + NOISE * torch.eye(len(gap))
        P = torch.linalg.inv(K)
        expected.append((P @ observed.outcomes).sum() / P.sum())
        spread.append(P.sum() ** -0.5)
    scaled = (means - torch.stack(expected)) / torch.stack(spread)
    assert scaled.mean().abs() < 0.25 and (scaled.std() - 1.0).abs() < 0.2


def test_a_few_draws_agree_with_many_about_outcomes() -> None:
    Z = uniform(20, 1, seed=4)
    few, many = (
        HyperparameterDraws(num_draws=k, num_proposals=n).fit(data()).posterior(Z)
        for k, n in ((8, 256), (100, 3000))
    )
    deviation = many.mixture_variance.sqrt()
    assert ((few.mixture_mean - many.mixture_mean).abs() < 0.7 * deviation).all()
    assert (few.mixture_variance.sqrt() / deviation).log().abs().mean() < 0.4


def test_the_seed_decides_and_is_zero_if_none_is_given() -> None:
    first, again, other = (
        logarithms(surrogate.fit(data()))
        for surrogate in (
            HyperparameterDraws(num_draws=4, seed=0),
            HyperparameterDraws(num_draws=4),
            HyperparameterDraws(num_draws=4, seed=1),
        )
    )
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_there_are_as_many_models_as_draws() -> None:
    assert len(members_of(HyperparameterDraws("rbf", num_draws=3).fit(data()))) == 3


@pytest.mark.parametrize(
    "options", [{"kernel": "cubic"}, {"num_draws": 0}, {"num_proposals": -1}]
)
def test_options_outside_their_range_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputDataError):
        HyperparameterDraws(**options)
