"""Input transforms that act on each column by itself."""

from __future__ import annotations

from botorch.models.transforms.input import (
    ChainedInputTransform,
    InputStandardize,
    Log10,
    Normalize,
    NumericToCategoricalEncoding,
    Round,
    Warp,
)
from torch.nn import Module

from botorch_drbo.posterior.known_columns import KnownColumns
from botorch_drbo.posterior.perturbation import AddedPerturbation

_COLUMNWISE = (
    type(None),
    InputStandardize,
    KnownColumns,
    Log10,
    Normalize,
    Warp,
)
# Each column of the result depends on one column alone; there may be more of them.
_APART = (*_COLUMNWISE, NumericToCategoricalEncoding, Round)
_LINEAR = (type(None), AddedPerturbation, InputStandardize, KnownColumns, Normalize)


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


def keeps_differences(transform: Module | None) -> bool:
    r"""Whether two contexts are known to differ by the same for every decision.

    So they do where no column of the result mixes decision and context, and where the
    transform is a linear one: then a stationary kernel between contexts does not depend
    on the decision.

    Args:
        transform: An input transform, or None.

    Returns:
        False also for transforms that this package does not know.
    """
    kinds = _flattened(transform)
    return kinds <= set(_APART) or kinds <= set(_LINEAR)


def _flattened(transform: Module | None) -> set[type]:
    """The classes of all parts of a transform."""
    if type(transform) is ChainedInputTransform:
        return set[type]().union(*map(_flattened, transform.values()))
    return {type(transform)}
