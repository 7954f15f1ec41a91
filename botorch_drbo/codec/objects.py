"""From objects to plain JSON types, and back by running their constructors."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, final

import torch
from botorch.exceptions.errors import BotorchError, InputDataError
from torch import Tensor
from torch.nn import Module

_MOST_DIMENSIONS = 8
_NOT_FINITE = ("nan", "inf", "-inf")


def encode_number(value: float) -> float | str:
    """A number, or the name of one that JSON does not know."""
    return value if math.isfinite(value) else str(float(value))


def decode_number(value: str) -> float:
    """The number of a name."""
    if value not in _NOT_FINITE:
        raise InputDataError(f"{value!r:.80} is no number; {_NOT_FINITE} are.")
    return float(value)


def encode_tensor(tensor: Tensor) -> dict[str, Any]:
    """The numbers of a tensor, nested, and its dtype. The device is not kept."""
    numbers = tensor.detach().tolist()
    if tensor.is_floating_point() and not torch.isfinite(tensor).all():
        numbers = _named(numbers)
    record = {"tensor": numbers, "dtype": str(tensor.dtype).removeprefix("torch.")}
    # Nested lists do not say how long the rows are that are not there.
    return record if tensor.numel() else {**record, "shape": [*tensor.shape]}


def decode_tensor(record: dict[str, Any]) -> Tensor:
    """The tensor of a record, on the CPU."""
    name, numbers = record["dtype"], record["tensor"]
    dtype = getattr(torch, name, None) if isinstance(name, str) else None
    if not isinstance(dtype, torch.dtype):
        raise InputDataError(f"there is no dtype {name!r:.80}.")
    try:
        tensor = torch.tensor(_checked(numbers, dtype is torch.bool), dtype=dtype)
        if tensor.ndim > _MOST_DIMENSIONS:
            raise InputDataError(f"no tensor of ours has {tensor.ndim} dimensions.")
        return tensor.reshape(record["shape"]) if "shape" in record else tensor
    except (InputDataError, RecursionError):
        raise
    except OverflowError as error:
        raise InputDataError(f"a number is too large for {name}.") from error
    except (RuntimeError, TypeError, ValueError) as error:
        raise InputDataError(
            f"the numbers are no tensor, with rows of one length each: {error}."
        ) from error


def _named(numbers: Any) -> Any:
    if isinstance(numbers, list):
        return [_named(entry) for entry in numbers]
    return encode_number(numbers)


def _checked(numbers: Any, flags: bool) -> Any:
    """Nested numbers, those that are not finite as such; nothing but numbers."""
    if isinstance(numbers, list):
        return [_checked(entry, flags) for entry in numbers]
    if isinstance(numbers, str):
        return decode_number(numbers)
    if isinstance(numbers, bool) is not flags or not isinstance(numbers, (int, float)):
        raise InputDataError(f"there should be a number in place of {numbers!r:.80}.")
    return numbers


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
        >>> from botorch_drbo.codec.objects import storable
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


Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""What JSON can hold."""


@final
@storable
@dataclass(frozen=True)
class FunctionName:
    """What is stored of a function: that there was one, and how it was called.

    Args:
        name: Its name.
    """

    name: str


