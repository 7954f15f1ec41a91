r"""Random functions of any dimension, known everywhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import final

import numpy as np
import torch
from torch import Tensor

from botorch_drbo.sampling import derive_seed
from botorch_drbo.test_functions.base import RobustTestFunction, Separated, normal_law
from botorch_drbo.test_functions.closed_form import unit_bounds

_NUM_WAVES = 512
_LENGTHSCALE = 0.5
_DEVIATION = 0.15  # of each context around .5


class SmoothSample(RobustTestFunction):
    r"""A sum of random waves: nearly a sample of a Gaussian process of variance one.

    .. math:: f(z) = \sqrt{2 / m} \sum_{j=1}^m w_j \cos(\omega_j^\top z + b_j), \quad
        w_j \sim N(0, 1), \ \omega_j \sim N(0, .5^{-2} I), \ b_j \sim U(0, 2 \pi)

    with ``z = [x, c]`` in the unit cube and m = 512: its covariance over the seeds is
    that of a squared exponential kernel of lengthscale .5. Contexts follow
    N(.5, .15^2), clipped.

    Args:
        d_x: The number of decision columns.
        d_c: The number of context columns.
        seed: Picks the function.
        noise_std: Standard deviation of the observation noise.
    """

    def __init__(
        self, d_x: int, d_c: int, seed: int, *, noise_std: float = 0.0
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        size = (_NUM_WAVES, d_x + d_c + 2)
        draws = torch.randn(size, generator=generator, dtype=torch.double)
        phases = 2 * math.pi * torch.special.ndtr(draws[:, -1])  # uniform
        waves = draws[:, : d_x + d_c] / _LENGTHSCALE  # m x (d_x + d_c)
        weights = math.sqrt(2 / _NUM_WAVES) * draws[:, -2]
        # cos(a + b) = cos a cos b - sin a sin b
        factors = Separated(
            partial(_decision, waves=waves[:, :d_x], phases=phases, weights=weights),
            partial(_context, waves=waves[:, d_x:]),
        )
        super().__init__(
            f"smooth_{d_x}_{d_c}",
            bounds=unit_bounds(d_x),
            context_bounds=unit_bounds(d_c),
            context_law=normal_law(0.5, _DEVIATION, d_c),
            noise_std=noise_std,
            separated=factors,
        )
        self._factors = factors

    def _evaluate(self, x: Tensor, c: Tensor) -> Tensor:
        return (self._factors.decision(x) * self._factors.context(c)).sum(-1)


def _decision(x: Tensor, *, waves: Tensor, phases: Tensor, weights: Tensor) -> Tensor:
    angle = x @ waves.mT.to(x) + phases.to(x)  # N x m
    return weights.to(x).repeat(2) * torch.cat([angle.cos(), angle.sin()], dim=-1)


def _context(c: Tensor, *, waves: Tensor) -> Tensor:
    angle = c @ waves.mT.to(c)  # N x m
    return torch.cat([angle.cos(), -angle.sin()], dim=-1)


_NUM_PRIOR_WAVES = 1024
_LENGTHSCALES = (0.2, 1.0)  # in sides of the boxes, log-uniform
_PRIOR_DEVIATION = 0.2  # of each context around .5

Scales = Callable[[np.random.Generator, int], np.ndarray]
"""Draws of ``tau``: the kernel is the mean of ``exp(-tau r^2 / 2)`` over them."""

KERNELS: dict[str, Scales] = {
    "rbf": lambda rng, m: np.ones(m),
    # A frequency of Matern's kernel is Student's t with 2 nu degrees of freedom.
    "matern_5_2": lambda rng, m: 5.0 / rng.chisquare(5.0, m),
    "matern_3_2": lambda rng, m: 3.0 / rng.chisquare(3.0, m),
    "rational_quadratic": lambda rng, m: rng.gamma(1.0, 1.0, m),  # alpha = 1
}


@final
class Waves:
    r"""A sum of random waves over ``d`` columns, of variance one at every point.

    .. math:: g(z) = m^{-1/2} \sum_{j=1}^m a_j \cos(\omega_j^\top z)
        + b_j \sin(\omega_j^\top z), \quad a_j, b_j \sim N(0, 1)

    Given the frequencies it is exactly Gaussian with variance one, and over the draws
    of the frequencies its covariance is the kernel.

    Args:
        kernel: A key of ``KERNELS``.
        lengthscales: ``d``, in the units of ``z``.
        rng: Where all draws come from.
        num_waves: ``m``.
    """

    def __init__(
        self,
        kernel: str,
        lengthscales: Tensor,
        rng: np.random.Generator,
        num_waves: int = _NUM_PRIOR_WAVES,
    ) -> None:
        scales = torch.from_numpy(KERNELS[kernel](rng, num_waves)).sqrt()
        draws = torch.from_numpy(rng.standard_normal((num_waves, len(lengthscales))))
        self.frequencies = scales[:, None] * draws / lengthscales  # m x d
        self.weights = torch.from_numpy(rng.standard_normal((2, num_waves)))
        self.weights = self.weights / math.sqrt(num_waves)

    def decision(self, x: Tensor) -> Tensor:
        """Features of the first columns, ``N x d_x`` to ``N x 2 m``."""
        angle = x @ self.frequencies[:, : x.shape[-1]].mT.to(x)
        a, b = self.weights.to(x)
        cos, sin = angle.cos(), angle.sin()
        return torch.cat([a * cos + b * sin, b * cos - a * sin], dim=-1)

    def context(self, c: Tensor) -> Tensor:
        """Features of the last columns, ``N x d_c`` to ``N x 2 m``."""
        angle = c @ self.frequencies[:, -c.shape[-1] :].mT.to(c)
        return torch.cat([angle.cos(), angle.sin()], dim=-1)


@final
class PriorSample(RobustTestFunction):
    r"""A sample of a prior over decisions and contexts in the unit cube.

    The lengthscales, one for each column, are log-uniform between .2 and 1. Contexts
    follow N(.5, .2^2), clipped.

    Args:
        kernel: A key of ``KERNELS``.
        d_x: The number of decision columns.
        d_c: The number of context columns.
        seed: Picks the lengthscales and the sample.
        noise_std: Standard deviation of the observation noise; the prior's is one.

    Example:
        >>> sample = PriorSample("matern_5_2", 2, 1, seed=3)
        >>> sample.d_x, sample.d_c
        (2, 1)
    """

    def __init__(
        self, kernel: str, d_x: int, d_c: int, seed: int, *, noise_std: float = 0.0
    ) -> None:
        number = list(KERNELS).index(kernel)
        rng = np.random.default_rng(derive_seed(seed, number, d_x, d_c))
        self.lengthscales = _lengthscales(rng, d_x + d_c)
        waves = Waves(kernel, self.lengthscales, rng)
        super().__init__(
            f"{kernel}_{d_x}_{d_c}",
            bounds=unit_bounds(d_x),
            context_bounds=unit_bounds(d_c),
            context_law=normal_law(0.5, _PRIOR_DEVIATION, d_c),
            noise_std=noise_std,
            separated=Separated(waves.decision, waves.context),
        )
        self._waves = waves

    def _evaluate(self, x: Tensor, c: Tensor) -> Tensor:
        return (self._waves.decision(x) * self._waves.context(c)).sum(-1)


@final
class CategorySample(RobustTestFunction):
    r"""A sample over a category ``k`` of three, a number ``x`` and a context ``c``.

    .. math:: f(k, x, c) = \sqrt{.5} \, g(x, c) + \sqrt{.5} \, g_k(x, c)

    with four independent samples of an RBF prior of the same random lengthscales: what
    is learnt of one category says something of the others. The first decision column is
    the category, 0, 1 or 2.

    Args:
        seed: Picks the lengthscales and the samples.
    """

    NUM_CATEGORIES = 3

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(derive_seed(seed, len(KERNELS)))
        self.lengthscales = _lengthscales(rng, 2)
        count = 1 + self.NUM_CATEGORIES
        self._parts = [
            Waves("rbf", self.lengthscales, rng, _NUM_PRIOR_WAVES // count)
            for _ in range(count)
        ]
        bounds = torch.tensor([[0.0, 0.0], [self.NUM_CATEGORIES - 1.0, 1.0]])
        super().__init__(
            "category_2_1",
            bounds=bounds.double(),
            context_bounds=unit_bounds(1),
            context_law=normal_law(0.5, _PRIOR_DEVIATION, 1),
            separated=Separated(self._decision, self._context),
        )

    def _decision(self, x: Tensor) -> Tensor:
        shared, *own = self._parts
        category, number = x[:, :1].round(), x[:, 1:]
        features = [shared.decision(number)]
        features += [
            (category == k) * part.decision(number) for k, part in enumerate(own)
        ]
        return math.sqrt(0.5) * torch.cat(features, dim=-1)

    def _context(self, c: Tensor) -> Tensor:
        return torch.cat([part.context(c) for part in self._parts], dim=-1)

    def _evaluate(self, x: Tensor, c: Tensor) -> Tensor:
        return (self._decision(x) * self._context(c)).sum(-1)


def _lengthscales(rng: np.random.Generator, num: int) -> Tensor:
    low, high = np.log(_LENGTHSCALES)
    return torch.from_numpy(np.exp(rng.uniform(low, high, num)))
