"""Points of a law against its own moments and scipy's distributions."""

from __future__ import annotations

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from scipy import stats
from torch import Tensor
from torch import distributions as td

from botorch_drbo.contexts import ContextSet
from tests.contexts.laws import COVARIANCE, F64, QUANTILE_LAWS, SAMPLED_LAWS
from tests.contexts.observed import DTYPES, box, observations


@pytest.mark.parametrize("make_law", QUANTILE_LAWS)
def test_quantile_samples_have_the_moments_of_the_law(make_law):
    law = make_law()
    points = ContextSet.from_distribution(law, 2**13, seed=2).points
    mean, variance = law.mean.reshape(-1), law.variance.reshape(-1)
    # Random draws would miss the mean by about .011 standard deviations.
    torch.testing.assert_close(
        (points.mean(0) - mean) / variance.sqrt(), 0 * mean, rtol=0.0, atol=1e-3
    )
    torch.testing.assert_close(points.var(0), variance, rtol=0.01, atol=0.0)


def test_multivariate_normal_has_the_covariance_of_the_law():
    law = td.MultivariateNormal(F64[:2], COVARIANCE)
    points = ContextSet.from_distribution(law, 2**13, seed=2).points
    torch.testing.assert_close(points.T.cov(), COVARIANCE, rtol=0.0, atol=5e-3)


@pytest.mark.parametrize("make_law", SAMPLED_LAWS)
def test_sampled_laws_have_the_moments_of_the_law(make_law):
    law, n = make_law(), 4096
    points = ContextSet.from_distribution(law, n, seed=2).points
    mean, variance = law.mean.reshape(-1), law.variance.reshape(-1)
    assert points.shape == (n, len(mean)) and points.dtype == torch.double
    score = (points.mean(0) - mean) / (variance / n).sqrt()
    assert score.abs().max() < 4.5
    torch.testing.assert_close(points.var(0), variance, rtol=0.15, atol=0.0)


def test_a_law_of_the_user_with_icdf_is_inverted():
    class BurrXII(td.Distribution):
        def icdf(self, value: Tensor) -> Tensor:
            return ((1.0 - value) ** (-1.0 / 20.0) - 1.0) ** 0.5

        def sample(self, sample_shape=()) -> Tensor:
            return self.icdf(torch.rand(sample_shape, dtype=torch.double))

    points = ContextSet.from_distribution(
        BurrXII(validate_args=False), 4096, seed=0
    ).points.squeeze(-1)
    distance = stats.kstest(points.numpy(), stats.burr12(2, 20).cdf).statistic
    assert distance < 2e-3


def test_quantile_samples_stay_finite_for_heavy_tails_and_many_draws():
    law = td.Cauchy(0.0, 1.0)
    for seed in range(5):
        assert ContextSet.from_distribution(law, 2**12, seed=seed).dim == 1


def test_a_law_of_vectors_is_not_inverted_coordinate_by_coordinate():
    class Diagonal(td.Distribution):
        """Two coordinates that are always equal."""

        def __init__(self) -> None:
            super().__init__(event_shape=torch.Size([2]), validate_args=False)

        def icdf(self, value: Tensor) -> Tensor:
            return value  # right for each margin, wrong for the pair

        def sample(self, sample_shape=()) -> Tensor:
            return torch.rand(*sample_shape, 1).expand(*sample_shape, 2)

    points = ContextSet.from_distribution(Diagonal(), 64, seed=0).points
    assert torch.equal(points[:, 0], points[:, 1])


def test_a_sobol_coordinate_of_zero_or_almost_one_has_a_finite_quantile(monkeypatch):
    class Extremes:
        """The smallest and the largest value that the engine can return."""

        MAXBIT = 30

        def __init__(self, dim, **kwargs):
            self.dim = dim
            self.shift = torch.zeros(dim, dtype=torch.long)  # the first point

        def draw(self, n, dtype):
            ends = torch.tensor([[0.0], [1.0 - 2.0**-30]], dtype=dtype)
            return ends.expand(n, self.dim).clone()

    monkeypatch.setattr("botorch_drbo.sampling.SobolEngine", Extremes)
    for law in (td.Normal(0.0, 1.0), td.Normal(F64, 1.0), QUANTILE_LAWS[-1]()):
        points = ContextSet.from_distribution(law, 2).points  # checks finiteness itself
        assert (points[1] > points[0]).all()
    density = ContextSet.kernel_density(observations(3, 2).float(), 2, bandwidth=1.0)
    assert (density.points[1] > density.points[0]).all()


def test_discrete_laws_give_double_points_even_when_they_draw_integers():
    law = td.Categorical(torch.tensor([0.25, 0.75]))
    points = ContextSet.from_distribution(law, 512, seed=0).points
    assert points.dtype == torch.double
    assert set(points.flatten().tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("law_dtype", DTYPES)
@pytest.mark.parametrize("bounds_dtype", DTYPES)
def test_dtype_follows_the_bounds_and_else_the_law(law_dtype, bounds_dtype):
    law = td.Normal(torch.zeros(2, dtype=law_dtype), torch.ones(2, dtype=law_dtype))
    bounded = ContextSet.from_distribution(law, 8, box(2).to(bounds_dtype), seed=0)
    assert bounded.points.dtype == bounded.weights.dtype == bounds_dtype
    assert ContextSet.from_distribution(law, 8, seed=0).points.dtype == law_dtype


def test_float32_law_with_float64_bounds_keeps_the_quantiles_of_float64():
    bounds = box(1)
    single = ContextSet.from_distribution(td.Normal(0.5, 0.25), 4096, bounds, seed=0)
    exact = td.Normal(F64[0], F64[0] / 2)
    double = ContextSet.from_distribution(exact, 4096, bounds, seed=0)
    torch.testing.assert_close(single.points, double.points, rtol=1e-12, atol=1e-14)


def test_from_distribution_clips_to_the_bounds():
    law = td.Normal(F64[0], F64[0])
    points = ContextSet.from_distribution(law, 4096, box(1), seed=0).points
    tail = stats.norm.cdf(-1.0)
    assert points.min() == 0.0 and points.max() == 1.0
    assert (points == 0.0).double().mean().item() == pytest.approx(tail, abs=1e-3)
    assert (points == 1.0).double().mean().item() == pytest.approx(tail, abs=1e-3)


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [
        ((stats.norm(), 8), InputDataError, "torch.distributions.Distribution, got"),
        ((td.Normal(0.0, 1.0), 0), InputDataError, "`num_samples`"),
        ((td.Normal(0.0, 1.0), 8, box(2)), BotorchTensorDimensionError, "1 columns"),
        ((td.Normal(0.0, 1.0), 8, box(1, 1.0, 0.0)), InputDataError, "lower bounds"),
        (
            (td.Normal(torch.zeros(2, 2), 1.0), 8),
            BotorchTensorDimensionError,
            r"batch shape \(2, 2\)",
        ),
        (
            (td.LKJCholesky(2), 8),
            BotorchTensorDimensionError,
            r"event shape \(2, 2\)",
        ),
        (
            (td.Independent(td.Normal(torch.zeros(2, 2), 1.0), 1), 8),
            BotorchTensorDimensionError,
            r"batch shape \(2,\) and event shape \(2,\)",
        ),
    ],
)
def test_from_distribution_errors(args, error, text):
    with pytest.raises(error, match=text):
        ContextSet.from_distribution(*args)