def encode(value: object, name: str = "value") -> Any:
    r"""Describe a value in plain JSON types, exactly.

    Args:
        value: None, a flag, a number, a string, a tensor, an object of a class that is
            :func:`storable`, or a list, tuple or dictionary of such. Non-finite numbers
            are kept; the device of a tensor is not.
        name: The user's name for the value, for the error message.

    Returns:
        Data for :func:`decode`.

    Raises:
        InputDataError: A value of another type, such as a function.

    Example:
        >>> from botorch_drbo.codec import encode
        >>> encode((1, float("inf")))
        [1, {'float': 'inf'}]
        >>> from botorch_drbo.ambiguity import KullbackLeibler
        >>> encode(KullbackLeibler(0.5))["class"]
        'botorch_drbo:KullbackLeibler'
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": encode_number(value)}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Tensor):
        return encode_tensor(value)
    if isinstance(value, (list, tuple)):
        return [encode(entry, f"{name}[{i}]") for i, entry in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        # Not every store of JSON keeps the order of keys.
        return {"mapping": [[k, encode(v, f"{name}[{k}]")] for k, v in value.items()]}
    if is_storable(value):
        return _record(value, name)
    what = "A function" if callable(value) else f"A {type(value).__name__}"
    raise InputDataError(
        f"{what} cannot be saved, got one as `{name}`. Use numbers, strings, tensors "
        "or objects of our own classes, or run without a journal."
    )


def decode(data: object, expected: type[_T], name: str = "value") -> _T:
    r"""The inverse of :func:`encode`.

    Args:
        data: The result of :func:`encode`, also after a round trip through JSON. It
            may be damaged: only constructors of storable classes are called.
        expected: The expected type; ``object`` for any.
        name: A description of the data for the error message.

    Returns:
        An equal value, tensors on the CPU, lists as tuples.

    Raises:
        InputDataError: The data are damaged, or are of another kind.

    Example:
        >>> import torch
        >>> from botorch_drbo.codec import decode, encode
        >>> decode(encode(torch.tensor([0.5, float("nan")])), torch.Tensor)
        tensor([0.5000,    nan])
    """
    with _explained(name):
        value = _decoded(data)
    if not isinstance(value, expected):
        raise InputDataError(
            f"`{name}` should be a {expected.__name__}, got a {type(value).__name__}."
        )
    return value


def decode_arguments(data: object, kind: type, name: str = "value") -> dict[str, Any]:
    """The arguments of a stored object, which is not made."""
    with _explained(name):
        if not isinstance(data, dict):
            raise InputDataError(f"it is no JSON object but a {type(data).__name__}.")
        arguments = data.get("arguments")
        if data.get("class") != tag_of(kind) or not isinstance(arguments, dict):
            raise InputDataError(f"it is no {kind.__name__}.")
        return {k: _decoded(v) for k, v in arguments.items()}


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Add to an error what could not be restored."""
    try:
        yield
    except (BotorchError, RecursionError) as error:
        what = str(error) if isinstance(error, BotorchError) else "it is too deep."
        raise InputDataError(f"`{name}` cannot be restored: {what}") from error


def _record(value: object, name: str) -> dict[str, Any]:
    kind = type(value)
    find(tag := tag_of(kind))  # raises now rather than when it is restored
    arguments = _arguments(value)
    stored = {k: encode(v, f"{name}.{k}") for k, v in arguments.items()}
    record = {"class": tag, "arguments": stored}
    if hasattr(value, "constructor_arguments"):
        return record
    made = make(kind, arguments)
    for key, entry in stored.items():
        if not isinstance(arguments[key], Tensor) and encode(
            getattr(made, key), key
        ) != (entry):
            raise InputDataError(
                f"A {kind.__name__} cannot be saved: its constructor makes another "
                f"`{key}` of its own `{key}`. Keep what was given under that name."
            )
    # The constructor may have rounded, or the object have changed since.
    rounded = _tensors(made)
    exact = {k: v for k, v in _tensors(value).items() if v != rounded.get(k)}
    return {**record, "exact": exact} if exact else record


def _arguments(value: object) -> dict[str, Any]:
    """The arguments of the constructor that make such an object."""
    given = getattr(value, "constructor_arguments", None)
    if given is not None:
        return given()
    names = _parameters(type(value))
    lost = [name for name in names if not hasattr(value, name)]
    if lost:
        raise InputDataError(
            f"A {type(value).__name__} cannot be saved: its constructor takes {lost}, "
            "and it has no attributes of these names. Keep what was given under the "
            "same name, or write a method `constructor_arguments` that returns a "
            "dictionary."
        )
    return {name: getattr(value, name) for name in names}


def _parameters(kind: type) -> list[str]:
    parameters = inspect.signature(kind).parameters.values()
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [p.name for p in parameters if p.kind in named]


