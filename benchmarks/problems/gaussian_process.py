r"""The posterior mean of a GP with fixed hyper-parameters, fast at many points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor
from torch.autograd.function import once_differentiable

from botorch_drbo.test_functions.base import Separated

_ENTRIES = 2**20  # of the kernel matrix at a time: 8 MB, near the size of a cache


@dataclass(frozen=True)
class GaussianProcessMean:
    r"""The posterior mean of a GP with fixed hyper-parameters, computed in float64.

    .. math::
        m(z) = \bar y + s_y \, (\mu + k(z, Z) \alpha), \quad
        \alpha = (K + \sigma^2 I)^{-1} ((y - \bar y) / s_y - \mu).

    Args:
        points: The training inputs over their lengthscales, ``n x d``.
        weights: The outputscale times :math:`\alpha`, ``n``.
        lengthscale: One lengthscale per input, ``d``.
        smooth: True for an RBF kernel, False for Matern-5/2.
        constant: The prior mean :math:`\mu` of standardised outcomes.
        shift: :math:`\bar y`.
        scale: :math:`s_y`.

    Example:
        >>> import torch
        >>> points = torch.tensor([[0.0], [1.0]]).double()
        >>> mean = GaussianProcessMean.fit(
        ...     points, torch.tensor([1.0, 3.0]).double(),
        ...     lengthscale=torch.ones(1).double(), outputscale=1.0, noise=1e-10,
        ...     constant=0.0, shift=2.0, scale=1.0, smooth=True,
        ... )
        >>> [round(value, 4) for value in mean(points).tolist()]
        [1.0, 3.0]
    """

    points: Tensor
    weights: Tensor
    lengthscale: Tensor
    smooth: bool
    constant: float
    shift: float
    scale: float

    @classmethod
    def fit(
        cls,
        points: Tensor,
        outcomes: Tensor,
        *,
        lengthscale: Tensor,
        outputscale: float,
        noise: float,
        constant: float,
        shift: float,
        scale: float,
        smooth: bool,
    ) -> GaussianProcessMean:
        r"""Solve for the weights once.

        Args:
            points: The training inputs, ``n x d``.
            outcomes: Their outcomes in their own units, ``n``.
            lengthscale: One lengthscale per input, ``d``.
            outputscale: The kernel's variance.
            noise: The noise variance of standardised outcomes.
            constant: The prior mean of standardised outcomes.
            shift: Subtracted from the outcomes to standardise them.
            scale: Divides the shifted outcomes.
            smooth: True for an RBF kernel, False for Matern-5/2.

        Returns:
            The posterior mean.
        """
        points = (points / lengthscale).double()  # n x d
        correlation, _ = _kernels(_squared_distance(points, points), smooth)
        covariance = outputscale * correlation
        covariance.diagonal().add_(noise)
        residual = ((outcomes - shift) / scale - constant).double().unsqueeze(-1)
        alpha = torch.cholesky_solve(residual, torch.linalg.cholesky(covariance))
        weights = outputscale * alpha.squeeze(-1)
        return cls(points, weights, lengthscale, smooth, constant, shift, scale)

    def __call__(self, Z: Tensor) -> Tensor:
        r"""Return the posterior mean; differentiable once in Z.

        Args:
            Z: Inputs, ``N x d``.

        Returns:
            Means, ``N``, of Z's dtype.
        """
        points = self.points.to(Z.device)
        scaled = Z.to(points) / self.lengthscale.to(points)
        weighted = _WeightedSum.apply(
            scaled, points, self.weights.to(points), self.smooth
        )
        assert isinstance(weighted, Tensor)
        return (self.shift + self.scale * (self.constant + weighted)).to(Z.dtype)

    def separate(self, decision: Sequence[int], context: Sequence[int]) -> Separated:
        r"""Return feature maps of decision and context whose product is the mean.

        An RBF kernel is a product over coordinates, so
        :math:`m(z) = \bar y + s_y \mu + \sum_j s_y \alpha_j k(x, x_j) k(c, c_j)`.

        Args:
            decision: The columns of Z that are decisions.
            context: The other columns.

        Returns:
            Maps to ``n + 1`` features, in float64.

        Raises:
            UnsupportedError: A Matern kernel, which is no such product.
        """
        if not self.smooth:
            raise UnsupportedError(
                "A Matern-5/2 kernel is not a product over coordinates. Evaluate the "
                "mean at pairs of a decision and a context."
            )
        constant = self.weights.new_tensor([self.shift + self.scale * self.constant])
        first = torch.cat([self.scale * self.weights, constant])  # n + 1
        return Separated(
            partial(_rbf_features, mean=self, columns=list(decision), factors=first),
            partial(
                _rbf_features,
                mean=self,
                columns=list(context),
                factors=torch.ones_like(first),
            ),
        )


def _rbf_features(
    points: Tensor, *, mean: GaussianProcessMean, columns: list[int], factors: Tensor
) -> Tensor:
    """Return the kernel rows of some columns, times factors: ``N x (n + 1)``."""
    centres = mean.points[:, columns].to(points.device)
    scaled = points.to(centres) / mean.lengthscale[columns].to(centres)
    # Two or three columns: differences are as fast as a product, and exact.
    squared = sum(
        (scaled[:, j].unsqueeze(-1) - centres[:, j]).square()
        for j in range(len(columns))
    )
    assert isinstance(squared, Tensor)
    rows = (-0.5 * squared).exp()  # N x n
    return torch.cat([rows, torch.ones_like(rows[:, :1])], -1) * factors.to(rows)


class _WeightedSum(torch.autograd.Function):
    r"""Kernel-weighted sums :math:`\sum_j w_j k(z, z_j)` and their gradient in z.

    The gradient of both kernels is :math:`\sum_j w_j g(z, z_j) (z_j - z)` for a scalar
    g, so the forward pass gets it from the same kernel rows by matrix products;
    autograd would keep, and run through, several ``N x n`` matrices.
    """

    @staticmethod
    def forward(
        ctx: Any, z: Tensor, points: Tensor, weights: Tensor, smooth: bool
    ) -> Tensor:
        values, slopes = [], []
        moments = torch.cat([weights.unsqueeze(-1), weights.unsqueeze(-1) * points], -1)
        for rows in z.split(max(1, _ENTRIES // len(points))):
            value, slope = _kernels(_squared_distance(rows, points), smooth)  # r x n
            values.append(value @ weights)
            if ctx.needs_input_grad[0]:
                sums = slope @ moments  # r x (1 + d)
                slopes.append(sums[:, 1:] - sums[:, :1] * rows)
        if ctx.needs_input_grad[0]:
            ctx.save_for_backward(torch.cat(slopes))  # N x d
        return torch.cat(values)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None, None, None]:
        (slopes,) = ctx.saved_tensors
        return grad_outputs[0].unsqueeze(-1) * slopes, None, None, None


def _squared_distance(first: Tensor, second: Tensor) -> Tensor:
    """Return ``|a - b|^2`` by one product: ``N x n``.

    Scaled coordinates stay near 10, so the cancellation costs about 1e-13.
    """
    ones = torch.ones_like
    norm = (first**2).sum(-1, keepdim=True)
    other = (second**2).sum(-1, keepdim=True)
    left = torch.cat([-2 * first, norm, ones(norm)], dim=-1)
    right = torch.cat([second, ones(other), other], dim=-1)
    return left @ right.mT


def _kernels(squared: Tensor, smooth: bool) -> tuple[Tensor, Tensor]:
    """Return ``k`` and ``g = -2 dk/d(squared distance)``; overwrites ``squared``."""
    if smooth:
        value = squared.mul_(-0.5).exp_()
        return value, value
    root = squared.clamp_min_(0).mul_(5).sqrt()  # N x n
    decay = root.neg().exp_()
    slope = root.add_(1).mul_(decay)  # (1 + root) exp(-root)
    value = squared.mul_(decay).div_(3).add_(slope)
    return value, slope.mul_(5 / 3)
