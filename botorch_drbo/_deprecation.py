"""Old names: where each leads to now, and the warning that says so."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from importlib import import_module


def renamed_name(module: str, name: str, renamed: Mapping[str, str]) -> object:
    r"""What an old name of a module stands for; the body of its ``__getattr__``.

    Args:
        module: The module that had the name, its ``__name__``.
        name: What was asked for.
        renamed: By the old name ``module:name`` of the new one.

    Returns:
        The object under its new name.

    Raises:
        AttributeError: The module never had the name, or it has no successor.

    Warns:
        DeprecationWarning: Always, with the new name.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     renamed_name("shapes", "Ratio", {"Ratio": "fractions:Fraction"})
        <class 'fractions.Fraction'>
        >>> print(caught[0].message)
        `shapes.Ratio` is deprecated: use `fractions.Fraction`.
    """
    if name not in renamed:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    home, _, new = renamed[name].partition(":")
    _warn(f"{module}.{name}", f"{home}.{new}", depth=2)
    return getattr(import_module(home), new)


def moved_name(package: str, name: str, homes: Mapping[str, str]) -> object:
    r"""A name that a package had and one of its modules has; see ``renamed_name``.

    Args:
        package: The package, its ``__name__``.
        name: What was asked for.
        homes: The modules by name.

    Returns:
        The object.

    Raises:
        AttributeError: The package never had the name.

    Warns:
        DeprecationWarning: Always, with the module.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     moved_name("shapes", "Fraction", {"Fraction": "fractions"})
        <class 'fractions.Fraction'>
        >>> print(caught[0].message)
        `shapes.Fraction` is deprecated: use `fractions.Fraction`.
    """
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    _warn(f"{package}.{name}", f"{homes[name]}.{name}", depth=2)
    return getattr(import_module(homes[name]), name)


def renamed_attribute(old: str, new: str) -> property:
    r"""An attribute under its old name, to be read only.

    Args:
        old: The old name.
        new: The new one, in the same class.

    Returns:
        A property that warns and reads the new one.

    Example:
        >>> class Ball:
        ...     radius = 2.0
        ...     size = renamed_attribute("size", "radius")
        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     Ball().size
        2.0
        >>> print(caught[0].message)
        `Ball.size` is deprecated: use `Ball.radius`.
    """

    def read(self: object) -> object:
        owner = type(self).__name__
        _warn(f"{owner}.{old}", f"{owner}.{new}", depth=1)
        return getattr(self, new)

    return property(read, doc=f"The old name of ``{new}``.")


def _warn(old: str, new: str, *, depth: int) -> None:
    """Warn at the line that reads the name, so many calls above the caller."""
    message = f"`{old}` is deprecated: use `{new}`."
    warnings.warn(message, DeprecationWarning, stacklevel=2 + depth)
