"""The names by which records know classes, and which classes those may be."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from botorch.exceptions.errors import InputDataError

_T = TypeVar("_T")
_OWN = __name__.partition(".")[0]
_BASES: list[type] = []
_REGISTERED: dict[str, type] = {}


def storable(base: type[_T]) -> type[_T]:
    """Let a class and all classes below it be stored; a class decorator."""
    _BASES.append(base)
    return base


def tag_of(kind: Callable[..., object]) -> str:
    """The name of a class in a record."""
    module = _OWN if kind.__module__.partition(".")[0] == _OWN else kind.__module__
    return f"{module}:{kind.__qualname__}"


def register(kind: type[_T]) -> type[_T]:
    r"""Class decorator: register a class that cannot be imported by its name.

    Args:
        kind: A subclass of a :func:`storable` class. If the same class is defined
            again, it replaces the first one.

    Returns:
        The same class.

    Raises:
        InputDataError: It is not a subclass of a storable class, or another class has
            the name.

    Example:
        >>> from dataclasses import dataclass
        >>> from botorch_drbo.codec import decode, encode, register
        >>> from botorch_drbo.codec.tags import storable
        >>> @storable
        ... class Shape:
        ...     pass
        >>> def make() -> type[Shape]:
        ...     @register
        ...     @dataclass
        ...     class Circle(Shape):
        ...         radius: float
        ...
        ...     return Circle
        >>> decode(encode(make()(2.0)), Shape).radius
        2.0
    """
    if not issubclass(kind, tuple(_BASES)):
        raise InputDataError(
            f"{kind.__name__} cannot be registered: it is no {_names(_BASES)}."
        )
    tag = tag_of(kind)
    for other in [*_with_tag(tag), *filter(None, [_REGISTERED.get(tag)])]:
        if _location(other) != _location(kind):
            raise InputDataError(
                f"Another class is stored as {tag!r} already: "
                f"{other.__module__}.{other.__qualname__}. Choose another name."
            )
    _REGISTERED[tag] = kind
    return kind


def is_storable(value: object) -> bool:
    """Whether this is an object of a class that may be stored."""
    return isinstance(value, tuple(_BASES))


def find(tag: object) -> type:
    """The class of a record."""
    if not isinstance(tag, str):
        raise InputDataError(f"the name of a class must be a string, got {tag!r:.80}.")
    if tag in _REGISTERED:
        return _REGISTERED[tag]
    return _only(_with_tag(tag), tag)


def _only(found: Sequence[type], tag: str) -> type:
    locations = sorted(f"{kind.__module__}.{kind.__qualname__}" for kind in found)
    if len(found) > 1:
        raise InputDataError(
            f"more than one class is stored as {tag!r}: {', '.join(locations)}. "
            "Give all but one another name."
        )
    if not found:
        raise InputDataError(
            f"there is no class {tag!r} that can be stored and restored. Import the "
            "module that defines it before you restore a run. It has to stand at the "
            f"top level of that module and to be a {_names(_BASES)}; "
            "`botorch_drbo.codec.register` makes known what stands elsewhere."
        )
    return found[0]


def _with_tag(tag: str) -> list[type]:
    named = {kind for kind in _kinds() if tag_of(kind) == tag}
    return [kind for kind in named if _is_importable(kind)]


def _kinds() -> Iterator[type]:
    """Every class that may be stored and that this process has imported."""
    waiting = [*_BASES]
    while waiting:
        kind = waiting.pop()
        yield kind
        waiting.extend(kind.__subclasses__())


def _is_importable(kind: type) -> bool:
    """Whether its module and name lead to this class, not to a later definition."""
    found: object = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is kind


def _location(kind: type) -> tuple[str, str]:
    return kind.__module__, kind.__qualname__


def _names(kinds: Iterable[type]) -> str:
    return " or ".join(sorted(kind.__name__ for kind in kinds))
