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

from botorch_drbo.codec import decode, encode
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
    back = decode(json.loads(json.dumps(encode(contexts))), ContextSet)
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
        back = decode(encode(contexts), ContextSet)
        assert torch.equal(back.weights, contexts.weights)
        assert "weights" in back.state_dict()  # still a buffer
    assert moved > 0  # else this test would prove nothing


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float16, torch.bfloat16])
def test_many_atoms_survive_the_sum_check(dtype):
    contexts = ContextSet(observations(3000, 1).to(dtype))
    back = decode(json.loads(json.dumps(encode(contexts))), ContextSet)
    assert torch.equal(back.points, contexts.points)
    assert torch.equal(back.weights, contexts.weights)


PLAIN = {"points": [[0.0], [1.0]], "weights": [0.5, 0.5], "dtype": "float32"}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"dtype": "int64"}, "refuses its arguments"),
        ({"dtype": ["float64"]}, "no dtype"),
        ({"dtype": "load"}, "no dtype 'load'"),
        ({"weights": [0.5, 0.6]}, "damaged"),
        ({"weights": [1.5, -0.5]}, "not be negative"),
        ({"points": [["a"], ["b"]]}, "'a' is no number"),
        ({"points": [[0.1], [0.2, 0.3]]}, "rows of one length"),
        ({"points": [[0.1], [None]]}, "None"),
        ({"points": [[True], [False]]}, "True"),
        ({"points": [[10**400], [0.0]]}, "too large"),
    ],
)
def test_damaged_records(change, text):
    stored = PLAIN | change
    record = encode(ContextSet(torch.tensor([[0.0], [1.0]])))
    for name in ("points", "weights"):
        record["arguments"][name] = {"tensor": stored[name], "dtype": stored["dtype"]}
    with pytest.raises(InputDataError, match=text):
        decode(record, ContextSet, "forecast")


def test_weights_of_a_record_sum_to_one_also_where_they_are_exact():
    weights = {"tensor": [0.5, 0.6], "dtype": "float32"}
    record = encode(ContextSet(torch.tensor([[0.0], [1.0]])))
    with pytest.raises(InputDataError, match="damaged"):
        decode(record | {"exact": {"weights": weights}}, ContextSet)
    record["arguments"]["weights"] = weights
    with pytest.raises(InputDataError, match="damaged"):
        decode(record | {"exact": {"weights": weights}}, ContextSet)


def test_record_with_a_missing_entry():
    record = encode(ContextSet(torch.zeros(1, 1)))
    del record["arguments"]["points"]
    with pytest.raises(InputDataError, match=r"missing 1 required.*'points'"):
        decode(record, ContextSet)
