"""Stationary kernels as functions of the squared distance: lean, and twice smooth."""

from __future__ import annotations

import math
from typing import Any

import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from torch import Tensor
from torch.nn import Module

_SQRT3, _SQRT5 = math.sqrt(3.0), math.sqrt(5.0)


class StationaryKernel(Module):
    r"""Rows ``k(z, Z)`` of an RBF, Matern-3/2 or Matern-5/2 kernel, and their slopes.

    .. math:: k(z, z') = s\, \phi(r^2), \qquad
        r^2 = \sum_j (z_j - z'_j)^2 / \ell_j^2

    Distances come from one matrix product. The derivatives that the Lipschitz constant
    needs are those of ``phi`` in ``r^2``, which are finite at ``r = 0``; derivatives
    taken through ``r = sqrt(r^2)``, as GPyTorch takes them, are not.

    Args:
        kind: "rbf", "matern32" or "matern52".
        lengthscale: ``d`` lengthscales.
        outputscale: ``s``, a scalar.
        points: The points ``Z``, ``t x d``.
    """

    centre: Tensor
    lengthscale: Tensor
    outputscale: Tensor
    points: Tensor
    norms: Tensor

    def __init__(
        self, kind: str, lengthscale: Tensor, outputscale: Tensor, points: Tensor
    ) -> None:
        r"""Scale the points once.

        Args:
            kind: "rbf", "matern32" or "matern52".
            lengthscale: ``d`` lengthscales.
            outputscale: ``s``, a scalar.
            points: The points ``Z``, ``t x d``.
        """
        super().__init__()
        self.kind = kind
        centre = points.mean(0)  # distances of centred points lose fewer digits
        scaled = (points - centre) / lengthscale
        for name, buffer in {
            "centre": centre,
            "lengthscale": lengthscale,
            "outputscale": outputscale,
            "points": scaled,
            "norms": scaled.square().sum(-1),
        }.items():
            self.register_buffer(name, buffer.detach(), persistent=False)

    def scale(self, Z: Tensor) -> Tensor:
        r"""Centre inputs and divide by the lengthscales.

        Args:
            Z: Inputs, ``N x d``.

        Returns:
            Inputs in units of the lengthscales, ``N x d``.
        """
        return (Z - self.centre) / self.lengthscale

    def forward(self, scaled: Tensor) -> Tensor:
        r"""Evaluate the kernel against the stored points.

        Args:
            scaled: Inputs from ``scale``, ``N x d``.

        Returns:
            ``k(z, Z)``, ``N x t``.
        """
        squared = self._squared_distance(scaled)
        if self.kind == "rbf":
            return self.outputscale * (-0.5 * squared).exp()
        matern = _matern52 if self.kind == "matern52" else _matern32
        return self.outputscale * matern(squared)

    def value_and_slope(self, scaled: Tensor) -> tuple[Tensor, Tensor]:
        r"""Evaluate the kernel and twice its derivative in ``r^2``.

        With slope ``D`` the gradient of ``k(z, z_j)`` in the scaled input ``a`` is
        ``D_j (a - b_j)``. Both results can be differentiated once more.

        Args:
            scaled: Inputs from ``scale``, ``N x d``.

        Returns:
            ``k`` and ``2 s phi'``, both ``N x t``.
        """
        squared = self._squared_distance(scaled)
        if self.kind == "rbf":
            value = self.outputscale * (-0.5 * squared).exp()
            return value, -value
        if self.kind == "matern52":
            slope = -5.0 / 3.0 * self.outputscale * _Matern52Slope.apply(squared)
            return self.outputscale * _Matern52.apply(squared), slope
        slope = -3.0 * self.outputscale * _exponential(squared)
        return self.outputscale * _Matern32.apply(squared), slope

    def _squared_distance(self, scaled: Tensor) -> Tensor:
        squared = torch.addmm(self.norms, scaled, self.points.mT, alpha=-2.0)
        squared = squared + scaled.square().sum(-1, keepdim=True)
        # Rounding below zero is harmless in exp(-r^2 / 2); a root would not forgive it.
        return squared if self.kind == "rbf" else squared.clamp_min(0.0)


