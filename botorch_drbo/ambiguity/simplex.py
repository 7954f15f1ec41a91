"""Checks of reference weights and of distributions."""

from __future__ import annotations

from weakref import WeakValueDictionary

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo._validation import check_weights

_ON_SIMPLEX: WeakValueDictionary[tuple[int, int], Tensor] = WeakValueDictionary()
"""Weights that were checked already: reading a result makes a GPU wait."""


def check_simplex(weights: Tensor) -> None:
    """Raise unless the weights, ``... x n``, are distributions, up to rounding.

    Raises:
        InputDataError: Negative or not finite weights, or a sum that is not one.
    """
    # Inference tensors count no versions: a change in place would go unseen.
    key = None if weights.is_inference() else (id(weights), weights._version)
    if 0 in weights.shape[:-1] or (key and _ON_SIMPLEX.get(key) is weights):
        return
    sums = weights.detach().sum(-1)
    off = (sums - 1).abs().max()
    # Float64 weights may be those of a float32 context set, rounded before.
    rounding = max(torch.finfo(weights.dtype).eps ** 0.5, 1e-6)
    # Written so that NaN fails.
    if not (off <= rounding and weights.min() >= 0):
        raise InputDataError(
            "`weights` must lie on the simplex (not negative, sum one), got a minimum "
            f"of {weights.min().item()} and sums from {sums.min().item()} to "
            f"{sums.max().item()}. Divide them by their sum, or take the weights of a "
            "ContextSet."
        )
    if key:
        _ON_SIMPLEX[key] = weights


def check_distributions(p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
    r"""Check two distributions, as ``distance`` of a set gets them.

    Args:
        p: Reference weights, ``... x n``.
        q: Other weights, ``... x m``.

    Returns:
        Both in float64, scaled to sum to one.

    Raises:
        InputDataError: Negative, not finite, or zero-sum weights.

    Example:
        >>> check_distributions(torch.tensor([1, 3]), torch.tensor([0.5, 0.5]))[0]
        tensor([0.2500, 0.7500], dtype=torch.float64)
    """
    p = check_weights(p.double(), p.shape[-1], "p")
    return p, check_weights(q.double(), q.shape[-1], "q")
