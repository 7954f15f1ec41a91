"""Equal, and inside, up to the rounding of the coarser dtype."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import InputDataError

from botorch_drbo._validation import (
    Registry,
    check_choice,
    check_flag,
    check_inside,
    check_level,
    check_nonnegative,
    check_positive,
    counted,
    did_you_mean,
    is_finite_number,
    is_number,
    rounding,
    shown,
)
from botorch_drbo.adversaries import ADVERSARIES, Adversary
from botorch_drbo.policies import POLICIES, Policy
from botorch_drbo.surrogate import SURROGATES
from botorch_drbo.surrogate.base import Surrogate

DTYPES = (torch.float16, torch.float32, torch.float64)
# Neither is a number of any of the dtypes; float32 rounds .1 up and .7 down.
BOUNDS = torch.tensor([[0.1, -0.7], [0.7, -0.1]], dtype=torch.double)


@pytest.mark.parametrize("of_points", DTYPES, ids=str)
@pytest.mark.parametrize("of_bounds", DTYPES, ids=str)
def test_a_bound_is_inside_whatever_both_dtypes(
    of_points: torch.dtype, of_bounds: torch.dtype
) -> None:
    points, bounds = BOUNDS.to(of_points), BOUNDS.to(of_bounds)
    assert check_inside(points, bounds, "points", "bounds") is points


@pytest.mark.parametrize(
    ("dtype", "step"), [(torch.float32, 1e-5), (torch.float64, 1e-8)]
)
def test_what_is_outside_is_outside(dtype: torch.dtype, step: float) -> None:
    points = BOUNDS[1:].to(dtype) + step
    with pytest.raises(InputDataError, match="outside `bounds`"):
        check_inside(points, BOUNDS, "points", "bounds")


def test_rounding_grows_with_the_size_of_the_numbers() -> None:
    box = torch.tensor([[0.0, 1e6], [2.0, 1e6 + 1]], dtype=torch.double)
    fine, coarse = (torch.finfo(t).eps for t in (torch.float64, torch.float32))
    expected = torch.tensor([2e-9, 1e-9], dtype=torch.double)
    torch.testing.assert_close(rounding(box, fine), expected)
    each = rounding(box, torch.tensor([[fine], [coarse]], dtype=torch.double))
    torch.testing.assert_close(each[0], expected)
    assert 1e-7 < each[1, 0] < 2e-6 and 0.06 < each[1, 1] < 1.0


def test_did_you_mean() -> None:
    assert did_you_mean("radios", ["beta", "radius"]) == " Did you mean `radius`?"
    assert did_you_mean("x", ["beta", "radius"]) == ""


@pytest.mark.parametrize("value", [0, -1.5, Fraction(1, 3), np.float32(2.0)])
def test_numbers(value: object) -> None:
    assert is_number(value) and is_finite_number(value)


@pytest.mark.parametrize("value", [True, "1", None, 1j, [1.0], torch.ones(())])
def test_no_numbers(value: object) -> None:
    assert not is_number(value) and not is_finite_number(value)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_infinite_numbers(value: float) -> None:
    assert is_number(value) and not is_finite_number(value)


@pytest.mark.parametrize("check", [check_positive, check_nonnegative, check_level])
@pytest.mark.parametrize(
    "value",
    [10**400, Fraction(10**400, 3), "1", True, None],
    ids=lambda v: type(v).__name__,
)
def test_what_is_no_number_of_float64_is_refused_in_words(
    check: Callable[[Any, str], object], value: object
) -> None:
    with pytest.raises(
        InputDataError, match=r"^`scale` must be a.* number.*, got"
    ) as e:
        check(value, "scale")
    assert len(str(e.value)) < 300


def test_what_float64_rounds_to_zero_is_no_level_and_not_positive() -> None:
    for check in (check_positive, check_level):
        with pytest.raises(InputDataError, match="`scale`"):
            check(Fraction(1, 10**400), "scale")


@pytest.mark.parametrize("value", [Fraction(1, 2), np.float32(0.5), 0.5])
def test_real_numbers_of_any_kind_are_taken(value: Any) -> None:
    assert check_positive(value, "a") == check_level(value) == 0.5
    assert check_nonnegative(value, "a").item() == 0.5


def test_a_choice_is_one_of_a_list() -> None:
    check_choice("rbf", "kernel", ("matern", "rbf"))
    wrong = r"`kernel` must be one of \['matern', 'rbf'\], got 'matren'. Did you mean"
    with pytest.raises(InputDataError, match=wrong):
        check_choice("matren", "kernel", ("matern", "rbf"))
    with pytest.raises(InputDataError, match=r"got 3\.$"):
        check_choice(3, "kernel", ("matern", "rbf"))


def test_a_flag_is_true_or_false() -> None:
    check_flag(False, "maximize")
    with pytest.raises(InputDataError, match="`maximize` must be True or False, got 0"):
        check_flag(0, "maximize")


@pytest.mark.parametrize(
    ("known", "kind"),
    [(POLICIES, Policy), (ADVERSARIES, Adversary), (SURROGATES, Surrogate)],
)
def test_what_is_no_object_of_the_class_is_not_registered(
    known: Registry[Any], kind: type
) -> None:
    before, some = dict(known), type(next(iter(known.values())))
    for register in (
        lambda entry: known.__setitem__("x", entry),
        lambda entry: known.update(x=entry),
        lambda entry: known.setdefault("x", entry),
        lambda entry: known.__ior__({"x": entry}),
    ):
        with pytest.raises(InputDataError, match=f"The class {some.__name__}.*object"):
            register(some)
        with pytest.raises(
            InputDataError, match=f"subclass of {kind.__name__}, got a func"
        ):
            register(lambda: None)
    with pytest.raises(InputDataError, match="by a string, got 3"):
        known[3] = next(iter(known.values()))
    assert dict(known) == before


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (3000.0, 3, "3000"),
        (999.9, 3, "1000"),  # not 1e+03
        (999.4, 3, "999"),
        (9999.7, 4, "10000"),
        (-0.452449, 3, "-0.452"),
        (2.5e-9, 4, "2.5e-09"),
        (1e16, 4, "1e+16"),
        (12, 4, "12"),
        ("red", 4, "red"),
    ],
)
def test_a_number_has_all_digits_before_its_point(
    value: object, digits: int, text: str
) -> None:
    assert shown(value, digits) == text
    if isinstance(value, float) and value > 0:
        assert shown(value, digits, sign=True) == f"+{text}"


def test_one_of_a_kind_is_singular() -> None:
    assert [counted(n, "well") for n in (0, 1, 2)] == ["0 wells", "1 well", "2 wells"]
    assert counted(1.0, "deviation") == "1 deviation"
    assert counted(0.5, "deviation") == "0.5 deviations"