def _tensors(value: object) -> dict[str, Any]:
    """The tensors that a module holds, as they are stored."""
    if not isinstance(value, Module):
        return {}
    held = {**value._parameters, **value._buffers}
    return {k: encode_tensor(v) for k, v in held.items() if v is not None}


def _decoded(data: object) -> object:
    if data is None or isinstance(data, (bool, int, float, str)):
        return data
    if isinstance(data, list):
        return tuple(_decoded(entry) for entry in data)
    if not isinstance(data, dict):
        raise InputDataError(f"{type(data).__name__} is no type of JSON.")
    keys = set(data)
    if keys == {"float"} and isinstance(data["float"], str):
        return decode_number(data["float"])
    if keys - {"shape"} == {"tensor", "dtype"}:
        return decode_tensor(data)
    if keys == {"mapping"}:
        return _mapping(data["mapping"])
    if keys - {"exact"} == {"class", "arguments"}:
        return _restored(data["class"], data["arguments"], data.get("exact", {}))
    raise InputDataError(f"nothing is stored with the entries {sorted(keys)!r:.200}.")


def _mapping(pairs: object) -> dict[str, Any]:
    if not isinstance(pairs, list) or not all(
        isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)
        for pair in pairs
    ):
        raise InputDataError("a dictionary should be a list of pairs.")
    return {key: _decoded(value) for key, value in pairs}


def _restored(tag: object, arguments: object, exact: object) -> object:
    kind = find(tag)
    if not isinstance(arguments, dict) or not isinstance(exact, dict):
        raise InputDataError(f"a {tag} should have a dictionary of arguments.")
    unknown = sorted(set(arguments) - set(_parameters(kind)))
    if unknown:
        raise InputDataError(
            f"the constructor of {tag} takes {_parameters(kind)}, not {unknown}."
        )
    values = {name: _decoded(value) for name, value in arguments.items()}
    value = make(kind, values)
    _check_rounded(value, values, tag)
    for name, record in exact.items():
        made, tensor = getattr(value, name, None), _decoded(record)
        if not isinstance(made, Tensor) or not isinstance(tensor, Tensor):
            raise InputDataError(f"{tag} has no tensor {name!r:.80}.")
        if made.shape != tensor.shape:
            raise InputDataError(
                f"`{name}` of {tag} should have shape {tuple(made.shape)}, got "
                f"{tuple(tensor.shape)}."
            )
        _check_close(made, tensor, name, tag)
        setattr(value, name, tensor)
    _check_rounded(value, values, tag)
    return value


def make(kind: Callable[..., _T], arguments: Mapping[str, Any]) -> _T:
    """Run a constructor with what a file says."""
    try:
        return kind(**arguments)
    except (
        ArithmeticError,
        AttributeError,
        BotorchError,
        LookupError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        raise InputDataError(
            f"{tag_of(kind)} refuses its arguments: {error}"
        ) from error


def _check_rounded(value: object, arguments: Mapping[str, Any], tag: object) -> None:
    """Refuse an argument that differs from what the object stores, up to rounding."""
    for name, given in arguments.items():
        kept = getattr(value, name, None)
        if isinstance(given, Tensor) and isinstance(kept, Tensor):
            _check_close(kept, given, name, tag)


def _check_close(kept: Tensor, given: Tensor, name: str, tag: object) -> None:
    """Refuse a tensor of a record that is not what the object makes of it."""
    dtypes = [t.dtype for t in (kept, given) if t.is_floating_point()]
    rounding = max((torch.finfo(dtype).eps for dtype in dtypes), default=0.0)
    slack = 16 * rounding * max(1, kept.numel())
    if kept.shape != given.shape or not torch.allclose(
        kept.double(), given.double(), rtol=slack, atol=0.0, equal_nan=True
    ):
        raise InputDataError(
            f"{tag} makes {kept.tolist()!r:.100} of the {name} "
            f"{given.tolist()!r:.100}: the record is damaged."
        )
