"""Moments of some decisions as functions of the context, and their slopes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_drbo import _arrays
from botorch_drbo.posterior.base import MomentSlopes
from botorch_drbo.posterior.confidence_bounds import (
    bound_slopes,
    confidence_bounds,
    expected_bounds,
    lowest_bounds,
    own_bound_slopes,
)
from botorch_drbo.posterior.skeleton import Skeleton

_CHUNK_ELEMENTS = 2**21  # of a kernel row's temporaries
_ALL = slice(None)
_FREE_FLOPS = 2**15  # per context; below it calls take longer than what they compute


def version_of(tensor: Tensor) -> int:
    """How often a tensor was changed; -1 where that is not counted."""
    return -1 if tensor.is_inference() else tensor._version


class Seen(NamedTuple):
    """Contexts as they were, to find out whether others are the same."""

    tensor: Tensor
    version: int
    copy: Tensor

    @classmethod
    def of(cls, contexts: Tensor) -> Seen:
        """Remember contexts."""
        return cls(contexts, version_of(contexts), contexts.detach().clone())

    def same(self, contexts: Tensor) -> bool:
        """Compare values; on a GPU the same tensor, unchanged, is not compared.

        A comparison would wait for the device. On the CPU it is cheap, and sees changes
        made behind autograd's back too.
        """
        known = self.copy
        if (
            known.shape != contexts.shape
            or known.dtype != contexts.dtype
            or known.device != contexts.device
        ):
            return False
        if not _arrays.on_cpu(contexts) and self.tensor is contexts:
            return 0 <= self.version == version_of(contexts)
        return torch.equal(known, contexts)


class ContextInterpolant:
    r"""Moments of the decisions ``X`` at a skeleton, interpolated to any contexts.

    .. math:: \mu(x, c) = \sum_s e_s(c)\, \mu(x, c_s), \qquad
        \nabla_c\, \mu(x, c) = \sum_s \nabla e_s(c)\, \mu(x, c_s)

    and the variance likewise. So slopes in ``c`` that can be differentiated in ``x``
    need first derivatives of the model only. The contexts must lie among those that the
    skeleton was checked for.

    Args:
        skeleton: The skeleton.
        moments: Means and variances at the skeleton contexts, ``2 x ... x r``.
        interpolation: To the contexts of the skeleton, ``r x n``.
        inside: Contexts ``n x d_c`` as the kernel sees them, and their derivatives.
        shared: Where matrices of earlier contexts are kept.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        moments: Tensor,
        interpolation: Tensor,
        inside: Callable[[Tensor], tuple[Tensor, Tensor]],
        shared: list[tuple[Seen, Tensor]],
    ) -> None:
        r"""Keep the moments.

        Args:
            skeleton: The skeleton.
            moments: Means and variances at the skeleton contexts, ``2 x ... x r``.
            interpolation: To the contexts of the skeleton, ``r x n``.
            inside: Contexts as the kernel sees them, and their derivatives.
            shared: Where matrices of earlier contexts are kept.
        """
        self.skeleton = skeleton
        self.at_skeleton = moments
        self.interpolation = interpolation
        self.inside = inside
        self.shared = shared

    @property
    def cheap(self) -> bool:
        """Whether slopes at contexts of their own cost less than by the exact path."""
        t = len(self.skeleton.kernel.points)
        return self.skeleton.flops_per_context() < max(8 * t * t, _FREE_FLOPS)

    def moments(self) -> tuple[Tensor, Tensor]:
        r"""Interpolate to the contexts that the skeleton was made for.

        Returns:
            Means and variances, each ``... x n``.
        """
        moments = self.at_skeleton @ self.interpolation  # 2 x ... x n
        return moments[0], moments[1].clamp_min(0.0)

    def confidence_bounds(
        self, width: float | Tensor, min_variance: float, columns: slice = _ALL
    ) -> Tensor:
        r"""Evaluate ``mu + w sigma`` at the contexts that the skeleton was made for.

        Args:
            width: ``w``; a number on a CPU, else a scalar that stays on its device.
            min_variance: Variances below it count as this, and have no slope.
            columns: Some of the contexts.

        Returns:
            The bounds, ``... x n``.
        """
        flat = self._flat()
        interpolation = self.interpolation[:, columns]
        bounds = confidence_bounds(flat, interpolation, width, min_variance)
        return bounds.reshape(*self.at_skeleton.shape[1:-1], -1)

    def lowest_contexts(
        self, width: float | Tensor, min_variance: float, columns: slice
    ) -> Tensor:
        r"""Find where ``mu + w sigma`` is lowest, without a graph.

        Args:
            width: ``w``; a number on a CPU, else a scalar that stays on its device.
            min_variance: Variances below it count as this.
            columns: Among which of the contexts.

        Returns:
            Their numbers, counted from the first of ``columns``, ``...``.
        """
        flat = self._flat()
        interpolation = self.interpolation[:, columns]
        lowest = lowest_bounds(flat, interpolation, width, min_variance)
        return lowest.reshape(self.at_skeleton.shape[1:-1])

    def expected_bound(
        self, weights: Tensor, width: float | Tensor, min_variance: float
    ) -> Tensor:
        r"""Average ``mu + w sigma`` over contexts.

        Args:
            weights: One for each of the first contexts that the skeleton was made for.
            width: ``w``; a number on a CPU, else a scalar that stays on its device.
            min_variance: Variances below it count as this, and have no slope.

        Returns:
            The averages, of shape ``...``.
        """
        flat = self._flat()
        interpolation = self.interpolation[:, : len(weights)]
        means = expected_bounds(flat, interpolation, weights, width, min_variance)
        return means.reshape(self.at_skeleton.shape[1:-1])

    def bound_slopes(
        self, contexts: Tensor, width: float | Tensor, min_variance: float
    ) -> Tensor:
        r"""Differentiate ``mu + w sigma`` in the context; contexts are constants.

        Args:
            contexts: ``k x d_c``, or ``... x k x d_c`` with contexts of its own for
                each decision: only these have a graph.
            width: ``w``; a number on a CPU, else a scalar that stays on its device.
            min_variance: Variances below it have no slope.

        Returns:
            ``... x k x d_c``.
        """
        flat = self._flat()
        if contexts.ndim == 2:
            matrices = self.shared_matrices(contexts)
            slopes = bound_slopes(flat, *matrices, width, min_variance)
        else:
            own = self.own_matrices(contexts.flatten(0, -3))
            slopes = own_bound_slopes(flat, own, width, min_variance)
        slopes = slopes.movedim(0, -1)  # b x k x d_c
        return slopes.reshape(*self.at_skeleton.shape[1:-1], *slopes.shape[1:])

    def slopes(self, contexts: Tensor) -> MomentSlopes:
        r"""Evaluate moments and slopes; contexts are constants, ``X`` is not.

        Args:
            contexts: ``k x d_c``, or ``... x k x d_c`` with contexts of its own for
                each decision.

        Returns:
            Moments ``... x k`` and slopes ``... x k x d_c``.
        """
        if contexts.ndim == 2:
            matrix = self._shared_matrix(contexts)  # (1 + d_c) k x r
            moments = self.at_skeleton @ matrix.mT  # 2 x ... x (1 + d_c) k
        else:
            flat = self._matrix(contexts.reshape(-1, contexts.shape[-1]))
            own = flat.unflatten(1, contexts.shape[:-1])  # (1 + d_c) x ... x k x r
            own = torch.cat(own.unbind(), dim=-2)  # ... x (1 + d_c) k x r
            both = self.at_skeleton.movedim(0, -1)  # ... x r x 2
            moments = (own @ both).movedim(-1, 0)  # 2 x ... x (1 + d_c) k
        moments = moments.unflatten(-1, (-1, contexts.shape[-2]))
        values, slopes = moments[..., 0, :], moments[..., 1:, :].mT
        return MomentSlopes(values[0], values[1].clamp_min(0.0), slopes[0], slopes[1])

    def _flat(self) -> Tensor:
        """Moments of all decisions in a row, ``2 x b x r``."""
        return self.at_skeleton.reshape(2, -1, self.at_skeleton.shape[-1])

    def shared_matrices(self, contexts: Tensor) -> tuple[Tensor, Tensor]:
        r"""What takes moments to contexts that all decisions share.

        Args:
            contexts: ``k x d_c``; the last ones are remembered.

        Returns:
            The interpolation ``r x k``, and its derivatives, ``d_c x r x k``.
        """
        k = contexts.shape[0]
        matrix = self._shared_matrix(contexts).unflatten(0, (-1, k)).mT
        return matrix[0], matrix[1:]

    def own_matrices(self, contexts: Tensor) -> Tensor:
        r"""What takes the moments of each decision to contexts of its own.

        Args:
            contexts: ``b x k x d_c``.

        Returns:
            The interpolation and its derivatives, ``(1 + d_c) x b x k x r``.
        """
        return self._matrix(contexts.flatten(0, 1)).unflatten(1, contexts.shape[:2])

    def _shared_matrix(self, contexts: Tensor) -> Tensor:
        for seen, matrix in self.shared:
            if seen.same(contexts):
                return matrix
        matrix = self._matrix(contexts).flatten(0, 1)
        self.shared[:] = [(Seen.of(contexts), matrix)]
        return matrix

    def _matrix(self, contexts: Tensor) -> Tensor:
        """``(1 + d_c) x n x r``, slopes in the units of the contexts."""
        with torch.inference_mode(False), torch.no_grad():  # it is kept
            inside, scale = self.inside(contexts)  # n x d_c, both
            rows = max(1, _CHUNK_ELEMENTS // max(1, self.skeleton.kernel.num_columns))
            parts = [
                self.skeleton.values_and_slopes(part) for part in inside.split(rows)
            ]
            matrix = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
            matrix[1:] *= scale.mT.unsqueeze(-1)
        return matrix.to(contexts)
