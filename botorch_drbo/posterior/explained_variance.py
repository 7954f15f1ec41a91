"""The variance that the data explain, by one product where that is safe."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

_ROUNDING = 1e-9  # of the prior's variance, that one product may be off by


class ExplainedVariance(NamedTuple):
    r"""What turns kernel rows into the variance that the data explain.

    .. math:: \lVert R\, k \rVert^2 = k' P\, k, \qquad R = L^{-1}, \quad P = R' R

    The derivative in ``k`` is ``2 P k``. With ``P`` it comes with the value, from one
    product with a ``t x t`` matrix; with ``R`` from two. In the first form rounding
    errors reach ``eps v trace(P)`` of the prior's variance ``v`` (measured: .1 to .8 of
    that, for noise from 1e-2 to 1e-6), in the second hardly its root. So there is a
    ``P`` where that is at most 1e-9: in float64, unless there is next to no noise.

    Args:
        inverse_root: ``R``, ``t x t``.
        precision: ``P``, ``t x t``; None where rounding would be felt.
    """

    inverse_root: Tensor
    precision: Tensor | None

    @classmethod
    def of(cls, inverse_root: Tensor, prior: float) -> ExplainedVariance:
        r"""Choose the form.

        Args:
            inverse_root: ``R``, ``t x t``.
            prior: The prior's variance; no kernel row has a larger entry.

        Returns:
            The form that is fast where it is safe.
        """
        # k'(R'R)k is one product in place of two, but cancels where R'R is large: its
        # rounding is at most eps |k|^2 trace(R'R), and |k|^2 of the size of the prior.
        eps = torch.finfo(inverse_root.dtype).eps
        rounding = eps * prior * float(inverse_root.square().sum())  # trace of R' R
        safe = rounding <= _ROUNDING
        return cls(inverse_root, inverse_root.mT @ inverse_root if safe else None)

    def __call__(self, K: Tensor) -> Tensor:
        r"""Evaluate it.

        Args:
            K: Kernel rows, ``... x t``.

        Returns:
            ``...``, differentiable in ``K``.
        """
        if self.precision is not None:
            return torch.linalg.vecdot(K, K @ self.precision)
        V = K @ self.inverse_root.mT
        return torch.linalg.vecdot(V, V)

    def with_weights(self, K: Tensor) -> tuple[Tensor, Tensor]:
        r"""Evaluate it and half of its derivative.

        Args:
            K: Kernel rows, ``... x t``.

        Returns:
            ``...``, and ``P k``, ``... x t``; differentiable in ``K``.
        """
        if self.precision is not None:
            W = K @ self.precision
            return torch.linalg.vecdot(K, W), W
        V = K @ self.inverse_root.mT
        return torch.linalg.vecdot(V, V), V @ self.inverse_root
