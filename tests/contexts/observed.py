"""Observed contexts and the boxes that hold them, for the tests of this folder."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

DTYPES = (torch.float64, torch.float32)


def observations(t: int, d: int, seed: int = 0) -> Tensor:
    """Contexts in the unit cube that have a different spread in each column."""
    rng = np.random.default_rng(seed)
    return torch.as_tensor(0.5 + (rng.random((t, d)) - 0.5) / np.arange(1, d + 1))


def box(d: int, lower: float = 0.0, upper: float = 1.0) -> Tensor:
    return torch.tensor([[lower] * d, [upper] * d], dtype=torch.double)
