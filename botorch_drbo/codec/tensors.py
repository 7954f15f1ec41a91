"""Tensors as plain JSON types: their dtype, and every number to the last bit."""

from __future__ import annotations

import math
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

_MOST_DIMENSIONS = 8
_NOT_FINITE = ("nan", "inf", "-inf")


def encode_number(value: float) -> float | str:
    """A number, or the name of one that JSON does not know."""
    return value if math.isfinite(value) else str(float(value))


def decode_number(value: str) -> float:
    """The number of a name."""
    if value not in _NOT_FINITE:
        raise InputDataError(f"{value!r:.80} is no number; {_NOT_FINITE} are.")
    return float(value)


def encode_tensor(tensor: Tensor) -> dict[str, Any]:
    """The numbers of a tensor, nested, and its dtype. The device is not kept."""
    numbers = tensor.detach().tolist()
    if tensor.is_floating_point() and not torch.isfinite(tensor).all():
        numbers = _named(numbers)
    record = {"tensor": numbers, "dtype": str(tensor.dtype).removeprefix("torch.")}
    # Nested lists do not say how long the rows are that are not there.
    return record if tensor.numel() else {**record, "shape": [*tensor.shape]}


def decode_tensor(record: dict[str, Any]) -> Tensor:
    """The tensor of a record, on the CPU."""
    name, numbers = record["dtype"], record["tensor"]
    dtype = getattr(torch, name, None) if isinstance(name, str) else None
    if not isinstance(dtype, torch.dtype):
        raise InputDataError(f"there is no dtype {name!r:.80}.")
    try:
        tensor = torch.tensor(_checked(numbers, dtype is torch.bool), dtype=dtype)
        if tensor.ndim > _MOST_DIMENSIONS:
            raise InputDataError(f"no tensor of ours has {tensor.ndim} dimensions.")
        return tensor.reshape(record["shape"]) if "shape" in record else tensor
    except (InputDataError, RecursionError):
        raise
    except OverflowError as error:
        raise InputDataError(f"a number is too large for {name}.") from error
    except (RuntimeError, TypeError, ValueError) as error:
        raise InputDataError(
            f"the numbers are no tensor, with rows of one length each: {error}."
        ) from error


def _named(numbers: Any) -> Any:
    if isinstance(numbers, list):
        return [_named(entry) for entry in numbers]
    return encode_number(numbers)


def _checked(numbers: Any, flags: bool) -> Any:
    """Nested numbers, those that are not finite as such; nothing but numbers."""
    if isinstance(numbers, list):
        return [_checked(entry, flags) for entry in numbers]
    if isinstance(numbers, str):
        return decode_number(numbers)
    if isinstance(numbers, bool) is not flags or not isinstance(numbers, (int, float)):
        raise InputDataError(f"there should be a number in place of {numbers!r:.80}.")
    return numbers
