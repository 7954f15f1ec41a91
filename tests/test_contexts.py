"""Context sets against numpy, scipy, brute force and closed-form moments."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from torch import Tensor
from torch import distributions as td

from botorch_drbo.contexts import ContextSet
from botorch_drbo.contexts.kernel_density import BANDWIDTH_FLOOR

DTYPES = (torch.float64, torch.float32)


def observations(t: int, d: int, seed: int = 0) -> Tensor:
    """Contexts in the unit cube that have a different spread in each column."""
    rng = np.random.default_rng(seed)
    return torch.as_tensor(0.5 + (rng.random((t, d)) - 0.5) / np.arange(1, d + 1))


def box(d: int, lower: float = 0.0, upper: float = 1.0) -> Tensor:
    return torch.tensor([[lower] * d, [upper] * d], dtype=torch.double)


# ------------------------------------------------------------------ the class itself


@pytest.mark.parametrize("dtype", DTYPES)
def test_weights_are_scaled_and_take_the_dtype_of_the_points(dtype):
    points = torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 8.0]], dtype=dtype)
    contexts = ContextSet(points, torch.tensor([2.0, 0.0, 6.0], dtype=torch.double))
    assert contexts.weights.dtype == contexts.points.dtype == dtype
    assert contexts.weights.tolist() == [0.25, 0.0, 0.75]
    assert (contexts.num_points, contexts.dim) == (3, 2)


def test_no_weights_means_equal_weights():
    contexts = ContextSet(observations(4, 2))
    assert contexts.weights.tolist() == [0.25] * 4


def test_buffers_are_detached_copies():
    points = observations(3, 1).requires_grad_()
    weights = torch.ones(3, dtype=torch.double, requires_grad=True)
    contexts = ContextSet(points, weights)
    with torch.no_grad():
        points.zero_()
    assert contexts.points.min() > 0.0
    assert not contexts.points.requires_grad and not contexts.weights.requires_grad
    assert set(contexts.state_dict()) == {"points", "weights"}
    assert list(contexts.parameters()) == []


def test_to_moves_both_buffers():
    contexts = ContextSet(observations(3, 1)).to(torch.float32)
    assert contexts.points.dtype == contexts.weights.dtype == torch.float32


@pytest.mark.parametrize("dtype", DTYPES)
def test_mean_and_std_against_numpy(dtype):
    points, weights = observations(7, 3), observations(7, 1, seed=1).squeeze(-1)
    contexts = ContextSet(points.to(dtype), weights.to(dtype))
    mean = np.average(points.numpy(), axis=0, weights=weights.numpy())
    variance = np.average((points.numpy() - mean) ** 2, axis=0, weights=weights.numpy())
    rtol = 1e-12 if dtype == torch.float64 else 1e-5
    np.testing.assert_allclose(contexts.mean.numpy(), mean, rtol=rtol)
    np.testing.assert_allclose(contexts.std.numpy(), np.sqrt(variance), rtol=rtol)


@pytest.mark.parametrize(
    ("points", "weights", "error", "text"),
    [
        ([[0.5]], None, InputDataError, "must be a torch.Tensor, got list"),
        (torch.tensor([[1]]), None, InputDataError, "floating point"),
        (torch.tensor([[math.nan]]), None, InputDataError, "NaN or infinite"),
        (torch.ones(3), None, BotorchTensorDimensionError, "`n x d` tensor"),
        (torch.ones(0, 2), None, BotorchTensorDimensionError, "at least one row"),
        (torch.ones(2, 2, 2), None, BotorchTensorDimensionError, "`n x d` tensor"),
        (torch.ones(2, 1), torch.tensor([1, 1]), InputDataError, "floating point"),
        (
            torch.ones(2, 1),
            torch.tensor([1.0, -0.1]),
            InputDataError,
            "not be negative",
        ),
        (torch.ones(2, 1), torch.zeros(2), InputDataError, "positive sum"),
        (torch.ones(2, 1), torch.tensor([1.0, math.nan]), InputDataError, "NaN"),
        (torch.ones(2, 1), torch.ones(3), BotorchTensorDimensionError, "2 entries"),
        (torch.ones(2, 1), torch.ones(5, 2), BotorchTensorDimensionError, "one-dimens"),
        (
            torch.ones(2, 1),
            torch.tensor(1.0),
            BotorchTensorDimensionError,
            "one-dimens",
        ),
    ],
)
def test_bad_points_and_weights(points, weights, error, text):
    with pytest.raises(error, match=text):
        ContextSet(points, weights)


# ------------------------------------------------------------------------- empirical


@pytest.mark.parametrize("dtype", DTYPES)
def test_empirical_keeps_order_and_duplicates(dtype):
    observed = torch.tensor([[0.3], [0.1], [0.3], [0.3]], dtype=dtype)
    contexts = ContextSet.empirical(observed)
    assert torch.equal(contexts.points, observed)
    assert contexts.weights.tolist() == [0.25] * 4


def test_empirical_names_its_argument():
    with pytest.raises(InputDataError, match="`observed` has 1 NaN"):
        ContextSet.empirical(torch.tensor([[0.1], [math.nan]]))


# -------------------------------------------------------------------- kernel density


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


# ------------------------------------------------------------------------------ grid


def test_grid_is_the_product_in_lexicographic_order():
    bounds = torch.tensor([[0.0, -1.0, 2.0], [1.0, 1.0, 4.0]], dtype=torch.double)
    contexts = ContextSet.grid(bounds, (3, 2, 1))
    expected = list(itertools.product([0.0, 0.5, 1.0], [-1.0, 1.0], [3.0]))
    assert contexts.points.tolist() == [list(row) for row in expected]
    assert torch.equal(contexts.weights, torch.full((6,), 1 / 6, dtype=torch.double))


def test_grid_with_one_number_is_not_the_diagonal():
    contexts = ContextSet.grid(box(2), 10)
    assert contexts.num_points == 100
    assert contexts.points.unique(dim=0).shape == (100, 2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_grid_reaches_both_bounds_exactly(dtype):
    bounds = torch.tensor([[0.1, -32.768], [0.7, 32.768]], dtype=dtype)
    points = ContextSet.grid(bounds, 7).points
    assert points.dtype == dtype
    assert torch.equal(points.amin(0), bounds[0])
    assert torch.equal(points.amax(0), bounds[1])


@settings(max_examples=40, deadline=None)
@given(data=st.data(), d=st.integers(1, 3), float32=st.booleans())
def test_grid_weights_are_the_brute_force_histogram(data, d, float32):
    dtype = torch.float32 if float32 else torch.float64
    counts = data.draw(st.lists(st.integers(1, 5), min_size=d, max_size=d))
    lower = data.draw(st.floats(-100.0, 100.0))
    bounds = box(d, lower, lower + data.draw(st.floats(0.5, 50.0))).to(dtype)
    unit = data.draw(
        hnp.arrays(
            np.float64, (data.draw(st.integers(1, 12)), d), elements=st.floats(0.0, 1.0)
        )
    )
    observed = torch.lerp(bounds[0], bounds[1], torch.as_tensor(unit).to(dtype))
    contexts = ContextSet.grid(bounds, counts, observed)
    distances = torch.cdist(observed.double(), contexts.points.double())  # t x n
    # The histogram may take either side of a tie: compare what was paid in distance,
    # and the atoms wherever the nearest is the only one.
    best = distances.min(-1).values
    slack = 1e-5 * (bounds[1] - bounds[0]).double().max()
    unique = (distances <= best.unsqueeze(-1) + slack).sum(-1) == 1
    sure = torch.bincount(distances.argmin(-1)[unique], minlength=contexts.num_points)
    mass = contexts.weights.double() * len(observed)
    assert contexts.weights.sum().item() == pytest.approx(1.0, abs=1e-6)
    assert (mass >= sure - 1e-4).all()
    reachable = (distances <= best.unsqueeze(-1) + slack).any(0)
    assert (mass[~reachable] == 0.0).all()


def test_grid_ties_go_to_the_lower_coordinate():
    observed = torch.tensor([[0.25], [0.75]], dtype=torch.double)
    assert ContextSet.grid(box(1), 3, observed).weights.tolist() == [0.5, 0.5, 0.0]


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [
        ((box(2), 0), InputDataError, "`num_points` must be an integer of at least 1"),
        ((box(2), (2, -1)), InputDataError, "`num_points` must be an integer"),
        ((box(2), 3.0), InputDataError, "`num_points` must be an integer"),
        ((box(2), (2, 2, 2)), BotorchTensorDimensionError, "2 entries"),
        ((box(2, 1.0, 1.0), 3), InputDataError, "lower bounds below"),
        ((torch.zeros(3, 2), 3), BotorchTensorDimensionError, "`2 x d` tensor"),
        ((box(2), 3, torch.ones(4, 3)), BotorchTensorDimensionError, "2 columns"),
        ((box(2), 3, torch.ones(4, 2) * 1.1), InputDataError, "outside `bounds`"),
        ((box(2), 3, torch.full((4, 2), math.nan)), InputDataError, "`observed` has 8"),
        (
            (box(2), 3, torch.ones(4, 2).int()),
            InputDataError,
            "`observed` must be a fl",
        ),
    ],
)
def test_grid_errors(args, error, text):
    with pytest.raises(error, match=text):
        ContextSet.grid(*args)


# ----------------------------------------------------------------- from_distribution

F64 = torch.tensor([0.5, -1.0, 3.0], dtype=torch.double)
SCALE = torch.tensor([0.2, 1.0, 0.1], dtype=torch.double)
COVARIANCE = torch.tensor([[1.0, 0.6], [0.6, 0.5]], dtype=torch.double)

QUANTILE_LAWS: list[Callable[[], td.Distribution]] = [
    lambda: td.Normal(F64[0], SCALE[0]),
    lambda: td.Normal(F64, SCALE),
    lambda: td.Independent(td.Normal(F64, SCALE), 1),
    lambda: td.Uniform(F64, F64 + SCALE),
    lambda: td.Laplace(F64[:1], SCALE[:1]),
    lambda: td.Gumbel(F64[0], SCALE[0]),
    lambda: td.LogNormal(F64[0], SCALE[0]),
    lambda: td.MultivariateNormal(F64[:2], COVARIANCE),
]
SAMPLED_LAWS: list[Callable[[], td.Distribution]] = [
    lambda: td.Gamma(torch.tensor(2.0).double(), torch.tensor(4.0).double()),
    lambda: td.Independent(td.Beta(F64[[0, 2]], F64[[2, 0]]), 1),
    lambda: td.Dirichlet(torch.tensor([1.0, 2.0, 3.0], dtype=torch.double)),
    lambda: td.LowRankMultivariateNormal(F64[:2], F64[:2, None], SCALE[:2]),
    lambda: td.MixtureSameFamily(
        td.Categorical(torch.tensor([0.5, 0.5], dtype=torch.double)),
        td.Normal(F64[:2], SCALE[:2]),
    ),
]


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


# ---------------------------------------------------------------------- seeds

SEEDED: list[Callable[[int | None], ContextSet]] = [
    lambda seed: ContextSet.kernel_density(observations(5, 2), 32, seed=seed),
    lambda seed: ContextSet.from_distribution(QUANTILE_LAWS[1](), 32, seed=seed),
    lambda seed: ContextSet.from_distribution(QUANTILE_LAWS[-1](), 32, seed=seed),
    lambda seed: ContextSet.from_distribution(SAMPLED_LAWS[0](), 32, seed=seed),
    lambda seed: ContextSet.from_distribution(SAMPLED_LAWS[2](), 32, seed=seed),
]


@pytest.mark.parametrize("make", SEEDED)
def test_a_seed_reproduces_exactly_and_leaves_the_global_generator_alone(make):
    torch.manual_seed(11)
    state = torch.get_rng_state()
    first = make(7)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(3)
    assert torch.equal(make(7).points, first.points)
    assert not torch.equal(make(8).points, first.points)


@pytest.mark.parametrize("make", SEEDED)
def test_without_a_seed_the_global_generator_decides(make):
    torch.manual_seed(11)
    first, second = make(None), make(None)
    assert not torch.equal(first.points, second.points)
    torch.manual_seed(11)
    assert torch.equal(make(None).points, first.points)


def test_the_global_generator_is_restored_when_sampling_fails():
    class Broken(td.Distribution):
        def sample(self, sample_shape=()) -> Tensor:
            torch.rand(1)
            raise RuntimeError("no sample today")

    torch.manual_seed(11)
    state = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="no sample today"):
        ContextSet.from_distribution(Broken(validate_args=False), 4, seed=0)
    assert torch.equal(torch.get_rng_state(), state)


# ------------------------------------------------------------------------------ fixed


@pytest.mark.parametrize("shape", [(2,), (1, 2)])
def test_fixed_is_a_point_mass(shape):
    contexts = ContextSet.fixed(torch.tensor([0.3, 0.7]).reshape(shape))
    assert torch.equal(contexts.points, torch.tensor([[0.3, 0.7]]))
    assert contexts.weights.tolist() == [1.0]
    assert contexts.std.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("shape", [(), (2, 1), (0,), (1, 0), (1, 1, 1)])
def test_fixed_refuses_anything_but_one_context(shape):
    with pytest.raises(BotorchTensorDimensionError, match="must be one context"):
        ContextSet.fixed(torch.ones(shape))


def test_fixed_refuses_nan_and_integers():
    with pytest.raises(InputDataError, match="`context` has 1 NaN"):
        ContextSet.fixed(torch.tensor([math.nan]))
    with pytest.raises(InputDataError, match="floating point"):
        ContextSet.fixed(torch.tensor([1]))


# -------------------------------------------------------------------- representatives


def atoms(weights: list[float]) -> ContextSet:
    """Atoms 0, 1, 2, ... on a line."""
    points = torch.arange(len(weights), dtype=torch.double).unsqueeze(-1)
    return ContextSet(points, torch.tensor(weights, dtype=torch.double))


@pytest.mark.parametrize(
    ("weights", "num", "expected"),
    [
        ([1, 1, 1, 1, 1, 1], 3, [0, 2, 4]),  # levels 1/6, 3/6, 5/6 meet the sums
        ([1, 1, 1, 1], 1, [1]),  # level 1/2: the cumulative sum of atom 1
        ([1, 1, 1, 1, 1], 1, [2]),  # the median
        ([0.1, 0.7, 0.1, 0.1], 2, [1]),  # 1/4 and 3/4 in one atom: once; see below
        ([0.1, 0.6, 0.2, 0.1], 3, [1, 2]),  # levels 1/6, 1/2, 5/6
        ([1, 1, 1], 3, [0, 1, 2]),
        ([1, 1, 1], 10, [0, 1, 2]),
        ([0, 1, 0, 1], 4, [1, 3]),
        ([0, 1e-9, 0, 1, 0], 2, [1, 3]),  # two atoms with mass, two allowed: both
        ([1, 0, 0, 1, 1, 0], 2, [0, 4]),
    ],
)
def test_representatives_on_small_cases(weights, num, expected):
    got = atoms(weights).representatives(num)
    assert got.squeeze(-1).tolist() == expected


@settings(max_examples=60, deadline=None)
@given(
    weights=st.lists(st.integers(0, 50), min_size=1, max_size=30).filter(any),
    num=st.integers(1, 35),
)
def test_representatives_stand_for_the_weights(weights, num):
    got = atoms([float(w) for w in weights]).representatives(num).squeeze(-1).tolist()
    assert 1 <= len(got) <= num
    assert got == sorted(set(got))
    assert all(weights[int(i)] > 0 for i in got)
    # An atom with more than 1 / num of the mass is always among them.
    assert {i for i, w in enumerate(weights) if w * num > 1.001 * sum(weights)} <= set(
        map(int, got)
    )


def test_representatives_of_many_atoms_keep_the_mean():
    contexts = ContextSet.kernel_density(observations(20, 1), 2**14, seed=0)
    ordered = ContextSet(contexts.points.sort(0).values)
    got = ordered.representatives(64)
    assert got.shape == (64, 1)
    torch.testing.assert_close(got.mean(0), ordered.mean, rtol=0.0, atol=2e-3)


@pytest.mark.parametrize("num", [0, -1, 1.5])
def test_representatives_needs_a_positive_integer(num):
    with pytest.raises(InputDataError, match="`num` must be an integer of at least 1"):
        atoms([1.0, 1.0]).representatives(num)


# ------------------------------------------------------------------------- normalised


def test_normalised_against_numpy():
    points = observations(5, 2) * torch.tensor([30000.0, 4.0]) + torch.tensor([0, 2.5])
    bounds = torch.tensor([[0.0, 2.5], [30000.0, 6.5]], dtype=torch.double)
    lower, upper = bounds.numpy()
    np.testing.assert_allclose(
        ContextSet(points.double()).normalised(bounds).numpy(),
        (points.numpy() - lower) / (upper - lower),
        rtol=1e-14,
    )


def test_normalised_refuses_atoms_outside():
    contexts = ContextSet(torch.tensor([[0.5], [1.2]]))
    with pytest.raises(InputDataError, match=r"`points` has rows outside .*rows \[1\]"):
        contexts.normalised(box(1))
    with pytest.raises(BotorchTensorDimensionError, match="1 columns"):
        contexts.normalised(box(2))


# ---------------------------------------------------------------------------- storage


@settings(max_examples=60, deadline=None)
@given(data=st.data(), float32=st.booleans())
def test_json_round_trip_is_exact(data, float32):
    width, dtype = (32, torch.float32) if float32 else (64, torch.float64)
    numpy_dtype = np.float32 if float32 else np.float64
    n, d = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 3))
    finite = st.floats(allow_nan=False, allow_infinity=False, width=width)
    positive = st.floats(0.125, 8.0, width=width)
    contexts = ContextSet(
        torch.as_tensor(data.draw(hnp.arrays(numpy_dtype, (n, d), elements=finite))),
        torch.as_tensor(data.draw(hnp.arrays(numpy_dtype, n, elements=positive))),
    )
    back = ContextSet.from_dict(json.loads(json.dumps(contexts.to_dict())))
    integers = torch.int32 if float32 else torch.int64
    for got, want in ((back.points, contexts.points), (back.weights, contexts.weights)):
        assert got.dtype == dtype
        assert torch.equal(got.view(integers), want.view(integers))  # bits, -0.0 too


def test_round_trip_keeps_weights_that_a_second_scaling_would_move():
    generator = torch.Generator().manual_seed(0)
    moved = 0
    for _ in range(50):
        weights = torch.rand(37, generator=generator, dtype=torch.double)
        contexts = ContextSet(torch.zeros(37, 1, dtype=torch.double), weights)
        moved += not torch.equal(
            ContextSet(contexts.points, contexts.weights).weights, contexts.weights
        )
        back = ContextSet.from_dict(contexts.to_dict())
        assert torch.equal(back.weights, contexts.weights)
        assert "weights" in back.state_dict()  # still a buffer
    assert moved > 0  # else this test would prove nothing


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float16, torch.bfloat16])
def test_many_atoms_survive_the_sum_check(dtype):
    contexts = ContextSet(observations(3000, 1).to(dtype))
    back = ContextSet.from_dict(json.loads(json.dumps(contexts.to_dict())))
    assert torch.equal(back.points, contexts.points)
    assert torch.equal(back.weights, contexts.weights)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"dtype": "int64"}, "dtype 'int64'"),
        ({"dtype": ["float64"]}, "dtype"),
        ({"weights": [0.5, 0.6]}, "must sum to one"),
        ({"weights": [1.5, -0.5]}, "not be negative"),
        ({"points": [["a"], ["b"]]}, "not numbers"),
        ({"points": [[0.1], [0.2, 0.3]]}, "not numbers"),
        ({"points": [[0.1], [None]]}, "not numbers"),
    ],
)
def test_damaged_records(change, text):
    record = ContextSet(torch.tensor([[0.0], [1.0]])).to_dict() | change
    with pytest.raises(InputDataError, match=text):
        ContextSet.from_dict(record)


def test_record_with_a_missing_entry():
    record = atoms([1.0]).to_dict()
    del record["weights"]
    with pytest.raises(InputDataError, match=r"lacks \['weights'\]"):
        ContextSet.from_dict(record)
