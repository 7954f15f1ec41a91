"""Columns of tables and of tensors for plots."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from botorch.exceptions.errors import InputDataError
from numpy.typing import NDArray
from torch import Tensor

from botorch_drbo.plotting.style import as_array


class Column(NamedTuple):
    """One column: its name, and numbers or the places of its categories.

    Args:
        name: What the axis is called.
        values: ``n``.
        categories: Their names, by place; None for numbers.
    """

    name: str
    values: NDArray[np.float64]
    categories: list[str] | None


def column_of(table: Any, which: int | str, letter: str, name: str) -> Column:
    r"""One column of a tensor or of a DataFrame.

    Args:
        table: ``n x d``.
        which: Its number, or its name in a DataFrame.
        letter: What a column without a name is called.
        name: What the argument is called, for the errors.

    Raises:
        InputDataError: No tensor and no DataFrame, or no such column.
    """
    if isinstance(table, Tensor):
        d = table.shape[-1] if table.ndim == 2 else 0
        if not isinstance(which, int) or not 0 <= which < d:
            raise InputDataError(
                f"`{name}` is a tensor of shape {tuple(table.shape)}: there is no "
                f"column {which!r}."
            )
        label = letter if d == 1 else f"{letter}{which + 1}"
        return Column(label, as_array(table[:, which]), None)
    if not hasattr(table, "columns"):
        raise InputDataError(
            f"`{name}` must be a tensor or a DataFrame, got {type(table).__name__}."
        )
    names = [str(column) for column in table.columns]
    if isinstance(which, int) and 0 <= which < len(names):
        which = names[which]
    if which not in names:
        raise InputDataError(f"`{name}` has the columns {names}, not {which!r}.")
    values = table[which].to_numpy()
    if np.issubdtype(values.dtype, np.number):
        return Column(which, values.astype(float), None)
    kinds = list(dict.fromkeys(map(str, values)))  # in the order of the table
    return Column(which, np.array([kinds.index(str(v)) for v in values], float), kinds)
