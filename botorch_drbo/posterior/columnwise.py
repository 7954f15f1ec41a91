"""Input transforms in which each result depends on one column alone."""

from __future__ import annotations

from collections.abc import Sequence

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
_LINEAR = (type(None), AddedPerturbation, InputStandardize, KnownColumns, Normalize)


def column_sources(transform: Module | None, num_columns: int) -> list[int] | None:
    r"""Find which input column each column of the result depends on.

    Args:
        transform: An input transform, or None.
        num_columns: Columns of its inputs, ``d``.

    Returns:
        One input column for each column of the result; a category has several results.
        None where a result may depend on more than one column, and for transforms that
        this package does not know.

    Example:
        >>> from torch.nn.functional import one_hot
        >>> encode = NumericToCategoricalEncoding(3, {1: 2}, {1: one_hot})
        >>> column_sources(encode, 3)
        [0, 1, 1, 2]
    """
    columns = list(range(num_columns))
    if type(transform) is ChainedInputTransform:
        for part in transform.values():
            found = column_sources(part, len(columns))
            if found is None:
                return None
            columns = [columns[source] for source in found]
        return columns
    if type(transform) is NumericToCategoricalEncoding:
        results = dict(
            zip(transform.new_numerical_idx, transform.numerical_idx, strict=True)
        )
        for source, encoded in zip(
            transform.ordinal_idx, transform.encoded_idx, strict=True
        ):
            results |= dict.fromkeys(encoded, source)
        return [results[column] for column in sorted(results)]
    # `Round` may also make a group of columns one-hot; then each depends on all of it.
    if type(transform) in _COLUMNWISE or (
        type(transform) is Round and not transform.categorical_features
    ):
        return columns
    return None


def columns_from(sources: Sequence[int], columns: Sequence[int]) -> list[int]:
    r"""The results that depend on some columns, in the order of these columns.

    Args:
        sources: What ``column_sources`` found.
        columns: Input columns.

    Returns:
        Columns of the result.
    """
    return [
        i for column in columns for i, source in enumerate(sources) if source == column
    ]


def keeps_differences(transform: Module | None, num_columns: int) -> bool:
    r"""Whether two contexts are known to differ by the same for every decision.

    So they do where no column of the result mixes decision and context, and where the
    transform is a linear one: then a stationary kernel between contexts does not depend
    on the decision.

    Args:
        transform: An input transform, or None.
        num_columns: Columns of its inputs.

    Returns:
        False also for transforms that this package does not know.
    """
    apart = column_sources(transform, num_columns) is not None
    return apart or _flattened(transform) <= set(_LINEAR)


def _flattened(transform: Module | None) -> set[type]:
    """The classes of all parts of a transform."""
    if type(transform) is ChainedInputTransform:
        return set[type]().union(*map(_flattened, transform.values()))
    return {type(transform)}
