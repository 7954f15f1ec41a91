"""Ambiguity sets as plain JSON types, for journals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor
from torch.nn import Module

from botorch_drbo.ambiguity.base import AmbiguitySet

_DTYPES = {"float32": torch.float32, "float64": torch.float64}


def ambiguity_set_to_dict(ambiguity_set: AmbiguitySet) -> dict[str, Any]:
    r"""Describe a set by its class and its numbers, exactly.

    Args:
        ambiguity_set: A set that is nothing but numbers.

    Returns:
        A dictionary of plain JSON types. The device is not kept.

    Raises:
        InputDataError: A set that holds something else, such as a Python function.

    Example:
        >>> from botorch_drbo.ambiguity import KullbackLeibler
        >>> ambiguity_set_to_dict(KullbackLeibler(0.5))["type"]
        'KullbackLeibler'
    """
    # A Parameter counts as a number too: someone may want gradients in the radius.
    numbers = dict(ambiguity_set._parameters) | dict(ambiguity_set._buffers)
    other = sorted(set(ambiguity_set.__getstate__()) - set(vars(Module())))
    children = dict(ambiguity_set.named_children())
    if other or not all(isinstance(c, AmbiguitySet) for c in children.values()):
        raise InputDataError(
            f"A {type(ambiguity_set).__name__} cannot be saved: it holds {other}, "
            "which are no tensors. Run without a journal, or use a built-in set."
        )
    return {
        "type": type(ambiguity_set).__name__,
        "numbers": {name: _encode(tensor) for name, tensor in numbers.items()},
        "sets": {
            name: ambiguity_set_to_dict(child)
            for name, child in children.items()
            if isinstance(child, AmbiguitySet)
        },
    }


def ambiguity_set_from_dict(data: Mapping[str, Any]) -> AmbiguitySet:
    r"""The inverse of :func:`ambiguity_set_to_dict`.

    Args:
        data: What it returned, also after a trip through JSON.

    Returns:
        An equal set on the CPU.

    Raises:
        InputDataError: An unknown class.

    Example:
        >>> from botorch_drbo.ambiguity import KullbackLeibler
        >>> data = ambiguity_set_to_dict(KullbackLeibler(0.5))
        >>> ambiguity_set_from_dict(data).radius
        tensor(0.5000, dtype=torch.float64)
    """
    kinds = {kind.__name__: kind for kind in _subclasses(AmbiguitySet)}
    if data["type"] not in kinds:
        raise InputDataError(
            f"There is no ambiguity set {data['type']!r}. The choices are "
            f"{sorted(kinds)}; import the module that defines your own first."
        )
    kind = kinds[data["type"]]
    ambiguity_set = kind.__new__(kind)  # its numbers were checked when it was made
    Module.__init__(ambiguity_set)
    for name, number in data["numbers"].items():
        ambiguity_set.register_buffer(name, _decode(number))
    for name, child in data["sets"].items():
        ambiguity_set.add_module(name, ambiguity_set_from_dict(child))
    return ambiguity_set


def _subclasses(kind: type[AmbiguitySet]) -> Iterator[type[AmbiguitySet]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _encode(tensor: Tensor | None) -> dict[str, Any] | None:
    if tensor is None:
        return None
    return {
        "values": tensor.tolist(),
        "dtype": str(tensor.dtype).removeprefix("torch."),
    }


def _decode(number: Mapping[str, Any] | None) -> Tensor | None:
    if number is None:
        return None
    return torch.tensor(number["values"], dtype=_DTYPES[number["dtype"]])
