"""Sorting of scores, which takes most of the time of the sets that sort."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_drbo import _device


def ranked(scores: Tensor, *, descending: bool = False) -> tuple[Tensor, Tensor]:
    """Sort the last dimension.

    Equal scores keep no particular order, but always the same one.

    Args:
        scores: ``... x n``.
        descending: The highest score first.

    Returns:
        The sorted scores and where each came from, both ``... x n``.
    """
    if not _device.on_cpu(scores):
        return scores.sort(dim=-1, descending=descending, stable=True)
    # NumPy sorts three times as fast as torch on a CPU with vector instructions.
    keys = (-scores if descending else scores).detach().numpy()
    order = torch.from_numpy(keys.argsort(axis=-1))
    return scores.gather(-1, order), order