def stationary_kernel(kernel: Kernel, points: Tensor) -> StationaryKernel | None:
    r"""Translate a GPyTorch kernel, if it is one of those that this module knows.

    Args:
        kernel: The covariance module of a model, possibly scaled.
        points: The points to evaluate against, ``t x d``.

    Returns:
        The same kernel as a ``StationaryKernel``, or None.
    """
    outputscale = torch.ones((), dtype=points.dtype, device=points.device)
    if type(kernel) is ScaleKernel and kernel.active_dims is None:
        outputscale, kernel = kernel.outputscale.squeeze(), kernel.base_kernel
    if type(kernel) is RBFKernel:
        kind = "rbf"
    elif type(kernel) is MaternKernel and kernel.nu in (1.5, 2.5):
        kind = {1.5: "matern32", 2.5: "matern52"}[kernel.nu]
    else:
        return None
    if kernel.active_dims is not None or len(kernel.batch_shape):
        return None
    lengthscale = kernel.lengthscale.reshape(-1).expand(points.shape[-1])
    return StationaryKernel(kind, lengthscale, outputscale, points)


def matern_correlation(smoothness: float, squared: Tensor) -> Tensor:
    r"""Evaluate a Matern correlation as a function of the squared distance.

    Twice differentiable at zero distance where the kernel is; Matern-1/2, which has a
    kink there, gets a slope of zero.

    Args:
        smoothness: 0.5, 1.5 or 2.5.
        squared: Squared distances in lengthscales, any shape, not negative.

    Returns:
        Correlations of the same shape.
    """
    if smoothness == 0.5:
        return (-squared.clamp_min(1e-30).sqrt()).exp()
    return (_Matern32 if smoothness == 1.5 else _Matern52).apply(squared)


def _matern52(squared: Tensor) -> Tensor:
    """``(1 + a + a^2 / 3) exp(-a)`` with ``a = sqrt(5 r^2)``."""
    a = _SQRT5 * squared.sqrt()
    return (1.0 + a + 5.0 / 3.0 * squared) * (-a).exp()


def _matern32(squared: Tensor) -> Tensor:
    """``(1 + a) exp(-a)`` with ``a = sqrt(3 r^2)``."""
    a = _SQRT3 * squared.sqrt()
    return (1.0 + a) * (-a).exp()


def _exponential(squared: Tensor) -> Tensor:
    """``exp(-sqrt(3 r^2))``; the floor keeps its derivative at zero from being NaN.

    That derivative has a true pole at ``r = 0``, of which the factor ``a - b_j`` in the
    chain rule is the cure.
    """
    return (-_SQRT3 * squared.clamp_min(1e-30).sqrt()).exp()


class _Matern52(torch.autograd.Function):
    """Matern-5/2 as a function of ``r^2``: its derivative needs no root of zero."""

    @staticmethod
    def forward(ctx: Any, squared: Tensor) -> Tensor:
        ctx.save_for_backward(squared)
        a = squared.mul(5.0).sqrt_()  # in place: the time goes into memory
        polynomial = a.div(3.0).add_(1.0).mul_(a).add_(1.0)
        return a.neg_().exp_().mul_(polynomial)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (squared,) = ctx.saved_tensors
        return -5.0 / 6.0 * grad * _Matern52Slope.apply(squared)


class _Matern52Slope(torch.autograd.Function):
    """``(1 + a) exp(-a)`` with ``a = sqrt(5 r^2)``, as a function of ``r^2``."""

    @staticmethod
    def forward(ctx: Any, squared: Tensor) -> Tensor:
        ctx.save_for_backward(squared)
        a = squared.mul(5.0).sqrt_()
        polynomial = a.add(1.0)
        return a.neg_().exp_().mul_(polynomial)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (squared,) = ctx.saved_tensors
        return -2.5 * grad * (-_SQRT5 * squared.clamp_min(1e-30).sqrt()).exp()


class _Matern32(torch.autograd.Function):
    """Matern-3/2 as a function of ``r^2``: its derivative needs no root of zero."""

    @staticmethod
    def forward(ctx: Any, squared: Tensor) -> Tensor:
        ctx.save_for_backward(squared)
        a = squared.mul(3.0).sqrt_()
        polynomial = a.add(1.0)
        return a.neg_().exp_().mul_(polynomial)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (squared,) = ctx.saved_tensors
        return -1.5 * grad * _exponential(squared)
