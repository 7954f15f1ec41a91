r"""Smooth random functions of any dimension, known everywhere."""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor

from botorch_drbo.test_functions.base import RobustTestFunction, Separated
from botorch_drbo.test_functions.laws import normal_law
from botorch_drbo.test_functions.problems import unit_bounds

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
