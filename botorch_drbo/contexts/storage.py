"""Context sets that were stored: the checks of a record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

_DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}


def stored_distribution(data: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    """Read points and weights from a record.

    Args:
        data: What ``ContextSet.to_dict`` returned, also after a trip through JSON.

    Returns:
        The points ``n x d_c`` and the weights ``n``.

    Raises:
        InputDataError: A missing entry, an unknown dtype, entries that are not numbers,
            or weights that do not sum to one.
    """
    missing = {"points", "weights", "dtype"} - set(data)
    if missing:
        raise InputDataError(
            f"A stored context set lacks {sorted(missing)}, got {sorted(data)}. "
            "Only what `ContextSet.to_dict` wrote can be read."
        )
    dtype = _DTYPES.get(str(data["dtype"]))
    if dtype is None:
        raise InputDataError(
            f"A stored context set has dtype {data['dtype']!r}, expected one of "
            f"{sorted(_DTYPES)}."
        )
    try:
        points = torch.tensor(data["points"], dtype=dtype)
        weights = torch.tensor(data["weights"], dtype=dtype)
    except (TypeError, ValueError) as error:
        raise InputDataError(
            f"A stored context set has entries that are not numbers: {error}."
        ) from error
    if (weights.double().sum() - 1.0).abs() > torch.finfo(dtype).eps * len(weights):
        raise InputDataError(
            "The weights of a stored context set must sum to one, got "
            f"{weights.double().sum().item()}. The record is damaged."
        )
    return points, weights
