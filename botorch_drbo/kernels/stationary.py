"""Rows ``k(z, Z)`` of a stationary kernel against the training inputs."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from gpytorch.kernels import (
    AdditiveKernel,
    Kernel,
    MaternKernel,
    ProductKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)
from torch import Tensor
from torch.nn import Module

from botorch_drbo.kernels.components import KernelComponent
from botorch_drbo.kernels.correlations import (
    Smoothness,
    correlation,
    correlation_and_slope,
    is_rbf,
)

# GPyTorch's own ``is_stationary`` says so of every kernel with a lengthscale, also of
# BoTorch's exponential decay.
_STATIONARY = (
    AdditiveKernel,
    MaternKernel,
    ProductKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)


def is_stationary(kernel: Kernel) -> bool:
    r"""Whether a kernel is known to depend on the difference of its inputs alone.

    Args:
        kernel: Any kernel of GPyTorch.

    Returns:
        True for sums and products of RBF, Matern and rational quadratic kernels; False
        also for kernels that this package does not know.

    Example:
        >>> is_stationary(ScaleKernel(RQKernel()))
        True
    """
    parts = [part for part in kernel.modules() if isinstance(part, Kernel)]
    return all(type(part) in _STATIONARY for part in parts)


class StationaryKernel(Module):
    r"""Rows of a stationary kernel but Matern-1/2, and their slopes.

    .. math:: k(z, z') = s\, \phi(r^2), \qquad r^2 = \sum_j w_j^2 (z_j - z'_j)^2

    Distances come from one matrix product.

    Args:
        smoothness: 1.5, 2.5, or infinity for RBF; or rational quadratic.
        weights: One over the lengthscales, zero in columns that do not count, ``d``.
        variance: ``s``.
        points: The points ``Z``, ``t x d``.
    """

    centre: Tensor
    weights: Tensor
    points: Tensor
    norms: Tensor

    def __init__(
        self, smoothness: Smoothness, weights: Tensor, variance: float, points: Tensor
    ) -> None:
        super().__init__()
        self.smoothness, self.variance = smoothness, variance
        self.is_rbf = is_rbf(smoothness)
        weights = weights.to(points)
        centre = points.mean(0)  # distances of centred points lose fewer digits
        scaled = (points - centre) * weights
        for name, buffer in {
            "centre": centre,
            "weights": weights,
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
        return (Z - self.centre) * self.weights

    def forward(self, scaled: Tensor) -> Tensor:
        r"""Evaluate the kernel against the stored points.

        Args:
            scaled: Inputs from ``scale``, ``N x d``.

        Returns:
            ``k(z, Z)``, ``N x t``.
        """
        squared = self._squared_distance(scaled)
        return self.variance * correlation(self.smoothness, squared)

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
        value, slope = correlation_and_slope(self.smoothness, squared)
        return self.variance * value, self.variance * slope

    def _squared_distance(self, scaled: Tensor) -> Tensor:
        # |a - b|^2 = |a|^2 + |b|^2 - 2 a.b
        squared = torch.addmm(self.norms, scaled, self.points.mT, alpha=-2.0)
        squared = squared + scaled.square().sum(-1, keepdim=True)
        # Rounding below zero is harmless in exp(-r^2 / 2); of a root it makes NaN.
        return squared if self.is_rbf else squared.clamp_min(0.0)


def stationary_kernel(
    components: Sequence[KernelComponent], points: Tensor
) -> StationaryKernel | None:
    r"""Find the one stationary factor that a kernel is, if it is one.

    A product of RBF factors is one: their squared distances add up.

    Args:
        components: The summands of the kernel.
        points: The points to evaluate against, ``t x d``.

    Returns:
        The same kernel as a ``StationaryKernel``; None for a sum, for a product with a
        Matern factor, and for Matern-1/2.
    """
    if len(components) != 1:
        return None
    (component,) = components
    smoothness = [factor.smoothness for factor in component.factors]
    alone = len(smoothness) == 1 and smoothness != [0.5]
    if not alone and not all(map(is_rbf, smoothness)):
        return None
    # A product of RBF factors is an RBF factor: precisions add up.
    weights = torch.stack([f.weights for f in component.factors]).square().sum(0).sqrt()
    return StationaryKernel(smoothness[0], weights, component.variance, points)
