r"""Upper confidence bounds at many contexts from moments at a few.

Between the moments at ``r`` skeleton contexts and the scores at ``n`` contexts lie one
interpolation, one root and a sum. Done one after the other by autograd, each of them
reads and writes ``b x n`` numbers several times, and keeps them. Here a few decisions
are taken through all of it while their numbers are in the processor's cache.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from botorch_drbo import _arrays
from botorch_drbo._arrays import arrays, given_back, on_device, raise_to

# Decisions x contexts that are worked off at a time on a CPU.
_CHUNK_ELEMENTS = 2**15


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
    return ExpectedBounds.apply(moments, interpolation, weights, width, min_variance)


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
    return ConfidenceBounds.apply(moments, interpolation, width, min_variance)


def lowest_bounds(
    moments: Tensor, interpolation: Tensor, width: float | Tensor, min_variance: float
) -> Tensor:
    r"""Find the context with the lowest ``mu + w sigma``, without a graph.

    Args:
        moments: Means and variances at the skeleton, ``2 x b x r``.
        interpolation: ``E``, ``r x n``.
        width: ``w``; a number on a CPU, else a scalar that stays on its device.
        min_variance: Variances below it count as this.

    Returns:
        Numbers of contexts, ``b``.
    """
    b, n = moments.shape[1], interpolation.shape[1]
    xp, (at, E) = arrays(b * n, moments, interpolation)
    rows = min(b, _rows(interpolation))
    bounds = xp.empty((rows, n), dtype=at.dtype, **on_device(at))
    lowest = []
    for start in range(0, b, rows):
        chunk = at[:, start : start + rows]
        found = bounds[: chunk.shape[1]]
        _bounds(xp, chunk, E, width, min_variance, found)
        lowest.append(found.argmin(-1))
    return given_back(xp.concatenate(lowest), moments)


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
        ``d_c x b x k``.
    """
    d_c, r, k = slopes.shape
    b = moments.shape[1]
    xp, (at, values_, slopes_) = arrays(b * k, moments, values, slopes)
    found = xp.empty((d_c, b, k), dtype=at.dtype, **on_device(at))
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
            found[column, start : start + rows] = change
    return given_back(found, moments)


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
        ``d_c x b x k``, twice differentiable in the moments.
    """
    return OwnBoundSlopes.apply(moments, matrices, width, min_variance)


class OwnBoundSlopes(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        moments: Tensor,
        matrices: Tensor,
        width: float | Tensor,
        min_variance: float,
    ) -> Tensor:
        size = math.prod(matrices.shape)
        xp, (at, matrices_) = arrays(size, moments, matrices)
        both = matrices_ @ at.swapaxes(0, 2).swapaxes(0, 1)  # (1 + d_c) x b x k x 2
        variance, change = both[0, ..., 1], both[1:, ..., 1]
        sigma, low = _roots(xp, variance + 0.0, min_variance)
        share = 0.5 * width / sigma
        share[low] = 0.0
        if ctx.needs_input_grad[0]:
            ctx.save_for_backward(moments, matrices)
            ctx.rest = share, variance, change, width, min_variance
        return given_back(both[1:, ..., 0] + change * share, moments)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None, None, None]:
        moments, matrices = ctx.saved_tensors
        share, variance, change, width, min_variance = ctx.rest
        if torch.is_grad_enabled():  # a second derivative is wanted
            both = matrices @ moments.movedim(0, -1)
            sigma = both[0, ..., 1].clamp_min(min_variance).sqrt()
            share = (both[0, ..., 1] > min_variance) * (0.5 * width) / sigma
            slopes = both[1:, ..., 0] + both[1:, ..., 1] * share
            (inner,) = torch.autograd.grad(slopes, moments, grad, create_graph=True)
            return inner, None, None, None
        size = math.prod(matrices.shape)
        xp, (upstream, matrices_) = arrays(size, grad, matrices)  # d_c x b x k first
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
        return given_back(inner, grad), None, None, None


class ExpectedBounds(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        moments: Tensor,
        interpolation: Tensor,
        weights: Tensor,
        width: float | Tensor,
        min_variance: float,
    ) -> Tensor:
        b, n = moments.shape[1], weights.shape[0]
        xp, (at, E, p) = arrays(b * n, moments, interpolation, weights)
        slope = E @ p  # r
        of_variance = xp.empty_like(at[1])
        found = at[0] @ slope
        rows = _rows(interpolation)
        for start in range(0, b, rows):
            chunk = slice(start, start + rows)
            variance = at[1, chunk] @ E
            low = variance <= min_variance if ctx.needs_input_grad[0] else None
            sigma = _sigma(xp, variance, min_variance)
            found[chunk] += (sigma @ p) * width
            if low is not None:
                share = p / sigma
                share[low] = 0.0
                of_variance[chunk] = share @ E.swapaxes(0, 1)
        if ctx.needs_input_grad[0]:
            of_variance *= 0.5 * width
            ctx.save_for_backward(moments, interpolation, weights)
            ctx.rest = slope, of_variance, width, min_variance
        return given_back(found, moments)

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
        size = moments.shape[1] * weights.shape[0]  # as before: the same kind
        xp, (upstream,) = arrays(size, grad)
        inner = xp.empty(
            (2, *of_variance.shape), dtype=of_variance.dtype, **on_device(of_variance)
        )
        inner[0] = upstream[:, None] * slope
        inner[1] = upstream[:, None] * of_variance
        return given_back(inner, grad), None, None, None, None


class ConfidenceBounds(torch.autograd.Function):
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
            if slope is None:
                _bounds(xp, at[:, chunk], E, width, min_variance, found[chunk])
                continue
            sigma, low = _roots(xp, at[1, chunk] @ E, min_variance)
            share = 0.5 * width / sigma
            share[low] = 0.0
            slope[chunk] = share
            sigma *= width
            sigma += at[0, chunk] @ E
            found[chunk] = sigma
        if slope is not None:
            ctx.save_for_backward(moments, interpolation)
            ctx.rest = slope, width, min_variance
        return given_back(found, moments)

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
        xp, (upstream, E) = arrays(math.prod(grad.shape), grad, interpolation)
        shape = (2, upstream.shape[0], E.shape[0])
        inner = xp.empty(shape, dtype=E.dtype, **on_device(E))
        inner[0] = upstream @ E.swapaxes(0, 1)
        inner[1] = (upstream * slope) @ E.swapaxes(0, 1)
        return given_back(inner, grad), None, None, None


def _bounds(
    xp: Any, moments: Any, E: Any, width: Any, min_variance: float, found: Any
) -> None:
    """``mu + w sigma`` of one chunk, into ``found``."""
    xp.matmul(moments[0], E, out=found)
    sigma = _sigma(xp, moments[1] @ E, min_variance)
    sigma *= width
    found += sigma


def _rows(interpolation: Any) -> int:
    """Decisions of one chunk; on a GPU all."""
    if isinstance(interpolation, Tensor) and not _arrays.on_cpu(interpolation):
        return 2**31 - 1
    return max(1, _CHUNK_ELEMENTS // max(1, interpolation.shape[-1]))


def _roots(xp: Any, variance: Any, min_variance: float) -> tuple[Any, Any]:
    """``sigma``, and which variances were raised; takes the argument's place."""
    low = variance <= min_variance
    return _sigma(xp, variance, min_variance), low


def _sigma(xp: Any, variance: Any, min_variance: float) -> Any:
    raise_to(variance, min_variance)
    return xp.sqrt(variance, out=variance)


def _plainly(
    moments: Tensor, interpolation: Tensor, width: float | Tensor, min_variance: float
) -> Tensor:
    """The same bounds by operations that autograd differentiates."""
    mean, variance = moments @ interpolation
    return mean + width * variance.clamp_min(min_variance).sqrt()
