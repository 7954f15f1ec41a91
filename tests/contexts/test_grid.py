"""Grids and their histograms, against brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from botorch_drbo.contexts import ContextSet
from tests.contexts.observed import DTYPES, box


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
