"""Rows ``k(z, Z)`` of a kernel's summand, with the columns of ``z`` in two groups."""

from __future__ import annotations

import math
from itertools import compress
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import Module

from botorch_drbo.kernels.components import KernelComponent
from botorch_drbo.kernels.correlations import (
    Smoothness,
    correlation_and_slope,
    is_rbf,
)
from botorch_drbo.kernels.correlations import correlation as factor_correlation


class KernelSide(NamedTuple):
    r"""What one group of columns contributes to the rows of a summand.

    Args:
        correlation: The product of the factors that look at this group alone, and of
            this group's half of the RBF factors, ``... x N x t``; None if there is
            none of either.
        squared: For each Matern factor of both groups, its squared distance in the
            columns of this one, ``... x N x t``.
    """

    correlation: Tensor | None
    squared: list[Tensor]


class SplitComponent(Module):
    r"""One summand of a kernel against the training inputs, in two groups of columns.

    .. math:: k(z, z') = s\, a(x, x')\, b(c, c')
        \prod_m \phi_m\big(r_m^2(x, x') + r_m^2(c, c')\big)

    The product runs over the Matern factors that look at both groups; without such
    factors (``separable``) the summand is a product of two kernels.

    Args:
        component: The summand.
        points: The training inputs, ``t x d``, float64.
        split: The first ``split`` columns are the first group.
    """

    weights: Tensor
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
        r"""Evaluate one group.

        Args:
            inputs: The group's columns, ``... x N x k``.
            group: 0 or 1.

        Returns:
            The group's part of the rows.
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
        r"""Evaluate one group of a separable summand, and its slopes in the inputs.

        Args:
            inputs: The group's columns, ``N x k``.
            group: 0 or 1.

        Returns:
            The group's part of the rows, ``N x t``, and its derivatives in each column,
            ``k x N x t``. Matern-1/2 has none.
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
        r"""Evaluate the factors of both groups at every pair.

        Args:
            first: The first group's side, ``... x N x t``.
            second: The second group's side, ``n x t``.

        Returns:
            Their product, ``... x N x n x t``.
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
