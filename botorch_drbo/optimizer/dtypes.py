"""In which dtype a value was given, as far as that is coarser than the run's own.

A float32 number is a rounded one: whether it equals a float64 number has to be asked in
float32. So events say in which dtype their values came.
"""

from __future__ import annotations

from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64)
}
_ENTRY = "dtypes"


def dtype_name(tensor: Tensor) -> str:
    """The name of a tensor's dtype in a journal."""
    return str(tensor.dtype).removeprefix("torch.")


def coarser_dtypes(run: Tensor, **values: Tensor) -> dict[str, Any]:
    """The entry of an event with the dtypes that are coarser than the run's, if any."""
    eps = torch.finfo(run.dtype).eps
    names = {
        name: dtype_name(value)
        for name, value in values.items()
        if torch.finfo(value.dtype).eps > eps
    }
    return {_ENTRY: names} if names else {}


def as_dtypes(value: object, name: str = _ENTRY) -> dict[str, str]:
    """The same entry of a stored record, checked."""
    if not isinstance(value, dict) or not all(
        isinstance(dtype, str) and dtype in DTYPES for dtype in value.values()
    ):
        raise InputDataError(f"`{name}` must map names to {sorted(DTYPES)}.")
    return value


def stored_dtype(
    record: dict[str, Any], name: str, default: torch.dtype
) -> torch.dtype:
    """The dtype in which a value of a record was given."""
    names = as_dtypes(record.get(_ENTRY, {}))
    return DTYPES[names[name]] if name in names else default
