"""Lower weights for old observations, and the effective sample size."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_drbo._validation import check_positive


def half_life_weights(num: int, half_life: float, like: Tensor) -> Tensor:
    r"""Weights :math:`2^{-a_i / h}` by age, scaled to sum to one.

    Args:
        num: How many observations, the oldest first: the newest has age 0, the one
            before it age 1.
        half_life: ``h``, the age at which an observation counts half.
        like: Decides dtype and device.

    Returns:
        Weights, ``num``.

    Raises:
        InputDataError: ``half_life`` is no positive finite number.
    """
    h = check_positive(half_life, "half_life")
    age = torch.arange(num - 1, -1, -1, dtype=torch.double, device=like.device)
    weights = torch.exp2(-age / h)
    return (weights / weights.sum()).to(like)


def effective_size(weights: Tensor) -> float:
    r"""How many equal weights say as much: :math:`1 / \sum_i p_i^2`.

    Args:
        weights: ``n``, not negative, summing to one.

    Returns:
        Between 1 and ``n``.
    """
    return 1.0 / weights.double().square().sum().item()


def weighted_variance(points: Tensor, weights: Tensor) -> Tensor:
    r"""The variance per column without bias, for weights that say how much to trust.

    .. math:: \frac{\sum_i p_i (c_i - \bar c)^2}{1 - \sum_i p_i^2}

    With equal weights this is the sample variance, divisor ``n - 1``.

    Args:
        points: ``n x d``.
        weights: ``n``, not negative, summing to one.

    Returns:
        ``d`` variances, float64; zero if one point has all the weight.
    """
    points, weights = points.double(), weights.double()
    squares = weights @ (points - weights @ points).square()
    rest = 1.0 - weights.square().sum()
    return torch.where(rest > 0, squares / rest.clamp_min(1e-300), 0.0)
