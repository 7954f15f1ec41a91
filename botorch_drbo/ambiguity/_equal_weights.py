"""The total variation ball around equal weights: the value without a sort."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from botorch_drbo.ambiguity._envelope import Once

_TOLERANCE = 1e-13  # of probability: a budget this near a breakpoint lies on it


def support_mask(weights: Tensor) -> np.ndarray | None:
    """Which atoms have weight, ``n``, if all that have any have the same; or None."""
    if weights.ndim != 1:
        return None
    w = weights.numpy(force=True)
    support = w > 0.0
    if not support.any() or not ((w == w.max()) | ~support).all():
        return None
    return support


def equal_weights_value(values: Tensor, support: np.ndarray, budget: float) -> Tensor:
    r"""Move a mass from the highest scores to the lowest, of equal weights.

    How many of the highest scores lose their mass is known beforehand, so they need
    not be sorted but only told from the others.

    Args:
        values: Scores, ``... x n``, on a CPU.
        support: Which atoms have weight, ``n``; at least one.
        budget: The mass that may move, at most one.

    Returns:
        The worst-case values, ``...``, differentiable once.
    """
    flat = values.reshape(-1, values.shape[-1])
    found = _EqualWeights.apply(flat, support, budget)
    return found.reshape(values.shape[:-1])


class _EqualWeights(torch.autograd.Function):
    """``equal_weights_value`` of ``b x n`` scores, in NumPy: torch has no partition."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, support: np.ndarray, budget: float) -> Tensor:
        f = values.detach().double().numpy()
        n = int(support.sum())
        share = 1.0 / n
        # Of the n scores so many keep some mass, the highest of them perhaps not all.
        kept = n - math.floor((budget + _TOLERANCE) * n)
        # The budget goes to the lowest score; the rest is the mean of the n scores of
        # weight without the highest ones. A partition finds these in O(n).
        lowest = f.argmin(-1)
        low = np.take_along_axis(f, lowest[:, None], -1)[:, 0]
        level = np.full_like(low, -math.inf)
        found = budget * low
        if kept > 0:
            # Most often what has no weight comes last, and then this is no copy.
            supported = f[:, :n] if support[:n].all() else f[:, support]
            ordered = np.partition(supported, kept - 1, axis=-1)
            level = ordered[:, kept - 1]
            rest = (1.0 - budget) - share * (kept - 1)
            found += share * ordered[:, : kept - 1].sum(-1) + rest * level
        if ctx.needs_input_grad[0]:
            # q = share below the level, what is left shared out at the level
            q = share * ((f < level[:, None]) & support)
            at = (f == level[:, None]) & support
            left = (1.0 - budget) - q.sum(-1)
            q += at * (left / at.sum(-1).clip(1))[:, None]
            q[np.arange(len(q)), lowest] += budget
            ctx.save_for_backward(values, torch.from_numpy(q).to(values))
        return torch.from_numpy(found).to(values)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        values, q = ctx.saved_tensors
        with torch.no_grad():
            slope = grad.unsqueeze(-1) * q
        if torch.is_grad_enabled():  # a graph of the gradient was asked for
            slope = Once.apply(slope, grad, values)
        return slope, None, None
