"""Small problems on a CPU: the same formulas by NumPy, whose calls cost less.

Ten decisions at thirty contexts are a few thousand numbers. What a formula of twenty
operations on them costs is twenty calls, and a call of torch takes several times as
long as one of NumPy. Code that keeps to what both have in common (operators, ``sum``,
``clip``, ``swapaxes``, ``exp``) runs on either.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

_MAX_ELEMENTS = 2**15  # of the largest temporary; beyond it the arithmetic takes longer


def on_cpu(tensor: Tensor) -> bool:
    """Whether a number can be read off a tensor without waiting for a device."""
    return tensor.device.type == "cpu"


def arrays(num_elements: int, *tensors: Any) -> tuple[ModuleType, list[Any]]:
    """Views of tensors for a formula that needs no graph.

    Args:
        num_elements: Of the largest temporary.
        tensors: Tensors of one device. If the first is an array already, the others
            become arrays too.

    Returns:
        NumPy and arrays where that is faster, otherwise torch and detached tensors.
    """
    if isinstance(tensors[0], np.ndarray):
        return np, [t if isinstance(t, np.ndarray) else _array(t) for t in tensors]
    if num_elements > _MAX_ELEMENTS or not on_cpu(tensors[0]):
        return torch, [t.detach() if t.requires_grad else t for t in tensors]
    return np, [_array(t) for t in tensors]


def _array(tensor: Tensor) -> np.ndarray:
    # By force, because autograd hands down zeros that have no memory.
    return tensor.numpy(force=True)


def alike(like: Any, *tensors: Tensor) -> list[Any]:
    """Tensors without a graph, as arrays if that is what they are to meet."""
    if isinstance(like, np.ndarray):
        return [tensor.numpy() for tensor in tensors]
    return list(tensors)


def given_back(found: Any, like: Any) -> Any:
    """What a formula found: an array if arrays were given, otherwise a tensor."""
    return found if isinstance(like, np.ndarray) else torch.as_tensor(found)


def on_device(like: Any) -> dict[str, Any]:
    """On which device a new array of the same kind belongs, as an option."""
    return {"device": like.device} if isinstance(like, Tensor) else {}


def raise_to(values: Any, floor: float) -> None:
    """Raise what is lower, in place."""
    if isinstance(values, Tensor):
        values.clamp_min_(floor)
    else:  # faster than np.maximum
        values[values < floor] = floor


def take(values: Any, index: Any) -> Any:
    """Entries of the last dimension, ``... x n`` and ``... x k`` to ``... x k``."""
    if isinstance(values, Tensor):
        return values.gather(-1, index)
    flat = values.reshape(-1, values.shape[-1])
    rows = np.arange(len(flat))[:, None]
    return flat[rows, index.reshape(-1, index.shape[-1])].reshape(index.shape)
