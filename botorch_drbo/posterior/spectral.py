r"""Kernels as sums of products of stationary factors, and their spectral densities.

A tree of RBF, Matern, scaled, product and additive kernels is multiplied out into

.. math:: k(z, z') = \sum_c s_c \prod_f \phi_{\nu_f}(r_f^2), \qquad
    r_f^2 = \sum_j w_{fj}^2 (z_j - z'_j)^2

with ``w`` one over the lengthscale in a factor's active columns and zero elsewhere. In
this form both what a sample path needs are simple: frequencies (those of a product of
kernels are sums of the factors' frequencies, because characteristic functions of
independent sums multiply), and rows ``k(z, Z)``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple, cast

import torch
from botorch.exceptions.errors import UnsupportedError
from gpytorch.kernels import (
    AdditiveKernel,
    Kernel,
    MaternKernel,
    ProductKernel,
    RBFKernel,
    ScaleKernel,
)
from torch import Generator, Tensor


class StationaryFactor(NamedTuple):
    r"""A stationary correlation ``phi(r^2)`` of some of the columns.

    Args:
        smoothness: ``nu`` of a Matern kernel; infinity for RBF.
        weights: One over the lengthscale of each column, zero where it is not active,
            ``d``.
    """

    smoothness: float
    weights: Tensor

    def frequencies(self, shape: Sequence[int], generator: Generator) -> Tensor:
        r"""Draw from the spectral density: normal, or Student's t with 2 nu degrees.

        Args:
            shape: How many, any shape.
            generator: A generator of the CPU.

        Returns:
            Angular frequencies, ``shape x d``.
        """
        normal = torch.randn(
            *shape, len(self.weights), generator=generator, dtype=torch.double
        )
        if not math.isinf(self.smoothness):
            degrees = round(2 * self.smoothness)
            chi_squared = (
                torch.randn(*shape, degrees, generator=generator, dtype=torch.double)
                .square()
                .sum(-1, keepdim=True)
            )
            normal = normal * (degrees / chi_squared).sqrt()
        return self.weights * normal


class KernelComponent(NamedTuple):
    r"""One summand of a kernel: a variance times a product of correlations.

    Args:
        variance: ``s``.
        factors: At least one factor.
    """

    variance: float
    factors: tuple[StationaryFactor, ...]

    def frequencies(self, shape: Sequence[int], generator: Generator) -> Tensor:
        r"""Draw from the spectral density of the product.

        Args:
            shape: How many, any shape.
            generator: A generator of the CPU.

        Returns:
            Angular frequencies, ``shape x d``.
        """
        draws = [factor.frequencies(shape, generator) for factor in self.factors]
        return torch.stack(draws).sum(0)


def spectral_components(kernel: Kernel, num_columns: int) -> list[KernelComponent]:
    r"""Multiply a tree of kernels out.

    Args:
        kernel: RBF, Matern-1/2, -3/2 or -5/2, ``ScaleKernel``, ``ProductKernel``,
            ``AdditiveKernel`` of these, with ``active_dims`` and ARD.
        num_columns: The kernel's inputs ``d``.

    Returns:
        The summands, float64, on the CPU.

    Raises:
        UnsupportedError: Another kernel, or a batch of kernels.

    Example:
        >>> from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
        >>> k_x, k_c = RBFKernel(active_dims=[0]), MaternKernel(2.5, active_dims=[1])
        >>> components = spectral_components(k_x + ScaleKernel(k_c * k_x), 2)
        >>> [len(component.factors) for component in components]
        [1, 2]
    """
    return _called(kernel, list(range(num_columns)), num_columns)


def allocate(components: Sequence[KernelComponent], num_features: int) -> list[int]:
    r"""Share features out: half of them equally, half in proportion to the variances.

    Each component's variance is exact with any number of features; the more it has,
    the closer its paths come to being Gaussian.

    Args:
        components: The summands of a kernel.
        num_features: The total, at least one per component.

    Returns:
        Features of each component.
    """
    total = sum(component.variance for component in components)
    equal = max(1, num_features // (2 * len(components)))
    rest = num_features - equal * len(components)
    shares = [
        equal + (int(rest * component.variance / total) if total > 0 else 0)
        for component in components
    ]
    largest = max(range(len(shares)), key=shares.__getitem__)
    shares[largest] += num_features - sum(shares)
    return shares


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
        return [
            KernelComponent(
                math.prod(component.variance for component in choice),
                tuple(factor for component in choice for factor in component.factors),
            )
            for choice in product(*parts)
        ]
    if type(kernel) is RBFKernel:
        smoothness = math.inf
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
