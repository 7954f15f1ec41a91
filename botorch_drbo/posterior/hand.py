"""Moments of a few decisions, and their gradients, without autograd."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from botorch_drbo._arrays import alike
from botorch_drbo._by_hand import Call
from botorch_drbo.posterior.affine_inputs import AffineInputs
from botorch_drbo.posterior.confidence_bounds import (
    ConfidenceBounds,
    ExpectedBounds,
    OwnBoundSlopes,
    bound_slopes,
    lowest_bounds,
)
from botorch_drbo.posterior.interpolant import ContextInterpolant


class HandInterpolant:
    r"""A ``ContextInterpolant`` of arrays, for chains of calls by hand.

    Args:
        wanted: Whether gradients are.
        rows: The call that made the kernel rows from the decisions.
        moments: The call that made the moments at the skeleton from these.
        interpolant: The interpolant of these moments.
        affine: What the kernel sees of the contexts.
        width: By how many standard deviations bounds lie above the mean.
        min_variance: Variances below it count as this, and have no slope.
    """

    def __init__(
        self,
        wanted: bool,
        rows: Call,
        moments: Call,
        interpolant: ContextInterpolant,
        affine: AffineInputs,
        width: float,
        min_variance: float,
    ) -> None:
        r"""Keep the calls.

        Args:
            wanted: Whether gradients are.
            rows: The call that made the kernel rows from the decisions.
            moments: The call that made the moments at the skeleton from these.
            interpolant: The interpolant of these moments.
            affine: What the kernel sees of the contexts.
            width: By how many standard deviations bounds lie above the mean.
            min_variance: Variances below it count as this, and have no slope.
        """
        self.wanted, self.rows, self.moments = wanted, rows, moments
        self.interpolant = interpolant
        self.options = width, min_variance
        self.affine, self.at = affine, moments.value
        (self.interpolation,) = alike(self.at, interpolant.interpolation)

    def pull(self, gradient: Any) -> Any:
        """From a gradient in the moments, ``2 x b x r``, to that in the decisions."""
        return self.rows.pull(self.moments.pull(gradient))

    def expected_bound(self, weights: Any) -> Call:
        """Averages over the first contexts, ``b``."""
        inner = self.interpolation[:, : len(weights)]
        return Call(self.wanted, ExpectedBounds, self.at, inner, weights, *self.options)

    def confidence_bounds(self, columns: slice) -> Call:
        """Bounds at some of the contexts, ``b x n``."""
        inner = self.interpolation[:, columns]
        return Call(self.wanted, ConfidenceBounds, self.at, inner, *self.options)

    def lowest_bound(self, columns: slice) -> tuple[Any, Any]:
        """The lowest bound at some of the contexts, ``b``, and its gradient."""
        inner = self.interpolation[:, columns]
        lowest = lowest_bounds(self.at, inner, *self.options)  # pyright: ignore
        column = inner.T[lowest]  # b x r
        mean, variance = (self.at * column).sum(-1)
        width, min_variance = self.options
        sigma = np.sqrt(np.maximum(variance, min_variance))
        share = 0.5 * width * (variance > min_variance) / sigma
        return mean + width * sigma, np.stack([column, share[:, None] * column])

    def slopes(self, contexts: torch.Tensor) -> Any:
        """Slopes of the bounds at ``k x d_c`` contexts, ``d_c x b x k``."""
        values, slopes = self.interpolant.shared_matrices(contexts)
        return bound_slopes(self.at, values, slopes, *self.options)  # pyright: ignore

    def own_slopes(self, contexts: Any) -> Call:
        """Slopes at ``b x k x d_c`` contexts, ``d_c x b x k``."""
        anchor, image, slope = alike(contexts, *self.affine.parts())
        inside = (image + (contexts - anchor) * slope).reshape(-1, len(slope))
        matrices = self.interpolant.skeleton.values_and_slopes(inside)
        matrices[1:] *= slope[:, None, None]
        own = matrices.reshape(len(matrices), *contexts.shape[:2], -1)
        return Call(self.wanted, OwnBoundSlopes, self.at, own, *self.options)
