"""Conversion between the user's tables and the model's tensors."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo._validation import did_you_mean
from botorch_drbo.space.variables import (
    Category,
    Integer,
    Variable,
    finite_numbers,
)

if TYPE_CHECKING:
    import pandas as pd


def to_tensor(
    table: Any,
    variables: Mapping[str, Variable],
    name: str,
    *,
    partly: bool = False,
) -> Tensor:
    """Encode rows in the user's units.

    Shapes: returns ``m x d``.
    """
    columns = as_columns(table, variables, name, partly=partly)
    rows = row_names(table)
    num = max(map(len, columns.values()), default=0)
    encoded = torch.full((num, len(variables)), torch.nan, dtype=torch.double)
    for j, (key, variable) in enumerate(variables.items()):
        column = columns.get(key, [])
        filled = [i for i, v in enumerate(column) if not _is_missing(v)]
        if len(filled) < len(column) and not partly:
            i = next(i for i, v in enumerate(column) if _is_missing(v))
            raise InputDataError(
                f"{cell(name, rows, i, key)} is empty. Fill it in, or leave out the "
                "row."
            )

        encoded[filled, j] = variable.encode(
            [column[i] for i in filled],
            lambda i, key=key, filled=filled: cell(name, rows, filled[i], key),
        )
    return encoded


def as_columns(
    table: Any,
    variables: Mapping[str, Variable],
    name: str,
    *,
    partly: bool = False,
) -> dict[str, list[Any]]:
    """The columns of a table as lists of one length, in the user's units."""
    if isinstance(table, Tensor):
        return _tensor_columns(table, variables, name)
    if isinstance(table, Mapping):
        unknown = [key for key in table if key not in variables]
        if unknown:
            raise InputDataError(
                f"`{name}` has no column `{unknown[0]}`."
                f"{did_you_mean(str(unknown[0]), variables)} Its columns are "
                f"{list(variables)}."
            )
        given: dict[str, Any] = dict(table)
    elif hasattr(table, "columns") and hasattr(table, "loc"):  # a DataFrame
        given = {key: table[key] for key in variables if key in table.columns}
    else:
        raise InputDataError(
            f"`{name}` must be a DataFrame, a dictionary of columns or a tensor, got "
            f"{type(table).__name__}."
        )
    if partly and not given:
        raise InputDataError(
            f"`{name}` names no context. Give at least one of {list(variables)}."
        )
    missing = [key for key in variables if key not in given]
    if missing and not partly:
        raise InputDataError(
            f"`{name}` has no column `{missing[0]}`, which the problem has. It needs "
            f"{list(variables)}."
        )
    columns = {key: _as_list(value) for key, value in given.items()}
    lengths = {key: len(column) for key, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise BotorchTensorDimensionError(
            f"`{name}` must have columns of one length, got {lengths}."
        )
    return columns


def to_frame(X: Tensor, variables: Mapping[str, Variable]) -> pd.DataFrame:
    """Decode a model's rows.

    Shapes: ``X``: ``m x d``.
    """
    import pandas as pd

    return pd.DataFrame(
        {
            key: pd.Series(variable.decode(X[:, j]), dtype=_dtype(variable, X[:, j]))
            for j, (key, variable) in enumerate(variables.items())
        }
    )


def to_outcomes(y: Any, outcome: str, name: str = "y") -> Tensor | None:
    """Outcomes as a tensor of numbers, ``m``."""
    if y is None or isinstance(y, Tensor):
        return y
    if isinstance(y, Mapping) or hasattr(y, "columns"):
        if outcome not in y:
            raise InputDataError(
                f"`{name}` has no column `{outcome}`, got {[str(key) for key in y]}."
            )
        y = y[outcome]
    rows = row_names(y)
    return finite_numbers(_as_list(y), lambda i: cell(name, rows, i, outcome))


def weight_column(names: Iterable[object], contexts: Collection[str]) -> str | None:
    """The column called ``weight``, in any case, that is no context; None without."""
    found = [
        name
        for name in names
        if isinstance(name, str)
        and name.strip().lower() == "weight"
        and name not in contexts
    ]
    if len(found) > 1:
        raise InputDataError(
            f"Both {found[0]!r} and {found[1]!r} are columns of weights. Leave one."
        )
    return found[0] if found else None


def with_weights(table: Any, column: str, name: str) -> tuple[Any, Tensor]:
    """Take a column of weights out of a table."""
    named = isinstance(table, Mapping) or hasattr(table, "columns")
    if not named or column not in table:
        raise InputDataError(f"`{name}` has no column `{column}` with weights.")
    rows = row_names(table)
    weights = finite_numbers(
        _as_list(table[column]), lambda i: cell(name, rows, i, column)
    )
    if (weights < 0).any() or not weights.any():
        raise InputDataError(
            f"`{name}`, column `{column}`: weights must not be negative, and not all "
            f"zero, got {weights.tolist()[:6]}."
        )
    if isinstance(table, Mapping):
        table = {key: value for key, value in table.items() if key != column}
    return table, weights / weights.sum()


def row_names(table: Any) -> Sequence[str] | None:
    """The rows of a DataFrame or a Series by their labels; None for what has none."""
    index = getattr(table, "index", None)
    if index is None or callable(index):
        return None
    what = index.name if isinstance(index.name, str) else "row"
    return [f"{what} {label}" for label in index]


def cell(name: str, rows: Sequence[str] | None, i: int, key: str) -> str:
    """The place of a value, for error messages."""
    row = f"row {i}" if rows is None else rows[i]
    return f"`{name}`, {row}, column `{key}`:"


def _dtype(variable: Variable, numbers: Tensor) -> str:
    if isinstance(variable, Category):
        return "object"
    whole = isinstance(variable, Integer) and not numbers.isnan().any()
    return "int64" if whole else "float64"


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _as_list(column: Any) -> list[Any]:
    """The values of a column; one value is a column of one row."""
    if isinstance(column, (str, bytes)) or not hasattr(column, "__iter__"):
        return [column]
    if isinstance(column, Tensor):
        return column.reshape(-1).tolist()
    if hasattr(column, "notna"):  # pandas' own markers of what is missing become None
        column = column.astype(object).where(column.notna(), None)
    if hasattr(column, "tolist"):  # pandas, NumPy: their scalars become Python's
        # A masked one becomes None, and a date stays one: `item` makes numbers of both.
        kind = getattr(column.dtype, "kind", "")
        found = column.astype(str).tolist() if kind in "mM" else column.tolist()
        return found if column.ndim else [found]
    return list(column)


def _tensor_columns(
    table: Tensor, variables: Mapping[str, Variable], name: str
) -> dict[str, list[Any]]:
    rows = table.unsqueeze(0) if table.ndim == 1 else table
    if rows.ndim != 2 or rows.shape[-1] != len(variables):
        raise BotorchTensorDimensionError(
            f"`{name}` must have {len(variables)} columns, {list(variables)}, got "
            f"shape {tuple(table.shape)}."
        )
    columns: dict[str, list[Any]] = {}
    for j, (key, variable) in enumerate(variables.items()):
        column: list[Any] = rows[:, j].tolist()
        if isinstance(variable, Category):
            for i, index in enumerate(column):
                if index not in variable.values and not _is_missing(index):
                    raise InputDataError(
                        f"`{name}`, row {i}, column `{key}`: a tensor holds the index "
                        f"of a category, 0 to {len(variable.choices) - 1}, got {index}."
                    )
            column = [
                None if _is_missing(index) else variable.choices[int(index)]
                for index in column
            ]
        columns[key] = column
    return columns
