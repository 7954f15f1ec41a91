r"""Correlations of training inputs, and their slopes in the hyper-parameters.

In squared differences ``r_j^2`` of each column, in lengthscales. Slopes are those in
the logarithms of the lengthscales, and of a shape if there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol, cast, final

import numpy as np
import torch
from gpytorch.kernels import (
    Kernel,
    MaternKernel,
    ProductKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)

Array = np.ndarray

_APART = 0.15  # a lengthscale at which two levels have correlation exp(-44)


class Correlation(Protocol):
    """A kernel of size one."""

    num_shapes: ClassVar[int]
    """How many positive parameters there are beside the lengthscales."""

    def value_and_slopes(self, squared: Array, shapes: Array) -> tuple[Array, Array]:
        """Of squared differences ``d x p``: ``p`` values, ``(d + shapes) x p``."""
        ...

    def kernel(self, lengthscales: Array, shapes: Array) -> Kernel:
        """The same as GPyTorch has it, float64."""
        ...


@final
@dataclass(frozen=True)
class RBF:
    r"""``exp(-r^2 / 2)`` with ``r^2`` the sum over the columns."""

    num_shapes: ClassVar[int] = 0

    def value_and_slopes(self, squared: Array, shapes: Array) -> tuple[Array, Array]:
        """See ``Correlation``."""
        # r^2 has a factor l^-2 for each column, so d exp(-r^2/2) / d log l_j = k r_j^2.
        value = np.exp(-0.5 * squared.sum(0))
        return value, value * squared

    def kernel(self, lengthscales: Array, shapes: Array) -> Kernel:
        """See ``Correlation``."""
        return _of_lengthscales(RBFKernel(ard_num_dims=len(lengthscales)), lengthscales)


@final
@dataclass(frozen=True)
class ProductMatern:
    r"""A product of one-dimensional Matern kernels.

    .. math:: \prod_j \phi_\nu(a_j), \qquad a_j = \sqrt{2 \nu}\, r_j

    with ``phi`` the polynomial ``1 + a`` or ``1 + a + a^2 / 3`` times ``exp(-a)``. It
    factorises over decision and context, which the radial form does not.

    Args:
        smoothness: ``nu``, 1.5 or 2.5.
    """

    num_shapes: ClassVar[int] = 0
    smoothness: float

    def value_and_slopes(self, squared: Array, shapes: Array) -> tuple[Array, Array]:
        """See ``Correlation``."""
        # Half-integer smoothness: a polynomial in a = sqrt(2 nu) |z - z'| / l, times
        # exp(-a).
        a = np.sqrt(2.0 * self.smoothness * squared)
        if self.smoothness == 1.5:
            polynomial, slope = 1.0 + a, a * a  # slope: -a d/da, times exp(a)
        else:
            polynomial = 1.0 + a + a * a / 3.0
            slope = a * a * (1.0 + a) / 3.0
        # A product of exponentials is one exponential of the sum: one call of exp.
        value = polynomial.prod(0) * np.exp(-a.sum(0))
        return value, value * (slope / polynomial)

    def kernel(self, lengthscales: Array, shapes: Array) -> Kernel:
        """See ``Correlation``."""
        parts = [
            _of_lengthscales(
                MaternKernel(self.smoothness, active_dims=[column]), lengthscale
            )
            for column, lengthscale in enumerate(np.asarray(lengthscales))
        ]
        return parts[0] if len(parts) == 1 else ProductKernel(*parts)


@final
@dataclass(frozen=True)
class RadialMatern:
    r"""``phi(sqrt(2 nu) r)`` with ``r^2`` the sum over the columns.

    Args:
        smoothness: ``nu``, 1.5 or 2.5.
    """

    num_shapes: ClassVar[int] = 0
    smoothness: float

    def value_and_slopes(self, squared: Array, shapes: Array) -> tuple[Array, Array]:
        """See ``Correlation``."""
        # The same polynomial of the distance over all columns: not a product.
        a = np.sqrt(2.0 * self.smoothness * squared.sum(0))
        decay = np.exp(-a)
        if self.smoothness == 1.5:
            return (1.0 + a) * decay, 3.0 * decay * squared
        return (1.0 + a + a * a / 3.0) * decay, 5 / 3 * (1.0 + a) * decay * squared

    def kernel(self, lengthscales: Array, shapes: Array) -> Kernel:
        """See ``Correlation``."""
        kernel = MaternKernel(self.smoothness, ard_num_dims=len(lengthscales))
        return _of_lengthscales(kernel, lengthscales)


@final
@dataclass(frozen=True)
class RationalQuadratic:
    r"""``(1 + r^2 / (2 alpha))^-alpha``: RBF kernels of many lengthscales, mixed.

    The shape is ``alpha``.
    """

    num_shapes: ClassVar[int] = 1

    def value_and_slopes(self, squared: Array, shapes: Array) -> tuple[Array, Array]:
        """See ``Correlation``."""
        alpha = shapes[0]
        # A mixture of RBF kernels over Gamma distributed inverse squared lengthscales.
        excess = squared.sum(0) / (2.0 * alpha)
        value = (1.0 + excess) ** -alpha
        slopes = value / (1.0 + excess) * squared
        # d k / d log alpha; log1p keeps digits where alpha is large and this is nearly
        # an RBF.
        shape = alpha * value * (excess / (1.0 + excess) - np.log1p(excess))
        return value, np.concatenate([slopes, shape[None]])

    def kernel(self, lengthscales: Array, shapes: Array) -> Kernel:
        """See ``Correlation``."""
        kernel = RQKernel(ard_num_dims=len(lengthscales))
        kernel = cast(RQKernel, _of_lengthscales(kernel, lengthscales))
        kernel.alpha = torch.from_numpy(shapes)
        return kernel


@final
@dataclass(frozen=True)
class WithCategories:
    r"""A correlation of numbers, times one of each category that knows no order.

    .. math:: \phi(r)\, \prod_v \exp(-[z_v \ne z'_v] / l_v^2)

    which is RBF with one lengthscale for all columns of a category: two of its levels
    have squared distance 2. There is one lengthscale for each variable.

    Args:
        numbers: The correlation of the numbers; it has no shape.
        num_variables: Numbers and categories.
        categories: Variables that are categories, and how many levels each has.
    """

    num_shapes: ClassVar[int] = 0
    numbers: Correlation
    num_variables: int
    categories: Mapping[int, int]

    def value_and_slopes(self, squared: Array, shapes: Array) -> tuple[Array, Array]:
        """See ``Correlation``; of squared differences of variables."""
        numbers, levels = self._numbers, list(self.categories)
        of_numbers, slopes = self.numbers.value_and_slopes(squared[numbers], shapes)
        of_levels, level_slopes = RBF().value_and_slopes(squared[levels], shapes)
        # The product rule, column by column: each lengthscale belongs to one factor.
        joint = np.empty_like(squared)
        joint[numbers] = of_levels * slopes
        joint[levels] = of_numbers * level_slopes
        return of_numbers * of_levels, joint

    def kernel(self, lengthscales: Array, shapes: Array) -> Kernel:
        """See ``Correlation``."""
        levels = list(self.categories)
        # A category has a lengthscale, repeated for each of its one-hot columns.
        each = np.repeat(lengthscales[levels], list(self.categories.values()))
        kernel = self._on(RBF().kernel(each, shapes), levels)
        if not self._numbers:
            return kernel
        of_numbers = self.numbers.kernel(lengthscales[self._numbers], shapes)
        return ProductKernel(self._on(of_numbers, self._numbers), kernel)

    def main_effects(self, variances: Array) -> list[Kernel]:
        """Of each category: ``a_v`` if the level is the same, otherwise nothing."""
        # An RBF so short that two levels are uncorrelated: GPyTorch has no kernel of
        # equality.
        apart = np.array([_APART])
        return [
            scaled(self._on(RBF().kernel(apart, apart[:0]), [variable]), variance)
            for variable, variance in zip(self.categories, variances, strict=True)
        ]

    @property
    def _numbers(self) -> list[int]:
        return [j for j in range(self.num_variables) if j not in self.categories]

    def _on(self, kernel: Kernel, variables: list[int]) -> Kernel:
        """On the columns of some variables, in their order."""
        widths = [self.categories.get(j, 1) for j in range(self.num_variables)]
        columns = torch.arange(sum(widths)).split(widths)
        kernel.active_dims = torch.cat([columns[variable] for variable in variables])
        return kernel


def scaled(kernel: Kernel, variance: float) -> Kernel:
    """A kernel times a variance, float64."""
    kernel = ScaleKernel(kernel).double()
    kernel.outputscale = torch.tensor(variance, dtype=torch.double)
    return kernel


def _of_lengthscales(kernel: Kernel, lengthscales: Array) -> Kernel:
    """In float64 before it is set: a constant would be rounded to the default dtype."""
    kernel = kernel.double()
    kernel.lengthscale = torch.as_tensor(lengthscales)
    return kernel
