"""The context's side of a kernel that factorises: ``k = sum_m s_m a_m(x) b_m(c)``."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.exceptions.errors import UnsupportedError
from gpytorch.kernels import Kernel
from torch import Tensor
from torch.nn import Module

from botorch_drbo.kernels.components import (
    KernelComponent,
    correlation,
    is_rbf,
    kernel_components,
)


class ContextKernel(Module):
    r"""Rows ``b_m(c, c_j)`` of the context factors of a kernel, side by side.

    .. math:: k(z, z') = \sum_m s_m\, a_m(x, x')\, b_m(c, c')

    For any decision and any data, means are linear and explained variances quadratic in
    these rows. A column holds one summand and one training input, weighted by the
    summand's share of the variance, so no row has an entry above one.
    """

    # The contexts of the training inputs, ``t x d_c``, float64.
    points: Tensor

    def __init__(self, components: Sequence[KernelComponent], points: Tensor) -> None:
        super().__init__()
        self.variance = sum(component.variance for component in components)
        # Numbers, not tensors: a kernel row must not wait for the device.
        self.summands = [
            (component.variance / self.variance, active)
            for component in components
            if (
                active := [
                    (factor.smoothness, weights)
                    for factor in component.factors
                    if any(weights := factor.weights.tolist())
                ]
            )
        ]
        # The share of each summand, and one over its squared lengthscales.
        self.precisions = [
            (
                share,
                [
                    sum(weight * weight for weight in column)
                    for column in zip(*(weights for _, weights in factors), strict=True)
                ],
            )
            for share, factors in self.summands
        ]
        self.smooth = all(
            is_rbf(smoothness)
            for _, factors in self.summands
            for smoothness, _ in factors
        )
        self.register_buffer("points", points, persistent=False)

    @property
    def num_columns(self) -> int:
        """Columns of a row."""
        return len(self.summands) * len(self.points)

    def forward(self, contexts: Tensor) -> Tensor:
        """Evaluate the rows.

        Shapes: ``contexts``: ``n x d_c``, returns ``n x (m t)``.
        """
        rows = [contexts.new_empty(len(contexts), 0)]
        for share, factors in self.summands:
            # s_m of each summand, as a share; the factors of one summand multiply.
            row: Tensor | float = share
            for smoothness, weights in factors:
                squared = self._squared_distance(contexts, weights)
                row = row * correlation(smoothness, squared)
            rows.append(torch.as_tensor(row))
        return torch.cat(rows, dim=-1)

    def rows_and_slopes(self, contexts: Tensor) -> tuple[Tensor, Tensor]:
        """Evaluate the rows and differentiate them (RBF factors only).

        Shapes: ``contexts``: ``n x d_c``, returns ``n x (m t)``.
        """
        # By differences, not by a matrix product: the skeleton needs every digit.
        gaps = contexts.mT.unsqueeze(-1) - self.points.mT.unsqueeze(-2)  # d_c x n x t
        rows, slopes = [], []
        for share, precisions in self.precisions:
            # -p gap in each column; the exponent is half of the sum of -p gap^2.
            scaled = torch.stack(
                [-p * gap for p, gap in zip(precisions, gaps, strict=True)]
            )  # d_c x n x t
            row = share * (0.5 * scaled * gaps).sum(0).exp()
            rows.append(row)
            slopes.append(scaled * row)  # d/dc exp(-p gap^2 / 2) = -p gap exp(..)
        if not rows:
            empty = contexts.new_empty(len(contexts), 0)
            return empty, empty.expand(contexts.shape[-1], -1, -1)
        return torch.cat(rows, dim=-1), torch.cat(slopes, dim=-1)

    def _squared_distance(self, contexts: Tensor, weights: list[float]) -> Tensor:
        """By differences, not by a matrix product: the skeleton needs every digit."""
        total: Tensor | None = None
        for column, weight in enumerate(weights):
            if weight != 0.0:
                left, right = (
                    weight * contexts[:, column],
                    weight * self.points[:, column],
                )
                squared = (left.unsqueeze(-1) - right).square_()
                total = squared if total is None else total.add_(squared)
        return contexts.new_zeros(()) if total is None else total


def context_components(
    kernel: Kernel, num_columns: int, context_columns: Sequence[int]
) -> list[KernelComponent] | None:
    """Find the context's side of a kernel, if the kernel factorises."""
    try:
        # An RBF factor splits over any columns: exp of a sum. Another one must look at
        # one side only.
        components = kernel_components(kernel, num_columns)
    except UnsupportedError:
        return None
    columns = list(context_columns)
    decision_columns = [
        column for column in range(num_columns) if column not in columns
    ]
    for component in components:
        for factor in component.factors:
            mixes = (
                factor.weights[columns].any() and factor.weights[decision_columns].any()
            )
            if mixes and not is_rbf(factor.smoothness):
                return None
    return [
        component._replace(
            factors=tuple(
                factor._replace(weights=factor.weights[columns])
                for factor in component.factors
            )
        )
        for component in components
    ]
