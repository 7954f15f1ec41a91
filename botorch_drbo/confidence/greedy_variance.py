"""Uncertainty sampling: greedy choice of the point of largest posterior variance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_drbo._validation import check_count, check_points

# Variances that differ by less are equal: a tie goes to the first point on every
# machine, and not to whichever rounding favours.
_RELATIVE_TIE, _ABSOLUTE_TIE = 1e-9, 1e-14


class GreedyVariance:
    r"""Posterior variances of a list of points while observations are added to it.

    .. math:: i_t = \arg\max_{i} \sigma^2_{t-1}(z_i), \qquad
        \sigma^2_t(z) = \sigma^2_{t-1}(z) - v_t(z)^2

    with ``v_t`` the row that the observation at :math:`z_{i_t}` adds to
    ``L^-1 k(Z_t, z)``, where ``L`` is the Cholesky factor of the covariance of the
    noisy observations so far:

    .. math:: v_t(z) = \frac{k(z_{i_t}, z) - \sum_{s < t} v_s(z_{i_t}) v_s(z)}
        {\sqrt{\sigma^2_{t-1}(z_{i_t}) + \text{noise}}}

    This is a partial Cholesky factorisation with diagonal pivots, one row for each
    observation. A step evaluates one row of the kernel and costs ``O(N t)``; nothing is
    factored again. A variance does not depend on outcomes, so a whole batch can be
    chosen before the first of its outcomes is in. A point may be observed more than
    once.

    Args:
        kernel: Any GPyTorch kernel without a batch shape, its outputscale included.
        points: What the kernel takes, ``N x d``.
        noise_variance: The variance of the observation noise, in the kernel's units.

    Raises:
        InputDataError: Points that are not finite, or noise that is not positive.
        BotorchTensorDimensionError: Points that are no matrix with at least one row.
        UnsupportedError: A batch of kernels.

    Example:
        >>> from gpytorch.kernels import RBFKernel
        >>> line = torch.linspace(0.0, 1.0, 5, dtype=torch.double).unsqueeze(-1)
        >>> greedy = GreedyVariance(RBFKernel(), line, noise_variance=0.01)
        >>> greedy.extend(3)  # an end, the other end, the middle
        [0, 4, 2]
    """

    def __init__(
        self, kernel: Kernel, points: Tensor, noise_variance: float | Tensor
    ) -> None:
        if len(kernel.batch_shape):
            raise UnsupportedError(
                f"The kernel is a batch of kernels (batch_shape "
                f"{tuple(kernel.batch_shape)}). Pass one kernel."
            )
        noise = float(noise_variance)
        if not 0.0 < noise < float("inf"):
            raise InputDataError(
                f"`noise_variance` must be positive and finite, got {noise}. For "
                "outcomes without noise give a small number, such as 1e-6."
            )
        self._kernel = cast(Callable[..., Any], kernel)
        self._points = check_points(points, "points").detach()
        self._noise = noise
        with torch.no_grad():
            prior = self._kernel(self._points, diag=True)  # N
        self._variance = prior.detach().double().clone()
        self._tie = _ABSOLUTE_TIE * self._variance.max()
        self._rows = self._variance.new_empty(0, len(points))  # grows by doubling
        self._indices: list[int] = []
        self._gains: list[float] = []

    @property
    def variance(self) -> Tensor:
        """The posterior variance of each point, ``N``, float64."""
        return self._variance.clamp_min(0.0)

    @property
    def indices(self) -> tuple[int, ...]:
        """The points observed so far, in order."""
        return tuple(self._indices)

    @property
    def variances_observed(self) -> Tensor:
        """The variance of each of them just before it was observed, ``t``."""
        return self._variance.new_tensor(self._gains)

    def best(self, among: Tensor | None = None) -> int:
        r"""The point of the largest variance; of equal ones the first.

        Args:
            among: Which points may be chosen, ``N`` booleans; None for all.

        Returns:
            Its index.

        Raises:
            InputDataError: No point may be chosen.
        """
        variance = self._variance
        if among is not None:
            if not bool(among.any()):
                raise InputDataError("`among` leaves no point to choose from.")
            variance = torch.where(among, variance, -torch.inf)
        largest = variance.max()
        threshold = largest - _RELATIVE_TIE * largest.abs() - self._tie
        return int((variance >= threshold).nonzero()[0])

    def observe(self, index: int) -> None:
        r"""Add one noisy observation of a point: ``O(N t)``.

        Args:
            index: The point.

        Raises:
            InputDataError: There is no such point.
        """
        n, t = len(self._variance), len(self._indices)
        if not 0 <= index < n:
            raise InputDataError(f"`index` must be 0 to {n - 1}, got {index}.")
        if t == len(self._rows):
            enlarged = self._rows.new_empty(max(16, 2 * t), n)
            enlarged[:t] = self._rows
            self._rows = enlarged
        with torch.no_grad():
            point = self._points[index].unsqueeze(0)
            row = self._kernel(point, self._points).to_dense().squeeze(0).double()
        factor = self._rows[:t]
        point_variance = self._variance[index].clamp_min(0.0)
        # v_t = (k(z_i, .) - sum_s v_s(z_i) v_s) / sqrt(sigma^2(z_i) + noise)
        row = row - factor[:, index] @ factor  # N
        self._rows[t] = row / (point_variance + self._noise).sqrt()
        self._variance -= self._rows[t].square()
        self._indices.append(index)
        self._gains.append(point_variance.item())

    def extend(self, num: int, among: Tensor | None = None) -> list[int]:
        r"""Choose and observe, one by one.

        Args:
            num: How many.
            among: Which points may be chosen, ``N`` booleans; None for all.

        Returns:
            The points chosen now, in order.

        Raises:
            InputDataError: ``num`` is not a positive integer, or no point may be
                chosen.
        """
        chosen: list[int] = []
        for _ in range(check_count(num, "num")):
            chosen.append(self.best(among))
            self.observe(chosen[-1])
        return chosen
