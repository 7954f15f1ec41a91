"""The class itself, against numpy, brute force and cases worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from hypothesis import given, settings
from hypothesis import strategies as st

from botorch_drbo.contexts import ContextSet
from tests.contexts.observed import DTYPES, box, observations


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


@pytest.mark.parametrize("dtype", DTYPES)
def test_empirical_keeps_order_and_duplicates(dtype):
    observed = torch.tensor([[0.3], [0.1], [0.3], [0.3]], dtype=dtype)
    contexts = ContextSet.empirical(observed)
    assert torch.equal(contexts.points, observed)
    assert contexts.weights.tolist() == [0.25] * 4


def test_empirical_names_its_argument():
    with pytest.raises(InputDataError, match="`observed` has 1 NaN"):
        ContextSet.empirical(torch.tensor([[0.1], [math.nan]]))


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
