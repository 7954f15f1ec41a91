"""Checks of the fields of frozen dataclasses, which become plain numbers.

A field declares its check beside it: ``scale: float = field(metadata=NONNEGATIVE)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral

from botorch.exceptions.errors import InputDataError

from botorch_drbo._validation import is_number

_REMEDY = "Convert a tensor with `.item()`."


def finite_number(value: object, label: str, remedy: str = _REMEDY) -> float:
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


def nonnegative_number(value: object, label: str, remedy: str = _REMEDY) -> float:
    """The same for a number that is not negative."""
    number = finite_number(value, label, remedy)
    if number < 0.0:
        raise InputDataError(f"{label} must not be negative, got {number}.")
    return number


def _probability(value: object, label: str) -> float:
    number = finite_number(value, label)
    if not 0.0 < number < 1.0:
        raise InputDataError(f"{label} must be strictly between 0 and 1, got {number}.")
    return number


def _dimension(value: object, label: str) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise InputDataError(
            f"{label} must be an integer of at least 1, got {value!r}."
        )
    return int(value)


_Check = Callable[[object, str], float]
NONNEGATIVE: dict[str, _Check] = {"check": nonnegative_number}
PROBABILITY: dict[str, _Check] = {"check": _probability}
DIMENSION: dict[str, _Check] = {"check": _dimension}
