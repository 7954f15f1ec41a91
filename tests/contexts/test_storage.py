"""Context sets as JSON: exact to the bit, and damage is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from botorch_drbo.contexts import ContextSet
from tests.contexts.observed import DTYPES, observations


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
    record = ContextSet(torch.zeros(1, 1)).to_dict()
    del record["weights"]
    with pytest.raises(InputDataError, match=r"lacks \['weights'\]"):
        ContextSet.from_dict(record)
