"""Input transforms that act on each column by itself."""

from __future__ import annotations

from botorch.models.transforms.input import (
    ChainedInputTransform,
    InputStandardize,
    Log10,
    Normalize,
    Warp,
)
from torch.nn import Module

from botorch_drbo.posterior.known_columns import KnownColumns

_COLUMNWISE = (
    type(None),
    InputStandardize,
    KnownColumns,
    Log10,
    Normalize,
    Warp,
)


def is_columnwise(transform: Module | None) -> bool:
    r"""Whether each column is known to be transformed by itself.

    Args:
        transform: An input transform, or None.

    Returns:
        False also for transforms that this package does not know.
    """
    if type(transform) is ChainedInputTransform:
        return all(is_columnwise(part) for part in transform.values())
    return type(transform) in _COLUMNWISE
