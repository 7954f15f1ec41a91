"""The tensors on which a cache depends, and whether they have changed."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from botorch.models.model import Model
from gpytorch.models import ExactGP
from torch import Tensor
from torch.nn import Module

from botorch_drbo import _device

_UNSEEN = -2  # no version of a tensor


class Snapshot:
    """Every tensor that some modules hold, as it was.

    These are all parameters and buffers, the tensors that a part keeps as a plain
    attribute, as a likelihood keeps given noise, and training data (``TrainingData``).

    On the CPU values are compared: changes made through ``.data``, as GPyTorch's
    ``initialize`` makes them, show too. On a GPU that would wait for the device; there
    versions are compared, which such changes leave as they are.
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
        self._device_tensors = [t for t in self._tensors if not _device.on_cpu(t)]
        self._state = self._read()
        self._data = TrainingData(*modules)

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
        return self._state == self._read() and self._data.same()

    def _read(self) -> tuple[list[int], list[bytes], list[int]]:
        """Where the tensors lie; values on the CPU; versions elsewhere."""
        return (
            [tensor.data_ptr() for tensor in self._tensors],
            [array.tobytes() for array in self._arrays],
            [_version(tensor) for tensor in self._device_tensors],
        )


class TrainingData:
    """The training data of the Gaussian processes in some modules, as they were.

    Data are known by their values, so that those of a copy or on another device are the
    same. A BoTorch model with an input transform holds transformed inputs in evaluation
    mode and the user's own in training mode: a change of the mode is none of the data.
    On a GPU values are compared only where the tensor or its version is another one.
    """

    def __init__(self, *modules: Module) -> None:
        self._models = [
            part
            for module in modules
            for part in module.modules()
            if isinstance(part, ExactGP)
        ]
        self._known = [
            {
                _are_transformed(model): [_Content(held) for held in _data(model)],
                # What a change of the mode brings back.
                False: [_Content(held) for held in _data(model, original=True)],
            }
            for model in self._models
        ]

    def same(self) -> bool:
        """Whether the models hold the data that they held."""
        for model, known in zip(self._models, self._known, strict=True):
            held, contents = _data(model), known.get(_are_transformed(model), [])
            if len(held) != len(contents):
                return False
            if not all(map(_Content.is_in, contents, held)):
                return False
        return True


class _Content:
    """The values of a tensor, and where they were seen last."""

    def __init__(self, tensor: Tensor) -> None:
        self._shape, self._dtype = tensor.shape, tensor.dtype
        self._values = _bytes(tensor)
        self._look_at(tensor)

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles look at a tensor of their own."""
        return {**self.__dict__, "_tensor": None, "_array": None}

    def _look_at(self, tensor: Tensor) -> None:
        self._tensor, self._pointer = tensor, tensor.data_ptr()
        on_cpu = _device.on_cpu(tensor)
        self._array = _array(tensor) if on_cpu else None  # read faster than the tensor
        self._seen = _version(tensor)

    def is_in(self, tensor: Tensor) -> bool:
        """Whether a tensor has these values."""
        if tensor is not self._tensor or tensor.data_ptr() != self._pointer:
            self._look_at(tensor)
            self._seen = _UNSEEN
        if tensor.shape != self._shape or tensor.dtype != self._dtype:
            return False
        if self._array is not None:
            return self._array.tobytes() == self._values
        if self._seen == _version(tensor):
            return True
        same = _bytes(tensor) == self._values
        self._seen = _version(tensor) if same else _UNSEEN
        return same


def _are_transformed(model: ExactGP) -> bool:
    return getattr(model, "_has_transformed_inputs", False)


def _data(model: ExactGP, *, original: bool = False) -> list[Tensor]:
    """Training inputs and targets that a model holds, of those that it has."""
    inputs = list(model.train_inputs or ())
    if original and _are_transformed(model):
        inputs = [model._original_train_inputs]
    data = [*inputs, model.train_targets]
    return [held for held in data if held is not None]


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


def _bytes(tensor: Tensor) -> bytes:
    return _array(tensor.cpu()).tobytes()


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().numpy()
