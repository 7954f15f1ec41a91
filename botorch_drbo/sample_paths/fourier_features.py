"""Paths of a Gaussian process prior, by random Fourier features."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import cast

import torch
from torch import Generator, Tensor
from torch.nn import Module

from botorch_drbo.kernels.components import KernelComponent
from botorch_drbo.posterior.blocks import in_blocks


class RandomFourierFeatures(Module):
    r"""Paths of a prior, each a sum of cosines with random frequencies of its own.

    .. math:: g(z) = \sum_i a_i \cos(\omega_i' z) + b_i \sin(\omega_i' z)

    with ``a`` and ``b`` normal of variance ``s / m`` and ``m`` frequencies for each
    summand of the kernel, of variance ``s``: over paths the covariance is the kernel,
    with any ``m`` [RahimiRecht2007]_. With ``z = [x, c]`` the addition theorem makes
    the values at all pairs of ``x`` and ``c`` one matrix product over ``2 m`` columns.
    """

    frequencies: Tensor
    cosines: Tensor
    sines: Tensor

    def __init__(
        self,
        components: Sequence[KernelComponent],
        *,
        num_paths: int,
        num_features: int,
        split: int,
        generator: Generator,
    ) -> None:
        super().__init__()
        self.split = split
        counts = allocate(components, num_features)
        pairs = list(zip(components, counts, strict=True))
        frequencies = [
            component.frequencies([num_paths, count], generator)
            for component, count in pairs
        ]
        shares = [component.variance / count for component, count in pairs]
        amplitudes = torch.tensor(shares, dtype=torch.double).sqrt()
        amplitudes = amplitudes.repeat_interleave(torch.tensor(counts))
        # a, b ~ N(0, s / m): the covariance of the cosines is an average of cos w(z -
        # z') over random frequencies, by Bochner's theorem the kernel.
        weights = amplitudes * torch.randn(
            2, num_paths, num_features, generator=generator, dtype=torch.double
        )
        for name, buffer in {
            "frequencies": torch.cat(frequencies, dim=1).mT.contiguous(),  # P x d x m
            "cosines": weights[0],  # P x m
            "sines": weights[1],
        }.items():
            self.register_buffer(name, buffer, persistent=False)

    def part(self, which: slice) -> RandomFourierFeatures:
        """Some of the paths, as views."""
        part = copy.copy(self)
        part._buffers = {
            name: cast(Tensor, buffer)[which] for name, buffer in self._buffers.items()
        }
        return part

    def side(self, c: Tensor) -> tuple[Tensor, Tensor]:
        """Evaluate all that depends on ``c`` alone.

        Shapes: ``c``: ``n x d_c``, returns ``P x m x n``.
        """
        # a cos(wx + wc) + b sin(wx + wc), sorted by cos(wx) and sin(wx).
        # Once for all decisions: cosines and sines of the context's part of the angle,
        # with their weights.
        angles = (c @ self.frequencies[:, self.split :]).mT  # P x m x n
        cos, sin = angles.cos(), angles.sin()
        a, b = self.cosines.unsqueeze(-1), self.sines.unsqueeze(-1)
        return a * cos + b * sin, b * cos - a * sin

    def forward(self, x: Tensor, side: tuple[Tensor, Tensor]) -> Tensor:
        """Evaluate the paths at all pairs.

        Shapes: ``x``: ``1 x N x d_x``, returns ``P x N x n``.
        """
        # cos(wx + wc) in cosines and sines of either side: two products of matrices.
        angles = x @ self.frequencies[:, : self.split]  # P x N x m
        return torch.baddbmm(angles.cos() @ side[0], angles.sin(), side[1])

    def at(self, points: Tensor, memory_budget: int) -> Tensor:
        """Evaluate every path at whole points ``z``.

        Shapes: ``points``: ``t x d``, returns ``P x t``.
        """
        # Whole points, path by path: blocks of paths, each with frequencies of its own.
        d, m = self.frequencies.shape[1:]
        weights = torch.stack([self.cosines, self.sines], dim=1)  # P x 2 x m

        def values(rows: Tensor) -> tuple[Tensor]:
            omega, a, b = rows.split([d, 1, 1], dim=1)
            angles = points @ omega  # P x t x m
            return (torch.baddbmm(angles.cos() @ a.mT, angles.sin(), b.mT),)

        (found,) = in_blocks(
            values,
            torch.cat([self.frequencies, weights], dim=1),
            4 * points.element_size() * len(points) * m,
            memory_budget,
        )
        return found.squeeze(-1)


def allocate(components: Sequence[KernelComponent], num_features: int) -> list[int]:
    """Share features out: half of them equally, half in proportion to the variances.

    Each component's variance is exact with any number of features; the more it has,
    the closer its paths come to being Gaussian.
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
