"""Rows ``k(z, Z)`` of a stationary kernel, whole or with its columns in two groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

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

from botorch_drbo.kernels.components import (
    KernelComponent,
    Smoothness,
    correlation,
    correlation_and_slope,
    is_rbf,
)
from botorch_drbo.kernels.components import correlation as factor_correlation

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
    """Whether a kernel is known to depend on the difference of its inputs alone."""
    parts = [part for part in kernel.modules() if isinstance(part, Kernel)]
    return all(type(part) in _STATIONARY for part in parts)


class StationaryKernel(Module):
    r"""Rows of a stationary kernel but Matern-1/2, and their slopes.

    .. math:: k(z, z') = s\, \phi(r^2), \qquad r^2 = \sum_j w_j^2 (z_j - z'_j)^2

    Distances come from one matrix product.
    """

    centre: Tensor
    # One over the lengthscales, zero in columns that do not count, ``d``.
    weights: Tensor
    # The points ``Z``, ``t x d``.
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
        """Centre inputs and divide by the lengthscales.

        Shapes: ``Z``: ``N x d``, returns ``N x d``.
        """
        return (Z - self.centre) * self.weights

    def forward(self, scaled: Tensor) -> Tensor:
        """Evaluate the kernel against the stored points.

        Shapes: ``scaled``: ``N x d``, returns ``N x t``.
        """
        squared = self._squared_distance(scaled)
        return self.variance * correlation(self.smoothness, squared)

    def value_and_slope(self, scaled: Tensor) -> tuple[Tensor, Tensor]:
        """Evaluate the kernel and twice its derivative in ``r^2``.

        With slope ``D`` the gradient of ``k(z, z_j)`` in the scaled input ``a`` is
        ``D_j (a - b_j)``. Both results can be differentiated once more.

        Shapes: ``scaled``: ``N x d``, returns ``N x t``.
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
    """Find the one stationary factor that a kernel is, if it is one.

    A product of RBF factors is one: their squared distances add up.

    Shapes: ``points``: ``t x d``.
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


class KernelSide(NamedTuple):
    """What one group of columns contributes to the rows of a summand."""

    # The product of the factors that look at this group alone, and of this group's half
    # of the RBF factors, ``... x N x t``; None if there is none of either.
    correlation: Tensor | None
    # For each Matern factor of both groups, its squared distance in the columns of this
    # one, ``... x N x t``.
    squared: list[Tensor]


class SplitComponent(Module):
    r"""One summand of a kernel against the training inputs, in two groups of columns.

    .. math:: k(z, z') = s\, a(x, x')\, b(c, c')
        \prod_m \phi_m\big(r_m^2(x, x') + r_m^2(c, c')\big)

    The product runs over the Matern factors that look at both groups; without such
    factors (``separable``) the summand is a product of two kernels.
    """

    weights: Tensor
    # The training inputs, ``t x d``, float64.
    points: Tensor
    scaled: Tensor
    norms: Tensor

    def __init__(self, component: KernelComponent, points: Tensor, split: int) -> None:
        super().__init__()
        self.variance = component.variance
        self.groups = (slice(0, split), slice(split, None))
        self.smoothness = [factor.smoothness for factor in component.factors]
        self.active = [
            [bool(factor.weights[group].any()) for group in self.groups]
            for factor in component.factors
        ]
        # A factor of both groups is no product of two, but for an RBF one.
        self.mixes = [
            all(active) and not is_rbf(nu)
            for nu, active in zip(self.smoothness, self.active, strict=True)
        ]
        self.separable = not any(self.mixes)
        weights = torch.stack([factor.weights for factor in component.factors])
        self.register_buffer("weights", weights.to(points), persistent=False)
        self.register_buffer("points", points, persistent=False)
        scaled = points * self.weights.unsqueeze(1)  # factors x t x d
        norms = [scaled[..., group].square().sum(-1) for group in self.groups]
        self.register_buffer("scaled", scaled, persistent=False)
        self.register_buffer("norms", torch.stack(norms, 1), persistent=False)

    def side(self, inputs: Tensor, group: int) -> KernelSide:
        """Evaluate one group.

        Shapes: ``inputs``: ``... x N x k``.
        """
        correlation: Tensor | None = None
        squared: list[Tensor] = []
        columns = self.groups[group]
        for smoothness, active, mixes, weights, points, norms in zip(
            self.smoothness,
            self.active,
            self.mixes,
            self.weights[:, columns],
            self.scaled[..., columns],
            self.norms[:, group],
            strict=True,
        ):
            if not active[group]:
                continue
            distance = _squared_distance(inputs * weights, points, norms, smoothness)
            # A radial factor needs the distance over both groups: the other part is
            # added later.
            if mixes:
                squared.append(distance)
                continue
            factor = factor_correlation(smoothness, distance)
            correlation = factor if correlation is None else correlation * factor
        return KernelSide(correlation, squared)

    def side_and_slopes(self, inputs: Tensor, group: int) -> tuple[Tensor, Tensor]:
        """Evaluate one group of a separable summand, and its slopes in the inputs.

        Shapes: ``inputs``: ``N x k``, returns ``N x t``.
        """
        columns = self.groups[group]
        gaps = inputs.mT.unsqueeze(-1) - self.points[:, columns].mT.unsqueeze(-2)
        value, slopes = torch.ones_like(gaps[0]), torch.zeros_like(gaps)
        for smoothness, active, weights in zip(
            self.smoothness, self.active, self.weights[:, columns], strict=True
        ):
            if active[group]:
                # r^2 = sum_j (w_j gap_j)^2, so d phi / dc_j = 2 phi'(r^2) w_j^2 gap_j;
                # the product rule over factors, one after the other.
                scaled = weights.square()[:, None, None] * gaps  # k x N x t
                squared = (scaled * gaps).sum(0)
                factor, slope = correlation_and_slope(smoothness, squared)
                slopes = slopes * factor + value * slope * scaled
                value = value * factor
        return value, slopes

    def mixed(self, first: KernelSide, second: KernelSide) -> Tensor:
        """Evaluate the factors of both groups at every pair.

        Shapes: ``first``: ``... x N x t``, ``second``: ``n x t``, returns ``... x N x n
        x t``.
        """
        smoothness = compress(self.smoothness, self.mixes)
        factors = [
            factor_correlation(nu, a.unsqueeze(-2) + b)
            for nu, a, b in zip(smoothness, first.squared, second.squared, strict=True)
        ]
        return math.prod(factors[1:], start=factors[0])


def _squared_distance(
    left: Tensor, right: Tensor, norms: Tensor, smoothness: Smoothness
) -> Tensor:
    """``... x N x t``, from one matrix product where the kernel bears cancellation."""
    if smoothness == 0.5:  # a kink at zero
        return (left.unsqueeze(-2) - right).square().sum(-1)
    # |a - b|^2 = |a|^2 + |b|^2 - 2 a.b
    # As a product of matrices: one pass over memory where a difference takes d.
    squared = torch.addmm(norms, left.flatten(0, -2), right.mT, alpha=-2.0)
    squared = squared.unflatten(0, left.shape[:-1]) if left.ndim > 2 else squared
    squared = squared + left.square().sum(-1, keepdim=True)
    # Rounding below zero is harmless in exp(-r^2 / 2); of a root it makes NaN.
    return squared if is_rbf(smoothness) else squared.clamp_min(0.0)
