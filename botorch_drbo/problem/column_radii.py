"""A radius by column, in units of the contexts: six degrees, a tenth of the days."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo._validation import did_you_mean, is_number
from botorch_drbo.problem.search_space import SearchSpace

ColumnRadii: TypeAlias = Mapping[str, float]
"""For names of context columns how far all mass may move in that column alone."""


def checked(radii: ColumnRadii, name: str = "radius") -> dict[str, float]:
    r"""A dictionary of plain numbers that are not negative.

    Args:
        radii: What the user gave.
        name: What the user calls it.

    Returns:
        A copy.

    Raises:
        InputDataError: It is empty, a name is no string, or a radius is no number.

    Example:
        >>> checked({"temp": 6})
        {'temp': 6.0}
    """
    if not radii:
        raise InputDataError(
            f"`{name}` is an empty dictionary. Name a column of the contexts, such as "
            "{'temp': 6}, or give one number."
        )
    found = {}
    for column, value in radii.items():
        if not isinstance(column, str):
            raise InputDataError(
                f"`{name}` must have names of context columns as keys, got {column!r}."
            )
        if not is_number(value):
            raise InputDataError(
                f"`{name}` of `{column}` must be a number, got "
                f"{type(value).__name__} {value!r}."
            )
        if not 0.0 <= float(value) < math.inf:
            raise InputDataError(
                f"`{name}` of `{column}` must be finite and not negative, got {value}."
            )
        found[column] = float(value)
    return found


def in_widths(radii: ColumnRadii, space: SearchSpace, name: str = "radius") -> Tensor:
    r"""The radius of each column in widths of its bounds.

    Of a category it is the share of the mass that may change it; of a logarithmic
    variable, whose radius is a factor, the logarithm. A column that is not named has
    the radius zero.

    Args:
        radii: By name.
        space: The contexts.
        name: What the user calls it.

    Returns:
        Radii, ``d_c``.

    Raises:
        InputDataError: An unknown column, a share above one, a factor below one.

    Example:
        >>> box = torch.tensor([[0.0, 0.0], [40.0, 1.0]])
        >>> space = SearchSpace(box[:, :1], box, context_names=("temp", "rain"))
        >>> in_widths({"temp": 6}, space)
        tensor([0.1500, 0.0000])
    """
    columns = space.context_columns
    widths = space.context_bounds[1] - space.context_bounds[0]
    found = torch.zeros_like(widths)
    for column, value in checked(radii, name).items():
        if column not in columns:
            raise InputDataError(
                f"`{name}` names `{column}`, which is not a context. The "
                f"contexts are {list(columns)}.{did_you_mean(column, columns)}"
            )
        j = columns.index(column)
        if j in space.context_categories:
            if value > 1.0:
                raise InputDataError(
                    f"`{name}` of `{column}` must be at most 1, got {value:g}: for a "
                    "category it is the share of cases in which it may change, 0.1 "
                    "for a tenth."
                )
            found[j] = value
        elif j in space.context_logarithms:
            if value < 1.0:
                raise InputDataError(
                    f"`{name}` of `{column}` must be at least 1, got {value:g}: for a "
                    "logarithmic variable it is a factor, 1.2 for a fifth more."
                )
            found[j] = math.log(value) / widths[j]
        else:
            found[j] = value / widths[j]
    return found


def in_words(widths: Sequence[float], space: SearchSpace) -> str:
    r"""How far the mass may move in each column alone, in the units of the contexts.

    Args:
        widths: The radius of each column in widths of its bounds, ``d_c``.
        space: The contexts.

    Returns:
        A part of a sentence; columns that may not move or are known are left out.

    Example:
        >>> box = torch.tensor([[0.0, 0.0], [40.0, 1.0]])
        >>> space = SearchSpace(box[:, :1], box, context_names=("temp", "rain"))
        >>> in_words([0.15, 0.0], space)
        '6 of temp'
    """
    sides = (space.context_bounds[1] - space.context_bounds[0]).tolist()
    parts = []
    for j, column in enumerate(space.context_columns):
        if widths[j] == 0.0 or j in space.known_columns:
            continue
        if j in space.context_categories:
            share = 100.0 * min(widths[j], 1.0)
            parts.append(f"another {column} in {share:.3g}% of cases")
        elif j in space.context_logarithms:
            parts.append(f"a factor {math.exp(widths[j] * sides[j]):.3g} of {column}")
        else:
            parts.append(f"{widths[j] * sides[j]:.3g} of {column}")
    return " or ".join(parts) if parts else "0 of every column"
