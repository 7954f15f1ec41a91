"""What every schedule is: a value, plain numbers, JSON, a name of its own."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from hypothesis import given
from hypothesis import strategies as st

from botorch_drbo.codec import decode, encode
from botorch_drbo.schedules import (
    Constant,
    InverseSquareRoot,
    KernelDensityRadius,
    MMDRadius,
    Schedule,
    WassersteinConfidenceRadius,
)
from botorch_drbo.schedules.radii import as_schedule

SCHEDULES = [
    Constant(2.25),
    Constant(0.0),
    InverseSquareRoot(0.3),
    KernelDensityRadius(3),
    KernelDensityRadius(1, scale=0.1),
    MMDRadius(),
    MMDRadius(delta=0.037),
    WassersteinConfidenceRadius(2, math.sqrt(2.0)),
    WassersteinConfidenceRadius(1, 0.7, 0.05, uniform=True),
    WassersteinConfidenceRadius(4, 2.0, 0.05, uniform=True),
]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_values_are_plain_floats_that_never_grow(schedule):
    values = [schedule(t) for t in [1, 2, 3, 5, 10, 50, 100, 1000, 10**6]]
    assert all(type(value) is float and value >= 0.0 for value in values)
    assert all(later <= earlier for earlier, later in itertools.pairwise(values))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_json_round_trip(schedule):
    back = decode(json.loads(json.dumps(encode(schedule))), Schedule)
    assert back == schedule and type(back) is type(schedule)
    assert back(17) == schedule(17)


@given(value=st.floats(0.0, allow_infinity=False))
def test_json_round_trip_is_exact(value):
    schedule = InverseSquareRoot(value)
    back = decode(json.loads(json.dumps(encode(schedule))), Schedule)
    assert encode(back)["arguments"]["initial"].hex() == value.hex()


def test_schedules_are_frozen_values():
    schedule: Any = Constant(1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        schedule.value = 2.0
    assert {Constant(1), Constant(1.0)} == {schedule}


def test_numpy_numbers_become_plain_ones():
    five: Any = np.int64(5)
    numbers: list[Any] = [np.int64(2), np.float32(0.5), np.float64(0.1)]
    schedule = WassersteinConfidenceRadius(*numbers)
    assert json.loads(json.dumps(encode(schedule)["arguments"])) == {
        "d_c": 2,
        "diameter": 0.5,
        "delta": 0.1,
        "uniform": False,
    }
    assert schedule(five) == schedule(5)


@pytest.mark.parametrize("t", [0, -1, 1.5, 2.0, True, None, "3", math.nan])
def test_steps_are_integers_of_at_least_one(t):
    with pytest.raises(InputDataError, match="`t` must be an integer of at least 1"):
        InverseSquareRoot(0.3)(t)


@pytest.mark.parametrize(
    ("schedule_class", "fields", "text"),
    [
        (Constant, (-0.1,), "`value` of Constant must not be negative"),
        (Constant, (math.nan,), "`value` of Constant must be a finite number"),
        (Constant, (math.inf,), "`value` of Constant must be a finite number"),
        (Constant, ("1",), "must be a number, got str"),
        (Constant, (True,), "must be a number, got bool"),
        (Constant, (torch.tensor(1.0),), r"Convert a tensor with `.item\(\)`"),
        (InverseSquareRoot, (-1.0,), "`initial` of InverseSquareRoot must not"),
        (KernelDensityRadius, (0,), "`d_c` of KernelDensityRadius must be an int"),
        (KernelDensityRadius, (1.0,), "`d_c` of KernelDensityRadius must be an int"),
        (KernelDensityRadius, (1, -1.0), "`scale` of KernelDensityRadius must"),
        (MMDRadius, (0.0,), "`delta` of MMDRadius must be a number between"),
        (MMDRadius, (1.0,), "`delta` of MMDRadius must be a number between"),
        (WassersteinConfidenceRadius, (0, 1.0), "`d_c` of Wasserstein"),
        (WassersteinConfidenceRadius, (1, -1.0), "`diameter` of Wasserstein"),
        (WassersteinConfidenceRadius, (1, 1.0, 2.0), "`delta` of Wasserstein"),
        (WassersteinConfidenceRadius, (1, 1.0, 0.1, 1), "`uniform` must be True or"),
    ],
)
def test_bad_fields(schedule_class, fields, text):
    with pytest.raises(InputDataError, match=text):
        schedule_class(*fields)


def test_as_schedule():
    text: Any = "wdrbo"
    schedule = MMDRadius()
    assert as_schedule(schedule) is schedule
    assert as_schedule(2) == Constant(2.0)
    assert as_schedule(np.float64(2.5)) == Constant(2.5)
    with pytest.raises(InputDataError, match="must be a number, got str"):
        as_schedule(text)


def test_schedule_is_abstract():
    make: Any = Schedule
    with pytest.raises(TypeError, match="abstract"):
        make()
