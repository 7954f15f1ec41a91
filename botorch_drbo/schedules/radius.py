"""The forms in which a user may state the radius of an ambiguity set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from botorch.exceptions.errors import InputDataError

from botorch_drbo._validation import did_you_mean
from botorch_drbo.problem.column_radii import ColumnRadii, checked
from botorch_drbo.schedules.base import (
    Constant,
    ContextRule,
    Schedule,
    as_rule,
    as_schedule,
)
from botorch_drbo.schedules.spread import SpreadRadius

RADII: dict[str, ContextRule] = {"spread": SpreadRadius(), "sd": Constant(1.0)}
"""Radii by name, of sets that measure how far contexts move.

``"sd"`` is a radius by column, the standard deviation of the contexts seen in each."""

Radius: TypeAlias = ContextRule | float | str | ColumnRadii
"""What the radius of a Wasserstein ball may be."""

# A test compares it with the registry.
TAKE_COLUMNS = ("wdrbo", "wdrbo_exact", "ec_wdrbo", "ts_wdrbo", "ei_wdrbo")
"""The recipes whose radius is a distance between contexts."""


def as_radius(value: Radius, name: str = "radius") -> ContextRule:
    r"""The rule of a radius that is a distance between contexts.

    Args:
        value: A rule or a number, in widths of the context box; a key of ``RADII``; or
            a radius for each column by name. Of a radius by column, ``"sd"`` among
            them, the ball has the radius one.
        name: The user's name for the value, for the error message.

    Returns:
        The rule.

    Raises:
        InputDataError: Anything else.

    Example:
        >>> as_radius("spread")
        SpreadRadius(scale=1.25)
        >>> as_radius({"temp": 6})
        Constant(value=1.0)
    """
    if isinstance(value, Mapping):
        checked(value, name)
        return Constant(1.0)
    if isinstance(value, str):
        if value not in RADII:
            raise InputDataError(
                f"`{name}` must be a number, one of {sorted(RADII)}, or a radius for "
                "each column in its own units, such as {'temp': 6}, got "
                f"{value!r}.{did_you_mean(value, RADII)}"
            )
        return RADII[value]
    return as_rule(value, name)


def as_size(
    value: Schedule | float | str | ColumnRadii, name: str = "radius"
) -> Schedule:
    r"""The schedule of a radius that is no distance between contexts.

    Args:
        value: A number or a schedule.
        name: The user's name for the value, for the error message.

    Returns:
        The schedule.

    Raises:
        InputDataError: Anything else; of a radius by column or by name the message
            says which recipes take it.

    Example:
        >>> as_size(0.2)
        Constant(value=0.2)
    """
    if isinstance(value, (str, Mapping)):
        raise InputDataError(
            f"`{name}` must be a number or a Schedule here, got {value!r}: the radius "
            "of this ambiguity set is no distance between contexts, and has not their "
            "units. Recipes that take a radius by column or by name are "
            f"{', '.join(f'`{recipe}`' for recipe in TAKE_COLUMNS)}; by column also "
            "`dro` with `ambiguity_set=Wasserstein(0.0)`."
        )
    return as_schedule(value, name)
