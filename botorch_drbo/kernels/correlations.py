r"""Correlations as functions of the squared distance: lean, and twice smooth.

Derivatives are taken in ``r^2``: they are finite at ``r = 0``. Taken through
``r = sqrt(r^2)``, as GPyTorch takes them, they are not.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

_TINY = 1e-30  # of a squared distance whose root is differentiated


class RationalQuadratic(NamedTuple):
    r"""RBF kernels of many lengthscales, mixed: as smooth as one of them.

    .. math:: \phi(r^2) = \Big( 1 + \frac{r^2}{2 \alpha} \Big)^{-\alpha}
        = E_\tau\, e^{-\tau r^2 / 2}, \qquad \tau \sim \mathrm{Gamma}(\alpha, \alpha)
    """

    # The shape.
    alpha: float


Smoothness = float | RationalQuadratic
"""``nu`` of a Matern kernel, infinity for RBF, or a rational quadratic kernel."""


def is_rbf(smoothness: Smoothness) -> bool:
    """Whether a radial kernel is a product of one-dimensional ones."""
    return smoothness == math.inf


def is_smooth(smoothness: Smoothness) -> bool:
    """Whether a kernel has derivatives of every order."""
    return is_rbf(smoothness) or isinstance(smoothness, RationalQuadratic)


def correlation(smoothness: Smoothness, squared: Tensor) -> Tensor:
    """Evaluate ``phi(r^2)`` of a stationary kernel.

    Twice differentiable at zero distance where the kernel is; Matern-1/2, which has a
    kink there, gets a slope of zero.
    """
    if isinstance(smoothness, RationalQuadratic):
        alpha = smoothness.alpha
        return (-alpha * (squared / (2.0 * alpha)).log1p()).exp()
    if is_rbf(smoothness):
        return (-0.5 * squared).exp()
    if smoothness == 0.5:
        return _exponential(squared, 1.0)
    if smoothness == 1.5:
        return _FirstOrder.apply(squared, 3.0)
    return _Matern52.apply(squared)


def correlation_and_slope(
    smoothness: Smoothness, squared: Tensor
) -> tuple[Tensor, Tensor]:
    """Evaluate ``phi`` and twice its derivative, ``2 phi'(r^2)``.

    So the gradient of ``phi(|a - b|^2)`` in ``a`` is ``2 phi' (a - b)``. Both can be
    differentiated once more.
    """
    # 2 phi' is -phi / (1 + r^2 / 2 alpha) for a rational quadratic, -phi for RBF, -5/3
    # (1 + a) exp(-a) for Matern-5/2, and -3 exp(-a) for Matern-3/2.
    value = correlation(smoothness, squared)
    if isinstance(smoothness, RationalQuadratic):
        return value, -value / (1.0 + squared / (2.0 * smoothness.alpha))
    if is_rbf(smoothness):
        return value, -value
    if smoothness == 2.5:
        return value, -5.0 / 3.0 * _FirstOrder.apply(squared, 5.0)
    return value, -3.0 * _exponential(squared, 3.0)


def _exponential(squared: Tensor, scale: float) -> Tensor:
    """``exp(-sqrt(s r^2))``; the floor keeps its derivative at zero from being NaN.

    That derivative has a pole at ``r = 0``, which the factor ``a - b`` of the chain
    rule cancels.
    """
    return (-math.sqrt(scale) * squared.clamp_min(_TINY).sqrt()).exp()


class _Matern52(torch.autograd.Function):
    """``(1 + a + a^2 / 3) exp(-a)`` with ``a = sqrt(5 r^2)``."""

    @staticmethod
    def forward(ctx: Any, squared: Tensor) -> Tensor:
        ctx.save_for_backward(squared)
        a = squared.mul(5.0).sqrt_()  # in place: the time goes into memory
        polynomial = a.div(3.0).add_(1.0).mul_(a).add_(1.0)
        return a.neg_().exp_().mul_(polynomial)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        # d/d(r^2) = -5/6 (1 + a) exp(-a)
        (squared,) = ctx.saved_tensors
        return -5.0 / 6.0 * grad * _FirstOrder.apply(squared, 5.0)


class _FirstOrder(torch.autograd.Function):
    """``(1 + a) exp(-a)`` with ``a = sqrt(s r^2)``.

    Matern-3/2 at ``s = 3``; at ``s = 5`` the slope of Matern-5/2 up to a factor.
    """

    @staticmethod
    def forward(ctx: Any, squared: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(squared)
        ctx.scale = scale
        a = squared.mul(scale).sqrt_()
        polynomial = a.add(1.0)
        return a.neg_().exp_().mul_(polynomial)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        # d/d(r^2) = -s/2 exp(-a)
        (squared,) = ctx.saved_tensors
        return -ctx.scale / 2 * grad * _exponential(squared, ctx.scale), None
