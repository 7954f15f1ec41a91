"""Checks for rare cases, so that the usual case does not pay for them."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_drbo import _device


def may_hold(condition: Tensor) -> bool:
    """Whether a condition holds anywhere; True on a GPU, where the check would wait."""
    return not _device.on_cpu(condition) or bool(condition.any())


def lowest_supported(values: Tensor, weights: Tensor) -> Tensor:
    """The lowest score of an atom with weight: ``... x n`` twice to ``... x 1``."""
    if may_hold(weights.amin(-1) <= 0):
        values = torch.where(weights > 0, values, torch.inf)
    return values.amin(-1, keepdim=True)
