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
    r"""The rows ``k(z, Z)`` of an RBF, Matern-3/2 or Matern-5/2 kernel.

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

    def forward(self, Z: Tensor) -> Tensor:
        r"""Evaluate the kernel against the stored points.

        Args:
            Z: Inputs, ``N x d``.

        Returns:
            ``k(z, Z)``, ``N x t``.
        """
        scaled = (Z - self.centre) / self.lengthscale
        squared = torch.addmm(self.norms, scaled, self.points.mT, alpha=-2.0)
        squared = squared + scaled.square().sum(-1, keepdim=True)
        if self.kind == "rbf":
            # Rounding below zero is harmless here, and a clamp would cost a pass.
            return self.outputscale * (-0.5 * squared).exp()
        matern = _Matern52 if self.kind == "matern52" else _Matern32
        return self.outputscale * matern.apply(squared.clamp_min(0.0))


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


class _Matern52(torch.autograd.Function):
    """``(1 + a + a^2 / 3) exp(-a)``, ``a = sqrt(5 r^2)``, as a function of ``r^2``."""

    @staticmethod
    def forward(ctx: Any, squared: Tensor) -> Tensor:  # noqa: D102
        ctx.save_for_backward(squared)
        a = _SQRT5 * squared.sqrt()
        return (1.0 + a + 5.0 / 3.0 * squared) * (-a).exp()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # noqa: D102
        (squared,) = ctx.saved_tensors
        return -5.0 / 6.0 * grad * _ExponentialTerm.apply(squared, _SQRT5)


class _Matern32(torch.autograd.Function):
    """``(1 + a) exp(-a)``, ``a = sqrt(3 r^2)``, as a function of ``r^2``."""

    @staticmethod
    def forward(ctx: Any, squared: Tensor) -> Tensor:  # noqa: D102
        ctx.save_for_backward(squared)
        a = _SQRT3 * squared.sqrt()
        return (1.0 + a) * (-a).exp()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # noqa: D102
        (squared,) = ctx.saved_tensors
        # The second derivative of Matern-3/2 has a pole at r = 0, of which the factor
        # r in the chain rule is the cure; the floor keeps 0 * inf from being NaN.
        return -1.5 * grad * (-_SQRT3 * squared.clamp_min(1e-30).sqrt()).exp()


class _ExponentialTerm(torch.autograd.Function):
    """``(1 + a) exp(-a)``, ``a = scale * r``, as a function of ``r^2``."""

    @staticmethod
    def forward(ctx: Any, squared: Tensor, scale: float) -> Tensor:  # noqa: D102
        ctx.save_for_backward(squared)
        ctx.scale = scale
        a = scale * squared.sqrt()
        return (1.0 + a) * (-a).exp()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # noqa: D102
        (squared,) = ctx.saved_tensors
        a = ctx.scale * squared.clamp_min(1e-30).sqrt()
        return -0.5 * ctx.scale**2 * grad * (-a).exp(), None
