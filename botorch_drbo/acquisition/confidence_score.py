"""The score of a decision and a context: ``mu + w sigma``, and nothing else."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from botorch_drbo._device import beside
from botorch_drbo.posterior import MomentSlopes


class ConfidenceScore(NamedTuple):
    r"""An upper confidence bound, and its slope in the context.

    .. math:: s = \mu + w \sigma, \qquad
        \nabla s = \nabla \mu + \frac{w}{2 \sigma} \nabla \sigma^2

    Args:
        width: ``w``: a scalar, or one for each model of an ensemble, ``S``.
        min_variance: Variances below it count as this, and have no slope.
    """

    width: Tensor
    min_variance: float

    def __call__(self, mean: Tensor, variance: Tensor) -> Tensor:
        r"""Evaluate the upper bound.

        Args:
            mean: ``... x n``, of an ensemble ``... x S x n``.
            variance: The same shape.

        Returns:
            ``mu + w sigma``, the same shape.
        """
        return mean + self._half(variance)

    def lower(self, mean: Tensor, variance: Tensor) -> Tensor:
        r"""Evaluate the lower bound.

        Args:
            mean: ``... x n``, of an ensemble ``... x S x n``.
            variance: The same shape.

        Returns:
            ``mu - w sigma``, the same shape.
        """
        return mean - self._half(variance)

    def slope(self, at: MomentSlopes) -> Tensor:
        r"""Evaluate the slope of the upper bound in the context.

        Args:
            at: Moments ``... x k`` and their slopes ``... x k x d_c``.

        Returns:
            ``... x k x d_c``.
        """
        sigma = at.variance.clamp_min(self.min_variance).sqrt()
        share = 0.5 * self._width(sigma) * (at.variance > self.min_variance) / sigma
        return at.mean_slope + share.unsqueeze(-1) * at.variance_slope

    def _half(self, variance: Tensor) -> Tensor:
        """Half the interval, ``w sigma``."""
        return self._width(variance) * variance.clamp_min(self.min_variance).sqrt()

    def _width(self, like: Tensor) -> Tensor:
        width = beside(self.width, like)
        return width.unsqueeze(-1) if width.ndim else width  # S x 1 beside S x n
