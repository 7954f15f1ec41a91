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

from botorch_drbo.schedules import (
    Constant,
    InverseSquareRoot,
    KernelDensityRadius,
    MMDRadius,
    Schedule,
    WassersteinConfidenceRadius,
    as_schedule,
    register_schedule,
    schedule_from_dict,
)

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
    back = schedule_from_dict(json.loads(json.dumps(schedule.to_dict())))
    assert back == schedule and type(back) is type(schedule)
    assert back(17) == schedule(17)


@given(value=st.floats(0.0, allow_infinity=False))
def test_json_round_trip_is_exact(value):
    schedule = InverseSquareRoot(value)
    back = schedule_from_dict(json.loads(json.dumps(schedule.to_dict())))
    assert back.to_dict()["initial"].hex() == value.hex()


def test_schedules_are_frozen_values():
    schedule: Any = Constant(1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        schedule.value = 2.0
    assert {Constant(1), Constant(1.0)} == {schedule}


def test_numpy_numbers_become_plain_ones():
    five: Any = np.int64(5)
    numbers: list[Any] = [np.int64(2), np.float32(0.5), np.float64(0.1)]
    schedule = WassersteinConfidenceRadius(*numbers)
    assert json.loads(json.dumps(schedule.to_dict())) == {
        "schedule": "WassersteinConfidenceRadius",
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
        (Constant, (math.nan,), "`value` of Constant must be finite"),
        (Constant, (math.inf,), "`value` of Constant must be finite"),
        (Constant, ("1",), "must be a number, got str"),
        (Constant, (True,), "must be a number, got bool"),
        (Constant, (torch.tensor(1.0),), r"Convert a tensor with `.item\(\)`"),
        (InverseSquareRoot, (-1.0,), "`initial` of InverseSquareRoot must not"),
        (KernelDensityRadius, (0,), "`d_c` of KernelDensityRadius must be an int"),
        (KernelDensityRadius, (1.0,), "`d_c` of KernelDensityRadius must be an int"),
        (KernelDensityRadius, (1, -1.0), "`scale` of KernelDensityRadius must"),
        (MMDRadius, (0.0,), "`delta` of MMDRadius must be strictly between"),
        (MMDRadius, (1.0,), "`delta` of MMDRadius must be strictly between"),
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


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ({"schedule": "Linear", "slope": 1.0}, "Unknown schedule 'Linear'"),
        ({"value": 1.0}, "Unknown schedule None"),
        ({"schedule": ["Constant"]}, "Unknown schedule"),
        ({"schedule": "Constant"}, r"needs the entries \['value'\], got \[\]"),
        ({"schedule": "Constant", "value": 1.0, "x": 2}, "needs the entries"),
        ({"schedule": "Constant", "value": -1.0}, "must not be negative"),
    ],
)
def test_bad_records(record, text):
    with pytest.raises(InputDataError, match=text):
        schedule_from_dict(record)


def test_schedule_from_dict_leaves_the_record_alone():
    record = Constant(1.0).to_dict()
    schedule_from_dict(record)
    assert record == {"schedule": "Constant", "value": 1.0}


def make_class(name: str, qualname: str) -> type[Schedule]:
    @dataclasses.dataclass(frozen=True)
    class Mine(Schedule):
        factor: float = 3.0

        def at(self, t: int) -> float:
            return self.factor / t

    Mine.__name__, Mine.__qualname__ = name, qualname
    return Mine


def test_a_schedule_of_the_user_can_be_stored_and_defined_twice():
    register_schedule(make_class("ReciprocalInTest", "ReciprocalInTest"))
    again = register_schedule(make_class("ReciprocalInTest", "ReciprocalInTest"))
    back = schedule_from_dict(again().to_dict())
    assert isinstance(back, again)
    assert back(2) == 1.5


def test_a_name_can_not_be_taken_by_another_class():
    with pytest.raises(InputDataError, match="'Constant' is registered already"):
        register_schedule(make_class("Constant", "Constant"))
    assert schedule_from_dict({"schedule": "Constant", "value": 1.0}) == Constant(1.0)


def test_schedule_is_abstract():
    make: Any = Schedule
    with pytest.raises(TypeError, match="abstract"):
        make()
