"""Smoothed observations against the moments and the distribution of the mixture."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from scipy import stats

from botorch_drbo.contexts import ContextSet
from botorch_drbo.contexts.sources import BANDWIDTH_FLOOR
from tests.contexts.observed import box, observations


@pytest.mark.parametrize("d", [1, 3])
def test_kernel_density_has_the_moments_of_the_mixture(d):
    observed = observations(6, d)
    bandwidth = torch.linspace(0.05, 0.3, d, dtype=torch.double)
    contexts = ContextSet.kernel_density(observed, 2**14, bandwidth=bandwidth, seed=3)
    data = observed.numpy()
    covariance = np.atleast_2d(np.cov(data.T, ddof=0)) + np.diag(bandwidth.numpy() ** 2)
    samples = contexts.points.numpy()
    np.testing.assert_allclose(samples.mean(0), data.mean(0), atol=5e-4)
    np.testing.assert_allclose(
        np.atleast_2d(np.cov(samples.T)), covariance, atol=0.02 * covariance.max()
    )
    assert contexts.weights.tolist() == [2.0**-14] * 2**14


def test_kernel_density_has_the_distribution_function_of_the_mixture():
    observed, h = observations(5, 1), 0.07
    contexts = ContextSet.kernel_density(observed, 4096, bandwidth=h, seed=0)

    def mixture_cdf(x):
        return stats.norm.cdf((np.asarray(x)[..., None] - observed.numpy().T) / h).mean(
            -1
        )

    distance = stats.kstest(contexts.points.squeeze(-1).numpy(), mixture_cdf).statistic
    assert distance < 5e-3  # random draws would be at about .87 / sqrt(4096) = .014


@pytest.mark.parametrize("d", [1, 2, 4])
def test_default_bandwidth_is_silverman_with_sample_std(d):
    observed = observations(9, d)
    h = (
        (4.0 / (d + 2)) ** (1.0 / (d + 4))
        * observed.numpy().std(0, ddof=1)
        * 9 ** (-1.0 / (d + 4))
    )
    for bounds in (None, box(d)):
        default = ContextSet.kernel_density(observed, 64, bounds, seed=1)
        by_hand = ContextSet.kernel_density(
            observed, 64, bounds, bandwidth=torch.as_tensor(h), seed=1
        )
        torch.testing.assert_close(
            default.points, by_hand.points, rtol=1e-13, atol=1e-14
        )


@pytest.mark.parametrize("d", [1, 3])
def test_default_bandwidth_agrees_with_scipy_silverman(d):
    observed = observations(12, d)
    kde = stats.gaussian_kde(observed.numpy().T, bw_method="silverman")
    h = torch.as_tensor(np.sqrt(np.diag(kde.covariance)))
    torch.testing.assert_close(
        ContextSet.kernel_density(observed, 32, seed=0).points,
        ContextSet.kernel_density(observed, 32, bandwidth=h, seed=0).points,
    )


def test_bandwidth_floor_for_one_observation_and_for_no_spread():
    bounds = torch.tensor([[0.0, -100.0], [1.0, 300.0]], dtype=torch.double)
    floor = BANDWIDTH_FLOOR * (bounds[1] - bounds[0])
    one = torch.tensor([[0.3, 120.0]], dtype=torch.double)
    got = ContextSet.kernel_density(one, 1024, bounds, seed=0)
    torch.testing.assert_close(got.std, floor, rtol=0.02, atol=0.0)
    torch.testing.assert_close(got.mean, one[0], rtol=1e-4, atol=0.0)

    # One column is constant (0.1 has no exact mean: rounding noise), the other is not.
    flat = torch.cat([torch.full((7, 1), 0.1), observations(7, 1)], -1).double()
    got = ContextSet.kernel_density(flat, 1024, bounds, seed=0)
    torch.testing.assert_close(got.std[0], floor[0], rtol=0.02, atol=0.0)


@pytest.mark.parametrize("t", [1, 7])
def test_no_spread_and_no_scale_is_an_error(t):
    flat = torch.cat([observations(t, 1), torch.full((t, 1), 0.1).double()], -1)
    with pytest.raises(InputDataError, match="Pass `bounds` or `bandwidth`"):
        ContextSet.kernel_density(flat, 16)
    assert ContextSet.kernel_density(flat, 16, bandwidth=0.1).num_points == 16


def test_kernel_density_clips_to_the_bounds():
    observed, h = torch.tensor([[0.05], [0.9]], dtype=torch.double), 0.1
    contexts = ContextSet.kernel_density(observed, 4096, box(1), bandwidth=h, seed=0)
    points = contexts.points
    assert points.min() == 0.0 and points.max() == 1.0
    below = stats.norm.cdf((0.0 - observed.numpy()) / h).mean()
    above = stats.norm.sf((1.0 - observed.numpy()) / h).mean()
    assert (points == 0.0).double().mean().item() == pytest.approx(below, abs=3e-3)
    assert (points == 1.0).double().mean().item() == pytest.approx(above, abs=3e-3)


def test_scalar_bandwidth_is_the_same_for_all_dimensions():
    observed = observations(4, 3)
    vector = torch.full((3,), 0.2, dtype=torch.double)
    reference = ContextSet.kernel_density(observed, 16, bandwidth=vector, seed=0)
    for scalar in (0.2, vector[0], vector[:1]):
        got = ContextSet.kernel_density(observed, 16, bandwidth=scalar, seed=0)
        assert torch.equal(got.points, reference.points)


def test_kernel_density_float32_follows_float64():
    observed, bounds = observations(10, 2).float(), box(2)
    single = ContextSet.kernel_density(observed, 2048, bounds, seed=5)
    double = ContextSet.kernel_density(observed.double(), 2048, bounds, seed=5)
    assert single.points.dtype == single.weights.dtype == torch.float32
    torch.testing.assert_close(
        single.points.double(), double.points, rtol=1e-6, atol=1e-6
    )


def test_float32_contexts_on_the_edge_of_float64_bounds_are_inside():
    # 0.7 in float32 is below 0.7 in float64: the comparison is made in float32.
    bounds = torch.tensor([[0.1], [0.7]], dtype=torch.double)
    observed = torch.tensor([[0.1], [0.7]])
    contexts = ContextSet.kernel_density(observed, 64, bounds, seed=0)
    assert contexts.points.max() == observed[1]
    assert ContextSet(observed).normalised(bounds).tolist() == [[0.0], [1.0]]


@pytest.mark.parametrize(
    ("kwargs", "error", "text"),
    [
        ({"num_samples": 0}, InputDataError, "`num_samples` must be an integer of at"),
        ({"num_samples": 2.5}, InputDataError, "`num_samples` must be an integer"),
        ({"num_samples": True}, InputDataError, "`num_samples` must be an integer"),
        ({"bandwidth": 0.0}, InputDataError, "`bandwidth` must be positive"),
        ({"bandwidth": -0.1}, InputDataError, "`bandwidth` must be positive"),
        ({"bandwidth": math.nan}, InputDataError, "NaN or infinite"),
        ({"bandwidth": torch.tensor([1, 1])}, InputDataError, "floating point"),
        ({"bandwidth": torch.tensor([0.1, 0.0])}, InputDataError, "positive"),
        ({"bandwidth": torch.ones(3)}, BotorchTensorDimensionError, "2 entries"),
        ({"bandwidth": torch.ones(1, 2)}, BotorchTensorDimensionError, "2 entries"),
        ({"bounds": box(2, 1.0, 0.0)}, InputDataError, "lower bounds below"),
        ({"bounds": box(2, 0.0, 0.1)}, InputDataError, "outside `bounds`"),
        ({"bounds": box(3)}, BotorchTensorDimensionError, "2 columns"),
        ({"bounds": box(2).long()}, InputDataError, "floating point"),
        ({"observed": box(2).long()}, InputDataError, "`observed` must be a floating"),
        ({"observed": torch.ones(2)}, BotorchTensorDimensionError, "`observed`"),
    ],
)
def test_kernel_density_errors(kwargs, error, text):
    arguments = {"observed": observations(4, 2), "num_samples": 8} | kwargs
    with pytest.raises(error, match=text):
        ContextSet.kernel_density(**arguments)


def test_bounds_that_meet_in_float32_are_an_error():
    bounds = torch.tensor([[1.0], [1.0 + 1e-12]], dtype=torch.double)
    with pytest.raises(InputDataError, match="lower bounds below"):
        ContextSet.kernel_density(torch.ones(2, 1), 8, bounds)
