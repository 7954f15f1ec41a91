r"""Moments of an exact GP with a stationary kernel, and their slopes, in one sweep.

Mean and variance at a test point depend on that point alone, so their gradients are two
vectors of length ``d`` per point. They are computed together with the moments, while
the kernel row is still in the processor's cache; nothing of size ``N x t`` outlives its
chunk, and the backward pass costs next to nothing.

Per test point: two products with a ``t x t`` matrix (``4 t^2`` flops), one with the
gradient and one without.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from botorch_drbo import _arrays
from botorch_drbo.posterior.stationary import StationaryKernel

# Elements of one N x t temporary: small enough for the cache, large enough for BLAS.
_CHUNK_ELEMENTS = 2**17
_TEMPORARIES = 8


class FusedSlopes(NamedTuple):
    r"""Moments at ``N`` points and their slopes in the scaled inputs.

    Args:
        mean: ``N``, without the prior mean.
        variance: ``N``.
        mean_slope: ``N x d``.
        variance_slope: ``N x d``.
    """

    mean: Tensor  # N
    variance: Tensor  # N
    mean_slope: Tensor  # N x d
    variance_slope: Tensor  # N x d


def fused_moments(
    kernel: StationaryKernel,
    alpha: Tensor,
    inverse_root: Tensor,
    scaled: Tensor,
    memory_budget: int,
) -> tuple[Tensor, Tensor]:
    r"""Evaluate ``k alpha`` and ``k(z, z) - |L^-1 k|^2`` for each row.

    Args:
        kernel: The kernel, which holds the training inputs.
        alpha: ``(K + noise)^-1 (y - m)``, ``t x 1``.
        inverse_root: ``L^-1``, ``t x t``.
        scaled: Test inputs from ``kernel.scale``, ``N x d``.
        memory_budget: Bytes for the temporaries of one chunk.

    Returns:
        Means without the prior mean, and variances, ``N`` each; twice differentiable
        in ``scaled``.
    """
    rows = _rows(scaled, len(alpha), memory_budget)
    return _FusedMoments.apply(scaled, kernel, alpha, inverse_root, rows)


def fused_slopes(
    kernel: StationaryKernel,
    alpha: Tensor,
    inverse_root: Tensor,
    scaled: Tensor,
    memory_budget: int,
) -> FusedSlopes:
    r"""Evaluate the moments of ``fused_moments`` and their slopes.

    Args:
        kernel: The kernel, which holds the training inputs.
        alpha: ``(K + noise)^-1 (y - m)``, ``t x 1``.
        inverse_root: ``L^-1``, ``t x t``.
        scaled: Test inputs from ``kernel.scale``, ``N x d``.
        memory_budget: Bytes for the temporaries of one chunk.

    Returns:
        Moments and slopes, differentiable in ``scaled``.
    """
    chunks = scaled.split(_rows(scaled, len(alpha), memory_budget))

    def slopes(chunk: Tensor) -> FusedSlopes:
        return _slopes(kernel, alpha, inverse_root, chunk)

    if len(chunks) == 1:
        return slopes(scaled)
    graph = torch.is_grad_enabled() and scaled.requires_grad
    parts = [
        checkpoint(slopes, chunk, use_reentrant=False) if graph else slopes(chunk)
        for chunk in chunks
    ]
    return FusedSlopes(*(torch.cat(part) for part in zip(*parts, strict=True)))


def _rows(scaled: Tensor, num_points: int, memory_budget: int) -> int:
    """Rows of one chunk."""
    elements = memory_budget // (_TEMPORARIES * scaled.element_size())
    if _arrays.on_cpu(scaled):
        elements = min(elements, _CHUNK_ELEMENTS)
    return max(1, elements // num_points)


class _FusedMoments(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        scaled: Tensor,
        kernel: StationaryKernel,
        alpha: Tensor,
        inverse_root: Tensor,
        rows: int,
    ) -> tuple[Tensor, Tensor]:
        ctx.parts = kernel, alpha, inverse_root, rows
        if not ctx.needs_input_grad[0]:
            parts = [
                _moments(kernel, alpha, inverse_root, chunk)
                for chunk in scaled.split(rows)
            ]
            means, variances = zip(*parts, strict=True)
            return torch.cat(means), torch.cat(variances)
        parts = [
            _slopes(kernel, alpha, inverse_root, chunk) for chunk in scaled.split(rows)
        ]
        slopes = (
            parts[0]
            if len(parts) == 1
            else FusedSlopes(*(torch.cat(part) for part in zip(*parts, strict=True)))
        )
        ctx.save_for_backward(scaled, slopes.mean_slope, slopes.variance_slope)
        return slopes.mean, slopes.variance

    @staticmethod
    def backward(
        ctx: Any, grad_mean: Tensor, grad_variance: Tensor
    ) -> tuple[Tensor, None, None, None, None]:
        scaled, mean_slope, variance_slope = ctx.saved_tensors
        if torch.is_grad_enabled():
            # A second derivative is wanted: the slopes again, this time with a graph.
            kernel, alpha, inverse_root, rows = ctx.parts
            chunks = scaled.split(rows)

            def slopes(chunk: Tensor) -> tuple[Tensor, Tensor]:
                return _slopes(kernel, alpha, inverse_root, chunk)[2:]

            parts = [
                slopes(chunk)
                if len(chunks) == 1
                else checkpoint(slopes, chunk, use_reentrant=False)
                for chunk in chunks
            ]
            mean_slope, variance_slope = (
                torch.cat(part) for part in zip(*parts, strict=True)
            )
        grad = (
            grad_mean.unsqueeze(-1) * mean_slope
            + grad_variance.unsqueeze(-1) * variance_slope
        )
        return grad, None, None, None, None


def _moments(
    kernel: StationaryKernel, alpha: Tensor, inverse_root: Tensor, scaled: Tensor
) -> tuple[Tensor, Tensor]:
    K = kernel(scaled)  # N x t
    explained = (K @ inverse_root.mT).square().sum(-1)
    return (K @ alpha).squeeze(-1), kernel.outputscale - explained


def _slopes(
    kernel: StationaryKernel, alpha: Tensor, inverse_root: Tensor, scaled: Tensor
) -> FusedSlopes:
    r"""Moments and slopes; ``dk_j/da = D_j (a - b_j)`` with ``D`` from the kernel.

    So the slope of ``sum_j w_j k_j`` is ``a sum_j w_j D_j - sum_j w_j D_j b_j``.
    """
    K, D = kernel.value_and_slope(scaled)  # N x t
    points = kernel.points  # t x d
    with_alpha = D @ torch.cat([alpha, alpha * points], dim=-1)  # N x (1 + d)
    mean_slope = scaled * with_alpha[:, :1] - with_alpha[:, 1:]
    V = K @ inverse_root.mT  # N x t
    weighted = D * (V @ inverse_root)  # N x t
    total = weighted.sum(-1, keepdim=True)
    variance_slope = -2.0 * (scaled * total - weighted @ points)
    return FusedSlopes(
        mean=(K @ alpha).squeeze(-1),
        variance=kernel.outputscale - V.square().sum(-1),
        mean_slope=mean_slope,
        variance_slope=variance_slope,
    )
