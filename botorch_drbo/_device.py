"""Where a tensor lives."""

from __future__ import annotations

from torch import Tensor


def on_cpu(tensor: Tensor) -> bool:
    """Whether a number can be read off a tensor without waiting for a device."""
    return tensor.device.type == "cpu"
