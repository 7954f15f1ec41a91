"""Checks of the fields of frozen dataclasses, which become plain numbers."""

from __future__ import annotations

import math
from numbers import Integral

from botorch.exceptions.errors import InputDataError

from botorch_drbo._validation import is_number

_REMEDY = "Convert a tensor with `.item()`."


def finite_number(value: object, label: str, remedy: str) -> float:
    """A plain finite float, so that JSON can write it.

    Args:
        value: What the user gave.
        label: What the user calls it, to open the error message.
        remedy: What to do about another type, to end the message.
    """
    if not is_number(value):
        raise InputDataError(
            f"{label} must be a number, got {type(value).__name__} {value!r}. {remedy}"
        )
    if not math.isfinite(value):
        raise InputDataError(f"{label} must be finite, got {value!r}.")
    return float(value)


def nonnegative_number(value: object, label: str, remedy: str) -> float:
    """The same for a number that is not negative."""
    number = finite_number(value, label, remedy)
    if number < 0.0:
        raise InputDataError(f"{label} must not be negative, got {number}.")
    return number


def set_nonnegative(owner: object, name: str) -> None:
    """Turn a field into a plain finite number, if it is not negative."""
    number = nonnegative_number(getattr(owner, name), _label(owner, name), _REMEDY)
    object.__setattr__(owner, name, number)  # the dataclass is frozen


def set_probability(owner: object, name: str) -> None:
    """Turn a field into a plain number, if it is strictly between 0 and 1."""
    number = finite_number(getattr(owner, name), _label(owner, name), _REMEDY)
    if not 0.0 < number < 1.0:
        raise InputDataError(
            f"{_label(owner, name)} must be strictly between 0 and 1, got {number}."
        )
    object.__setattr__(owner, name, number)


def set_dimension(owner: object, name: str) -> None:
    """Check that a field is an integer of at least one."""
    value = getattr(owner, name)
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise InputDataError(
            f"{_label(owner, name)} must be an integer of at least 1, got {value!r}."
        )
    object.__setattr__(owner, name, int(value))


def _label(owner: object, name: str) -> str:
    return f"`{name}` of {type(owner).__name__}"
