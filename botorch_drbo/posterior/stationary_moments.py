"""Moments of an exact GP with a stationary kernel, and their slopes, in one sweep.

Mean and variance at a test point depend on that point alone, so their gradients are two
vectors of length ``d`` per point. They are computed together with the moments, while
the kernel row is still in the processor's cache; nothing of size ``N x t`` outlives its
block, and the backward pass costs next to nothing.

Per test point: one product with a ``t x t`` matrix (``2 t^2`` flops), with the gradient
or without; with the gradient two where ``ExplainedVariance`` has to be careful.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_drbo.kernels.stationary import StationaryKernel
from botorch_drbo.posterior.blocks import in_blocks

_ROUNDING = 1e-9  # of the prior's variance, that one product may be off by


class ExplainedVariance(NamedTuple):
    r"""What turns kernel rows into the variance that the data explain.

    .. math:: \lVert R\, k \rVert^2 = k' P\, k, \qquad R = L^{-1}, \quad P = R' R

    The derivative in ``k`` is ``2 P k``. With ``P`` it comes with the value, from one
    product with a ``t x t`` matrix; with ``R`` from two. In the first form rounding
    errors reach ``eps v trace(P)`` of the prior's variance ``v`` (measured: .1 to .8 of
    that, for noise from 1e-2 to 1e-6), in the second hardly its root. So there is a
    ``P`` where that is at most 1e-9: in float64, unless there is next to no noise.
    """

    # ``R``, ``t x t``.
    inverse_root: Tensor
    # ``P``, ``t x t``; None where rounding would be felt.
    precision: Tensor | None

    @classmethod
    def of(cls, inverse_root: Tensor, prior: float) -> ExplainedVariance:
        """Choose the form.

        Shapes: ``inverse_root``: ``t x t``.
        """
        # k'(R'R)k is one product in place of two, but cancels where R'R is large: its
        # rounding is at most eps |k|^2 trace(R'R), and |k|^2 of the size of the prior.
        eps = torch.finfo(inverse_root.dtype).eps
        rounding = eps * prior * float(inverse_root.square().sum())  # trace of R' R
        safe = rounding <= _ROUNDING
        return cls(inverse_root, inverse_root.mT @ inverse_root if safe else None)

    def __call__(self, K: Tensor) -> Tensor:
        """Evaluate it.

        Shapes: ``K``: ``... x t``.
        """
        if self.precision is not None:
            return torch.linalg.vecdot(K, K @ self.precision)
        V = K @ self.inverse_root.mT
        return torch.linalg.vecdot(V, V)

    def with_weights(self, K: Tensor) -> tuple[Tensor, Tensor]:
        """Evaluate it and half of its derivative.

        Shapes: ``K``: ``... x t``, returns ``... x t``.
        """
        if self.precision is not None:
            W = K @ self.precision
            return torch.linalg.vecdot(K, W), W
        V = K @ self.inverse_root.mT
        return torch.linalg.vecdot(V, V), V @ self.inverse_root


_TEMPORARIES = 8  # of N x t, in a block


class StationarySystem(NamedTuple):
    """What turns kernel rows into moments."""

    # The kernel, which holds the training inputs.
    kernel: StationaryKernel
    # ``(K + noise)^-1 (y - m)``, ``t x 1``.
    alpha: Tensor
    # What the data explain of the variance.
    explained: ExplainedVariance
    # Bytes for the temporaries of one block.
    memory_budget: int

    @property
    def bytes_per_row(self) -> int:
        """The temporaries of one test point."""
        return _TEMPORARIES * len(self.alpha) * self.alpha.element_size()


def stationary_moments(
    system: StationarySystem, scaled: Tensor
) -> tuple[Tensor, Tensor]:
    """Evaluate ``k alpha`` and ``k(z, z) - |L^-1 k|^2`` for each row.

    Shapes: ``scaled``: ``N x d``.
    """
    return _Moments.apply(scaled, system)


def stationary_means(system: StationarySystem, scaled: Tensor) -> Tensor:
    """Evaluate the means of ``stationary_moments`` alone, to the last bit.

    Shapes: ``scaled``: ``N x d``.
    """
    return _Means.apply(scaled, system)


def stationary_slopes(
    system: StationarySystem, scaled: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Evaluate the moments of ``stationary_moments`` and their slopes.

    Shapes: ``scaled``: ``N x d``, returns ``N x d``.
    """

    def slopes(block: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return _slopes(system, block)

    mean, variance, mean_slope, variance_slope = in_blocks(
        slopes, scaled, system.bytes_per_row, system.memory_budget
    )
    return mean, variance, mean_slope, variance_slope


def stationary_mean_slopes(system: StationarySystem, scaled: Tensor) -> Tensor:
    """Evaluate the slopes of the means of ``stationary_moments`` alone.

    Shapes: ``scaled``: ``N x d``, returns ``N x d``.
    """

    def slopes(block: Tensor) -> tuple[Tensor]:
        return (_mean_slope(system, block, system.kernel.value_and_slope(block)[1]),)

    (found,) = in_blocks(slopes, scaled, system.bytes_per_row, system.memory_budget)
    return found


class _Moments(torch.autograd.Function):
    """The moments, with the slopes as their gradients."""

    @staticmethod
    def forward(
        ctx: Any, scaled: Tensor, system: StationarySystem
    ) -> tuple[Tensor, Tensor]:
        if not ctx.needs_input_grad[0]:

            def moments(block: Tensor) -> tuple[Tensor, Tensor]:
                K = system.kernel(block)
                variance = system.kernel.variance - system.explained(K)
                return (K @ system.alpha).squeeze(-1), variance

            mean, variance = in_blocks(
                moments, scaled, system.bytes_per_row, system.memory_budget
            )
            return mean, variance
        # Values and slopes from the same kernel rows: the backward pass is one product.
        mean, variance, *slopes = stationary_slopes(system, scaled)
        ctx.system = system
        ctx.save_for_backward(scaled, *slopes)
        return mean, variance

    @staticmethod
    def backward(
        ctx: Any, grad_mean: Tensor, grad_variance: Tensor
    ) -> tuple[Tensor, None]:
        scaled, mean_slope, variance_slope = ctx.saved_tensors
        if torch.is_grad_enabled():
            # A second derivative is wanted: the slopes again, this time with a graph.
            _, _, mean_slope, variance_slope = stationary_slopes(ctx.system, scaled)
        return (
            grad_mean.unsqueeze(-1) * mean_slope
            + grad_variance.unsqueeze(-1) * variance_slope
        ), None


class _Means(torch.autograd.Function):
    """The means, with the slopes as their gradients."""

    @staticmethod
    def forward(ctx: Any, scaled: Tensor, system: StationarySystem) -> Tensor:
        graph = ctx.needs_input_grad[0]

        def means(block: Tensor) -> tuple[Tensor, ...]:
            if not graph:
                return ((system.kernel(block) @ system.alpha).squeeze(-1),)
            K, D = system.kernel.value_and_slope(block)
            return (K @ system.alpha).squeeze(-1), _mean_slope(system, block, D)

        mean, *slopes = in_blocks(
            means, scaled, system.bytes_per_row, system.memory_budget
        )
        ctx.system = system
        ctx.save_for_backward(scaled, *slopes)
        return mean

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        scaled, slope = ctx.saved_tensors
        if torch.is_grad_enabled():
            # A second derivative is wanted: the slopes again, this time with a graph.
            slope = stationary_mean_slopes(ctx.system, scaled)
        return grad.unsqueeze(-1) * slope, None


def _slopes(
    system: StationarySystem, scaled: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""Moments and slopes; ``dk_j/da = D_j (a - b_j)`` with ``D`` from the kernel.

    So the slope of ``sum_j w_j k_j`` is ``a sum_j w_j D_j - sum_j w_j D_j b_j``.
    """
    points = system.kernel.points  # t x d
    # D_j is twice the derivative in r^2, so that dk_j/da = D_j (a - b_j).
    K, D = system.kernel.value_and_slope(scaled)  # N x t
    explained, W = system.explained.with_weights(K)
    mean_slope = _mean_slope(system, scaled, D)
    weighted_slopes = D * W  # N x t: d sigma^2 = -2 k' P dk, w_j = -2 (P k)_j
    # sum_j w_j D_j (a - b_j) = a sum_j w_j D_j - (w D) b: two products of matrices.
    total = weighted_slopes.sum(-1, keepdim=True)
    variance_slope = -2.0 * (scaled * total - weighted_slopes @ points)
    # The kernel is stationary: k(z, z) is its variance everywhere.
    variance = system.kernel.variance - explained
    return (K @ system.alpha).squeeze(-1), variance, mean_slope, variance_slope


def _mean_slope(system: StationarySystem, scaled: Tensor, D: Tensor) -> Tensor:
    """``d mu = sum_j alpha_j dk_j``: the weights ``w_j`` are ``alpha_j``."""
    points, alpha = system.kernel.points, system.alpha  # t x d, t x 1
    # The same for the weights alpha, both sums in one product.
    weighted_points = D @ torch.cat([alpha, alpha * points], dim=-1)  # N x (1 + d)
    return scaled * weighted_points[:, :1] - weighted_points[:, 1:]
