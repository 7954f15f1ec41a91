r"""GPyTorch's kernels, multiplied out into sums of products of stationary factors.

Derivatives are taken in ``r^2``: they are finite at ``r = 0``. Taken through
``r = sqrt(r^2)``, as GPyTorch takes them, they are not.

A tree of RBF, Matern, rational quadratic, scaled, product and additive kernels becomes

.. math:: k(z, z') = \sum_m s_m \prod_f \phi_{\nu_f}(r_f^2), \qquad
    r_f^2 = \sum_j w_{fj}^2 (z_j - z'_j)^2

with ``w`` one over the lengthscale in a factor's active columns and zero elsewhere. In
this form everything that the library asks of a kernel is simple: rows ``k(z, Z)``, what
factorises over decision and context, slopes, and spectral densities (the frequencies of
a product of kernels are sums of the factors' frequencies, because characteristic
functions of independent sums multiply).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from botorch.exceptions.errors import UnsupportedError
from gpytorch.kernels import (
    AdditiveKernel,
    InducingPointKernel,
    Kernel,
    MaternKernel,
    ProductKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)
from torch import Generator, Tensor

_TINY = 1e-30  # of a squared distance whose root is differentiated


class RationalQuadratic(NamedTuple):
    r"""RBF kernels of many lengthscales, mixed: as smooth as one of them.

    .. math:: \phi(r^2) = \Big( 1 + \frac{r^2}{2 \alpha} \Big)^{-\alpha}
        = E_\tau\, e^{-\tau r^2 / 2}, \qquad \tau \sim \mathrm{Gamma}(\alpha, \alpha)
    """

    # The shape.
    alpha: float


Smoothness = float | RationalQuadratic
"""``nu`` of a Matern kernel, infinity for RBF, or a rational quadratic kernel."""


def is_rbf(smoothness: Smoothness) -> bool:
    """Whether a radial kernel is a product of one-dimensional ones."""
    return smoothness == math.inf


def is_smooth(smoothness: Smoothness) -> bool:
    """Whether a kernel has derivatives of every order."""
    return is_rbf(smoothness) or isinstance(smoothness, RationalQuadratic)


def correlation(smoothness: Smoothness, squared: Tensor) -> Tensor:
    """Evaluate ``phi(r^2)`` of a stationary kernel.

    Twice differentiable at zero distance where the kernel is; Matern-1/2, which has a
    kink there, gets a slope of zero.
    """
    if isinstance(smoothness, RationalQuadratic):
        alpha = smoothness.alpha
        return (-alpha * (squared / (2.0 * alpha)).log1p()).exp()
    if is_rbf(smoothness):
        return (-0.5 * squared).exp()
    if smoothness == 0.5:
        return _exponential(squared, 1.0)
    if smoothness == 1.5:
        return _FirstOrder.apply(squared, 3.0)
    return _Matern52.apply(squared)


def correlation_and_slope(
    smoothness: Smoothness, squared: Tensor
) -> tuple[Tensor, Tensor]:
    """Evaluate ``phi`` and twice its derivative, ``2 phi'(r^2)``.

    So the gradient of ``phi(|a - b|^2)`` in ``a`` is ``2 phi' (a - b)``. Both can be
    differentiated once more.
    """
    # 2 phi' is -phi / (1 + r^2 / 2 alpha) for a rational quadratic, -phi for RBF, -5/3
    # (1 + a) exp(-a) for Matern-5/2, and -3 exp(-a) for Matern-3/2.
    value = correlation(smoothness, squared)
    if isinstance(smoothness, RationalQuadratic):
        return value, -value / (1.0 + squared / (2.0 * smoothness.alpha))
    if is_rbf(smoothness):
        return value, -value
    if smoothness == 2.5:
        return value, -5.0 / 3.0 * _FirstOrder.apply(squared, 5.0)
    return value, -3.0 * _exponential(squared, 3.0)


def _exponential(squared: Tensor, scale: float) -> Tensor:
    """``exp(-sqrt(s r^2))``; the floor keeps its derivative at zero from being NaN.

    That derivative has a pole at ``r = 0``, which the factor ``a - b`` of the chain
    rule cancels.
    """
    return (-math.sqrt(scale) * squared.clamp_min(_TINY).sqrt()).exp()


class _Matern52(torch.autograd.Function):
    """``(1 + a + a^2 / 3) exp(-a)`` with ``a = sqrt(5 r^2)``."""

    @staticmethod
    def forward(ctx: Any, squared: Tensor) -> Tensor:
        ctx.save_for_backward(squared)
        a = squared.mul(5.0).sqrt_()  # in place: the time goes into memory
        polynomial = a.div(3.0).add_(1.0).mul_(a).add_(1.0)
        return a.neg_().exp_().mul_(polynomial)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        # d/d(r^2) = -5/6 (1 + a) exp(-a)
        (squared,) = ctx.saved_tensors
        return -5.0 / 6.0 * grad * _FirstOrder.apply(squared, 5.0)


class _FirstOrder(torch.autograd.Function):
    """``(1 + a) exp(-a)`` with ``a = sqrt(s r^2)``.

    Matern-3/2 at ``s = 3``; at ``s = 5`` the slope of Matern-5/2 up to a factor.
    """

    @staticmethod
    def forward(ctx: Any, squared: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(squared)
        ctx.scale = scale
        a = squared.mul(scale).sqrt_()
        polynomial = a.add(1.0)
        return a.neg_().exp_().mul_(polynomial)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        # d/d(r^2) = -s/2 exp(-a)
        (squared,) = ctx.saved_tensors
        return -ctx.scale / 2 * grad * _exponential(squared, ctx.scale), None


# -phi''(0) of each correlation in units of one over the squared lengthscale.
_CURVATURE = {1.5: 3.0, 2.5: 5.0 / 3.0, math.inf: 1.0}


class StationaryFactor(NamedTuple):
    """A stationary correlation ``phi(r^2)`` of some of the columns."""

    # ``nu`` of a Matern kernel; infinity for RBF; or rational quadratic.
    smoothness: Smoothness
    # One over the lengthscale of each column, zero where it is not active, ``d``.
    weights: Tensor

    def frequencies(self, shape: Sequence[int], generator: Generator) -> Tensor:
        """Draw from the spectral density.

        Normal for RBF, Student's t with ``2 nu`` degrees for Matern, normal with a
        Gamma variance for a rational quadratic kernel.

        Shapes: returns ``shape x d``.
        """
        normal = torch.randn(
            *shape, len(self.weights), generator=generator, dtype=torch.double
        )
        if isinstance(self.smoothness, RationalQuadratic):
            # RBF of random lengthscales: one over their squares is Gamma distributed.
            alpha = self.smoothness.alpha
            seed = int(torch.randint(2**31, (), generator=generator))
            drawn = np.random.default_rng(seed).standard_gamma(alpha, [*shape, 1])
            normal = normal * (torch.from_numpy(drawn) / alpha).sqrt()
        elif not is_rbf(self.smoothness):
            # Bochner: the spectral density of Matern is a t distribution of 2 nu
            # degrees, a normal over the root of a mean of squares.
            degrees = round(2 * self.smoothness)
            chi_squared = (
                torch.randn(*shape, degrees, generator=generator, dtype=torch.double)
                .square()
                .sum(-1, keepdim=True)
            )
            normal = normal * (degrees / chi_squared).sqrt()
        return self.weights * normal


class KernelComponent(NamedTuple):
    """One summand of a kernel: a variance times a product of correlations."""

    # ``s``.
    variance: float
    # At least one factor.
    factors: tuple[StationaryFactor, ...]

    def frequencies(self, shape: Sequence[int], generator: Generator) -> Tensor:
        """Draw from the spectral density of the product.

        Shapes: returns ``shape x d``.
        """
        # A product of correlations: the sum of independent frequencies.
        draws = [factor.frequencies(shape, generator) for factor in self.factors]
        return torch.stack(draws).sum(0)


def kernel_components(kernel: Kernel, num_columns: int) -> list[KernelComponent]:
    """Multiply a tree of kernels out."""
    return _called(kernel, list(range(num_columns)), num_columns)


def curvature_at_zero(component: KernelComponent) -> Tensor:
    r"""Find how fast a summand falls from its peak, in each column.

    .. math:: -\partial^2_{z_j} k(0) = s \sum_f c_{\nu_f} w_{fj}^2

    with ``c`` 1 for RBF and rational quadratic, 3 for Matern-3/2 and 5/3 for
    Matern-5/2: of a product of correlations, which all are one with slope zero there,
    the curvatures add up.
    """
    if any(factor.smoothness == 0.5 for factor in component.factors):
        raise UnsupportedError("its kernel has a Matern-1/2 part, which has a kink")
    curvatures = [
        _curvature(factor.smoothness) * factor.weights.square()
        for factor in component.factors
    ]
    return component.variance * torch.stack(curvatures).sum(0)


def _curvature(smoothness: Smoothness) -> float:
    return 1.0 if isinstance(smoothness, RationalQuadratic) else _CURVATURE[smoothness]


def _called(kernel: Kernel, columns: list[int], d: int) -> list[KernelComponent]:
    """``kernel(z, z')``, which selects the active columns first."""
    if kernel.active_dims is not None:
        columns = [columns[i] for i in cast(Tensor, kernel.active_dims).tolist()]
    return _forward(kernel, columns, d)


def _forward(kernel: Kernel, columns: list[int], d: int) -> list[KernelComponent]:
    """``kernel.forward(z, z')``, on columns that are selected already."""
    if len(kernel.batch_shape):
        raise UnsupportedError(
            f"its {type(kernel).__name__} is a batch of {tuple(kernel.batch_shape)} "
            "kernels"
        )
    if type(kernel) is ScaleKernel:  # calls its base kernel's `forward`
        scale = cast(Tensor, kernel.outputscale).item()
        return [
            component._replace(variance=scale * component.variance)
            for component in _forward(kernel.base_kernel, columns, d)
        ]
    if type(kernel) is AdditiveKernel or type(kernel) is ProductKernel:
        parts = [
            _called(cast(Kernel, part), columns, d)
            for part in cast(Sequence[Kernel], kernel.kernels)
        ]
        if type(kernel) is AdditiveKernel:
            return [component for part in parts for component in part]
        # Distributive law: one summand for each choice of a summand in every factor.
        return [
            KernelComponent(
                math.prod(component.variance for component in choice),
                tuple(factor for component in choice for factor in component.factors),
            )
            for choice in product(*parts)
        ]
    if type(kernel) is RBFKernel:
        smoothness: Smoothness = math.inf
    elif type(kernel) is RQKernel:
        smoothness = RationalQuadratic(kernel.alpha.item())
    elif type(kernel) is MaternKernel and kernel.nu in (0.5, 1.5, 2.5):
        smoothness = float(kernel.nu)
    else:
        raise UnsupportedError(f"its kernel has a part {type(kernel).__name__}")
    lengthscale = cast(Tensor, kernel.lengthscale).detach().double().cpu().reshape(-1)
    precision = lengthscale.expand(len(columns)).square().reciprocal()
    # A column that is selected twice counts twice.
    weights = torch.zeros(d, dtype=torch.double)
    weights = weights.index_add(0, torch.tensor(columns), precision).sqrt()
    return [KernelComponent(1.0, (StationaryFactor(smoothness, weights),))]


def prior_kernel(kernel: Kernel) -> Kernel:
    """The kernel of the function itself, before any of its data are summed up."""
    return kernel.base_kernel if isinstance(kernel, InducingPointKernel) else kernel
