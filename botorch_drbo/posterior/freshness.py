"""What a cache was made of, to find out whether it has changed since."""

from __future__ import annotations

import operator

import numpy as np
import torch
from botorch.models.model import Model
from torch import Tensor
from torch.nn import Module

from botorch_drbo import _device


class Snapshot:
    """Every tensor that some modules hold, as it was.

    These are all parameters and buffers, and the tensors that a part keeps as a plain
    attribute, as a likelihood keeps given noise. What models keep as plain attributes
    is training data, and is not among them.

    On the CPU values are compared: changes made through ``.data``, as GPyTorch's
    ``initialize`` makes them, show too. On a GPU that would wait for the device; there
    versions are compared, which such changes leave as they are.

    Args:
        modules: The modules.
    """

    def __init__(self, *modules: Module) -> None:
        parts = [part for module in modules for part in module.modules()]
        # Where everything is looked up: to go through these dictionaries is faster
        # than through the modules, by far.
        self._members = [
            (members, tuple(members.values()))
            for part in parts
            for members in (part._parameters, part._buffers, part._modules)
            if members
        ]
        self._attributes = [
            (part.__dict__, name, value)
            for part in parts
            if not isinstance(part, Model)
            for name, value in part.__dict__.items()
            if isinstance(value, Tensor)
        ]
        held = [member for _, members in self._members for member in members]
        held += [value for _, _, value in self._attributes]
        self._tensors = [member for member in held if isinstance(member, Tensor)]
        # Arrays share memory with their tensors, and are read faster.
        self._arrays = [_array(t) for t in self._tensors if _device.on_cpu(t)]
        self._others = [t for t in self._tensors if not _device.on_cpu(t)]
        self._state = self._read()

    def same(self) -> bool:
        """Whether the modules hold what they held."""
        for members, known in self._members:
            if len(members) != len(known):
                return False
            held = tuple(members.values())
            if not all(map(operator.is_, held, known)) and not all(
                map(_is_still, held, known)
            ):
                return False
        for attributes, name, value in self._attributes:
            if not _is_still(attributes.get(name), value):
                return False
        return self._state == self._read()

    def _read(self) -> tuple[list[int], list[bytes], list[int]]:
        """Where the tensors lie; values on the CPU; versions elsewhere."""
        return (
            [tensor.data_ptr() for tensor in self._tensors],
            [array.tobytes() for array in self._arrays],
            [_version(tensor) for tensor in self._others],
        )


def _is_still(held: object, known: object) -> bool:
    """Whether it is the same object, or a tensor on the same memory.

    Input transforms put a new tensor on the memory of the old one at each call.
    """
    if held is known:
        return True
    if not (isinstance(held, Tensor) and isinstance(known, Tensor)):
        return False
    return held.dtype == known.dtype and held.is_set_to(known)


def _version(tensor: Tensor) -> int:
    """How often a tensor was changed; -1 where that is not counted."""
    return -1 if tensor.is_inference() else tensor._version


def _array(tensor: Tensor) -> np.ndarray:
    tensor = tensor.detach()
    # NumPy does not know bfloat16, but any type of that size has the same bytes.
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.view(torch.int16)
    return tensor.numpy()
