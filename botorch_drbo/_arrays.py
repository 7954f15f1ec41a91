"""Small problems on a CPU: the same formulas by NumPy, whose calls cost a quarter.

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


def arrays(num_elements: int, *tensors: Tensor) -> tuple[ModuleType, list[Any]]:
    """Views of tensors for a formula that needs no graph.

    Args:
        num_elements: Of the largest temporary.
        tensors: Floating point tensors.

    Returns:
        NumPy and arrays where that is faster, otherwise torch and detached tensors.
    """
    plain = [t.detach() if t.requires_grad else t for t in tensors]
    if num_elements > _MAX_ELEMENTS or not all(map(on_cpu, tensors)):
        return torch, plain
    return np, [t.numpy() for t in plain]


def on_device(like: Any) -> dict[str, Any]:
    """On which device a new array of the same kind belongs, as an option."""
    return {"device": like.device} if isinstance(like, Tensor) else {}


def take(values: Any, index: Any) -> Any:
    """Entries of the last dimension, ``... x n`` and ``... x k`` to ``... x k``."""
    if isinstance(values, Tensor):
        return values.gather(-1, index)
    return np.take_along_axis(values, index, axis=-1)
