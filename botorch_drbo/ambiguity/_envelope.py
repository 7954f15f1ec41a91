"""Gradients of worst-case values, by the envelope theorem (Danskin's)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Once(torch.autograd.Function):
    """A gradient that must not be differentiated in what it was found from."""

    @staticmethod
    def forward(ctx: Any, found: Tensor, *inputs: Tensor) -> Tensor:
        return found.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        raise RuntimeError(
            "Worst-case values have first derivatives only (once_differentiable): a "
            "second derivative in scores, weights or radius is not available."
        )


class Envelope(torch.autograd.Function):
    """A number, as found, with gradients given by the envelope theorem.

    Danskin's theorem [Danskin1966]_: the derivative of a minimum is the partial
    derivative of its objective at the minimiser,
    ``dv = q.df + (reference gradient).dp - multiplier * d radius``.
    ``coefficients`` are the derivatives in the scores. The gradients hold to first
    order only. ``Once`` makes a second derivative an error, where plain autograd would
    return a silent zero. (Torch's ``once_differentiable`` is silent as well where the
    incoming gradient is a constant, as that of a sum.)
    """

    @staticmethod
    def forward(
        ctx: Any,
        found: Tensor,
        values: Tensor,
        coefficients: Tensor,
        weights: Tensor,
        reference_gradient: Tensor | None,
        radius: Tensor,
        multiplier: Tensor,
    ) -> Tensor:
        arguments = (values, weights, radius)
        ctx.save_for_backward(*arguments, coefficients, reference_gradient, multiplier)
        return found.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        *arguments, coefficients, reference_gradient, multiplier = ctx.saved_tensors
        slopes = (coefficients, reference_gradient, -multiplier)
        # Danskin: the derivative is that of the Lagrangian at the optimum, which stays.
        needed = ctx.needs_input_grad[1:6:2]
        gradients: list[Tensor | None] = []
        with torch.no_grad():
            for need, argument, slope in zip(needed, arguments, slopes, strict=True):
                # Scores and weights have a last dimension over contexts.
                scale = grad if slope is slopes[2] else grad.unsqueeze(-1)
                part = (scale * slope).sum_to_size(argument.shape) if need else None
                gradients.append(part)
        if torch.is_grad_enabled():  # a graph of the gradients was asked for
            gradients = [
                g if g is None else Once.apply(g, grad, *arguments) for g in gradients
            ]
        in_values, in_weights, in_radius = gradients
        return None, in_values, None, in_weights, None, in_radius, None
