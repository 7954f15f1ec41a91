"""Checks of the fields of frozen dataclasses, which become plain numbers."""

from __future__ import annotations

import math
from numbers import Integral, Real

from botorch.exceptions.errors import InputDataError


def set_number(owner: object, name: str) -> float:
    """Turn a field into a plain finite float, so that JSON can write it."""
    value = getattr(owner, name)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputDataError(
            f"`{name}` of {type(owner).__name__} must be a number, got "
            f"{type(value).__name__} {value!r}. Convert a tensor with `.item()`."
        )
    if not math.isfinite(value):
        raise InputDataError(
            f"`{name}` of {type(owner).__name__} must be finite, got {value!r}."
        )
    number = float(value)
    object.__setattr__(owner, name, number)  # the dataclass is frozen
    return number


def set_nonnegative(owner: object, name: str) -> None:
    """Check that a field is a finite number that is not negative."""
    number = set_number(owner, name)
    if number < 0.0:
        raise InputDataError(
            f"`{name}` of {type(owner).__name__} must not be negative, got {number}."
        )


def set_probability(owner: object, name: str) -> None:
    """Check that a field is strictly between 0 and 1."""
    number = set_number(owner, name)
    if not 0.0 < number < 1.0:
        raise InputDataError(
            f"`{name}` of {type(owner).__name__} must be strictly between 0 and 1, "
            f"got {number}."
        )


def set_dimension(owner: object, name: str) -> None:
    """Check that a field is an integer of at least one."""
    value = getattr(owner, name)
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise InputDataError(
            f"`{name}` of {type(owner).__name__} must be an integer of at least 1, "
            f"got {value!r}."
        )
    object.__setattr__(owner, name, int(value))
