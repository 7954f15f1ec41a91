"""Old names, their successors, and the deprecation warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
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


def moved_names(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    r"""The ``__getattr__`` of a package for names that one of its modules has now.

    Args:
        package: The package, its ``__name__``.
        homes: By name, the module that has it.

    Returns:
        A function from a name to its object. It warns with a ``DeprecationWarning``
        that names the module, and raises an ``AttributeError`` if the package never had
        the name.

    Example:
        >>> import warnings
        >>> find = moved_names("shapes", {"Fraction": "fractions"})
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     find("Fraction")
        <class 'fractions.Fraction'>
        >>> print(caught[0].message)
        `shapes.Fraction` is deprecated: use `fractions.Fraction`.
    """

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        _warn(f"{package}.{name}", f"{homes[name]}.{name}", depth=1)
        return getattr(import_module(homes[name]), name)

    return find


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
    """Warn at the user's line that reads the name."""
    message = f"`{old}` is deprecated: use `{new}`."
    warnings.warn(message, DeprecationWarning, stacklevel=2 + depth)
