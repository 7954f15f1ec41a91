"""Where a tensor lives, and how it gets to another."""

from __future__ import annotations

from torch import Tensor


def on_cpu(tensor: Tensor) -> bool:
    """Whether a number can be read off a tensor without waiting for a device."""
    return tensor.device.type == "cpu"


def beside(tensor: Tensor, other: Tensor) -> Tensor:
    """A tensor on the device and in the dtype of another one.

    From the CPU to a GPU it does not wait for what the GPU does: CUDA has copied the
    numbers away before this returns, unless they lie in pinned memory. The other way it
    must wait.
    """
    return tensor.to(other, non_blocking=on_cpu(tensor))
