r"""Upper confidence bounds at many contexts from moments at a few.

Between the moments at ``r`` skeleton contexts and the scores at ``n`` contexts lie one
interpolation, one root and a sum. Done one after the other by autograd, each of them
reads and writes ``b x n`` numbers several times, and keeps them. Here a few decisions
are taken through all of it while their numbers are in the processor's cache.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from botorch_drbo import _arrays
from botorch_drbo._arrays import arrays, on_device

# Decisions x contexts that are worked off at a time on a CPU.
_CHUNK_ELEMENTS = 2**16


def expected_bounds(
    moments: Tensor,
    interpolation: Tensor,
    weights: Tensor,
    width: float | Tensor,
    min_variance: float,
) -> Tensor:
    r"""Average ``mu + w sigma`` over contexts.

    .. math:: \sum_i p_i \Big(\sum_s E_{si}\, \mu_s
        + w\, \big(\sum_s E_{si}\, \sigma^2_s\big)^{1/2}\Big)

    The mean costs ``O(r)`` per decision; nothing of size ``b x n`` is kept.

    Args:
        moments: Means and variances at the skeleton, ``2 x b x r``.
        interpolation: ``E``, ``r x n``.
        weights: ``p``, ``n``.
        width: ``w``; a number on a CPU, else a scalar that stays on its device.
        min_variance: Variances below it count as this, and have no slope.

    Returns:
        ``b``, twice differentiable in the moments.
    """
    return _ExpectedBounds.apply(moments, interpolation, weights, width, min_variance)


def confidence_bounds(
    moments: Tensor, interpolation: Tensor, width: float | Tensor, min_variance: float
) -> Tensor:
    r"""Evaluate ``mu + w sigma`` at each context.

    Args:
        moments: Means and variances at the skeleton, ``2 x b x r``.
        interpolation: ``E``, ``r x n``.
        width: ``w``; a number on a CPU, else a scalar that stays on its device.
        min_variance: Variances below it count as this, and have no slope.

    Returns:
        ``b x n``, twice differentiable in the moments.
    """
    return _ConfidenceBounds.apply(moments, interpolation, width, min_variance)


def bound_slopes(
    moments: Tensor,
    values: Tensor,
    slopes: Tensor,
    width: float | Tensor,
    min_variance: float,
) -> Tensor:
    r"""Differentiate ``mu + w sigma`` in the context, without a graph.

    Args:
        moments: Means and variances at the skeleton, ``2 x b x r``.
        values: Interpolation to the contexts, ``r x k``.
        slopes: Its derivatives in each column of the context, ``d_c x r x k``.
        width: ``w``; a number on a CPU, else a scalar that stays on its device.
        min_variance: Variances below it have no slope.

    Returns:
        ``b x k x d_c``.
    """
    d_c, r, k = slopes.shape
    b = moments.shape[1]
    xp, (at, values_, slopes_) = arrays(b * k, moments, values, slopes)
    found = xp.empty((b, k, d_c), dtype=at.dtype, **on_device(at))
    factor = 0.5 * width
    rows = _rows(values)
    for start in range(0, b, rows):
        means, variances = at[:, start : start + rows]
        sigma, low = _roots(xp, variances @ values_, min_variance)
        for column, matrix in enumerate(slopes_):
            change = (factor * variances) @ matrix
            change /= sigma
            change[low] = 0.0
            change += means @ matrix
            found[start : start + rows, :, column] = change
    return torch.as_tensor(found)


def own_bound_slopes(
    moments: Tensor, matrices: Tensor, width: float | Tensor, min_variance: float
) -> Tensor:
    r"""Differentiate ``mu + w sigma`` in contexts that each decision has of its own.

    Args:
        moments: Means and variances at the skeleton, ``2 x b x r``.
        matrices: Interpolation to the contexts, and its derivatives in each column of
            the context, ``(1 + d_c) x b x k x r``.
        width: ``w``; a number on a CPU, else a scalar that stays on its device.
        min_variance: Variances below it have no slope.

    Returns:
        ``b x k x d_c``, twice differentiable in the moments.
    """
    return _OwnBoundSlopes.apply(moments, matrices, width, min_variance)


class _OwnBoundSlopes(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        moments: Tensor,
        matrices: Tensor,
        width: float | Tensor,
        min_variance: float,
    ) -> Tensor:
        xp, (at, matrices_) = arrays(matrices.numel(), moments, matrices)
        both = matrices_ @ at.swapaxes(0, 2).swapaxes(0, 1)  # (1 + d_c) x b x k x 2
        variance, change = both[0, ..., 1], both[1:, ..., 1]
        sigma, low = _roots(xp, variance + 0.0, min_variance)
        share = 0.5 * width / sigma
        share[low] = 0.0
        if ctx.needs_input_grad[0]:
            ctx.save_for_backward(moments, matrices)
            ctx.rest = share, variance, change, width, min_variance
        slopes = both[1:, ..., 0] + change * share
        return torch.as_tensor(slopes).movedim(0, -1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None, None, None]:
        moments, matrices = ctx.saved_tensors
        share, variance, change, width, min_variance = ctx.rest
        if torch.is_grad_enabled():  # a second derivative is wanted
            both = matrices @ moments.movedim(0, -1)
            sigma = both[0, ..., 1].clamp_min(min_variance).sqrt()
            share = (both[0, ..., 1] > min_variance) * (0.5 * width) / sigma
            slopes = both[1:, ..., 0] + both[1:, ..., 1] * share
            (inner,) = torch.autograd.grad(
                slopes.movedim(0, -1), moments, grad, create_graph=True
            )
            return inner, None, None, None
        xp, (matrices_, upstream) = arrays(
            matrices.numel(), matrices, grad.movedim(-1, 0)
        )  # upstream: d_c x b x k
        weights = xp.empty(
            (*matrices_.shape[:2], 2, matrices_.shape[2]),
            dtype=matrices_.dtype,
            **on_device(matrices_),
        )
        weights[0, :, 0] = 0.0
        weights[0, :, 1] = (upstream * change).sum(0) * share / (-2.0 * variance)
        weights[1:, :, 0] = upstream
        weights[1:, :, 1] = upstream * share
        inner = (weights @ matrices_).sum(0).swapaxes(0, 1)  # 2 x b x r
        return torch.as_tensor(inner), None, None, None


class _ExpectedBounds(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        moments: Tensor,
        interpolation: Tensor,
        weights: Tensor,
        width: float | Tensor,
        min_variance: float,
    ) -> Tensor:
        b, n = moments.shape[1], len(weights)
        xp, (at, E, p) = arrays(b * n, moments, interpolation, weights)
        slope = E @ p  # r
        of_variance = xp.empty_like(at[1])
        found = at[0] @ slope
        rows = _rows(interpolation)
        for start in range(0, b, rows):
            chunk = slice(start, start + rows)
            sigma, low = _roots(xp, at[1, chunk] @ E, min_variance)
            found[chunk] += (sigma @ p) * width
            if ctx.needs_input_grad[0]:
                share = p / sigma
                share[low] = 0.0
                of_variance[chunk] = share @ E.swapaxes(0, 1)
        if ctx.needs_input_grad[0]:
            of_variance *= 0.5 * width
            ctx.save_for_backward(moments, interpolation, weights)
            ctx.rest = slope, of_variance, width, min_variance
        return torch.as_tensor(found)

    @staticmethod
    def backward(
        ctx: Any, grad: Tensor
    ) -> tuple[Tensor | None, None, None, None, None]:
        moments, interpolation, weights = ctx.saved_tensors
        slope, of_variance, width, min_variance = ctx.rest
        if torch.is_grad_enabled():  # a second derivative is wanted
            bounds = _plainly(moments, interpolation, width, min_variance)
            (inner,) = torch.autograd.grad(
                bounds @ weights, moments, grad, create_graph=True
            )
            return inner, None, None, None, None
        xp, (upstream,) = arrays(moments.shape[1] * len(weights), grad)
        inner = xp.empty(
            (2, *of_variance.shape), dtype=of_variance.dtype, **on_device(of_variance)
        )
        inner[0] = upstream[:, None] * slope
        inner[1] = upstream[:, None] * of_variance
        return torch.as_tensor(inner), None, None, None, None


class _ConfidenceBounds(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        moments: Tensor,
        interpolation: Tensor,
        width: float | Tensor,
        min_variance: float,
    ) -> Tensor:
        b, n = moments.shape[1], interpolation.shape[1]
        xp, (at, E) = arrays(b * n, moments, interpolation)
        found = xp.empty((b, n), dtype=at.dtype, **on_device(at))
        slope = xp.empty_like(found) if ctx.needs_input_grad[0] else None
        rows = _rows(interpolation)
        for start in range(0, b, rows):
            chunk = slice(start, start + rows)
            sigma, low = _roots(xp, at[1, chunk] @ E, min_variance)
            if slope is not None:
                share = 0.5 * width / sigma
                share[low] = 0.0
                slope[chunk] = share
            sigma *= width
            sigma += at[0, chunk] @ E
            found[chunk] = sigma
        if slope is not None:
            ctx.save_for_backward(moments, interpolation)
            ctx.rest = slope, width, min_variance
        return torch.as_tensor(found)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None, None, None]:
        moments, interpolation = ctx.saved_tensors
        slope, width, min_variance = ctx.rest
        if torch.is_grad_enabled():  # a second derivative is wanted
            (inner,) = torch.autograd.grad(
                _plainly(moments, interpolation, width, min_variance),
                moments,
                grad,
                create_graph=True,
            )
            return inner, None, None, None
        xp, (upstream, E) = arrays(grad.numel(), grad, interpolation)
        inner = xp.empty((2, len(upstream), len(E)), dtype=E.dtype, **on_device(E))
        inner[0] = upstream @ E.swapaxes(0, 1)
        inner[1] = (upstream * slope) @ E.swapaxes(0, 1)
        return torch.as_tensor(inner), None, None, None


def _rows(interpolation: Tensor) -> int:
    """Decisions of one chunk; on a GPU all."""
    if not _arrays.on_cpu(interpolation):
        return 2**31 - 1
    return max(1, _CHUNK_ELEMENTS // max(1, interpolation.shape[-1]))


def _roots(xp: Any, variance: Any, min_variance: float) -> tuple[Any, Any]:
    """``sigma``, and which variances were raised; takes the argument's place."""
    low = variance <= min_variance
    variance[low] = min_variance
    return xp.sqrt(variance, out=variance), low


def _plainly(
    moments: Tensor, interpolation: Tensor, width: float | Tensor, min_variance: float
) -> Tensor:
    """The same bounds by operations that autograd differentiates."""
    mean, variance = moments @ interpolation
    return mean + width * variance.clamp_min(min_variance).sqrt()
