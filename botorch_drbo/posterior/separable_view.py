"""A factorised posterior over contexts that are all evaluated, each side once."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property

import torch
from torch import Tensor

from botorch_drbo.posterior.blocks import in_blocks
from botorch_drbo.posterior.factorized import FactorizedModel
from botorch_drbo.posterior.separable import (
    coarse_moments,
    separable_mean_slopes,
    separable_means,
    separable_moments,
    separable_slopes,
)
from botorch_drbo.posterior.view import LocalMoments, MomentSlopes, View


def view_of_every_context(model: FactorizedModel, contexts: Tensor) -> View:
    r"""The view that interpolates nothing.

    Args:
        model: Both sides of a kernel.
        contexts: ``n x d_c``, not shared.

    Returns:
        That of ``ExactPosterior`` for one stationary factor, which is faster than two
        sides for few contexts, and for slopes; a ``SeparableView`` for others.
    """
    if model.exact.system is not None:
        return model.exact.over(contexts)
    return SeparableView(model, contexts)


class SeparableView(View):
    r"""A posterior over contexts that are all evaluated, each on its own side once.

    Args:
        model: The two sides of its kernel.
        contexts: The contexts, ``n x d_c``.
    """

    method = "product"

    def __init__(self, model: FactorizedModel, contexts: Tensor) -> None:
        super().__init__(contexts)
        self.model = model
        inside, _ = model.contexts_inside(contexts)
        self.system = model.system_at(inside.to(contexts))
        self.moments = separable_moments
        # A stationary factor has its slopes in closed form.
        stationary = model.exact.system is not None
        self.closed = model.exact.over(contexts) if stationary else None

    def coarse(self) -> View:
        r"""The variances of a float32 product, which takes half of the time."""
        # Both views share the sides that were computed.
        same = copy(self)
        same.moments = coarse_moments
        return same

    def at(self, X: Tensor) -> LocalMoments:
        """Evaluate decisions."""
        return _SeparableMoments(self, X)

    @cached_property
    def own_sides(self) -> tuple[Tensor, Tensor]:
        """Both sides of the view's contexts; see ``sides``."""
        return self.sides(self.contexts)

    def sides(self, contexts: Tensor) -> tuple[Tensor, Tensor]:
        r"""The context's side of the kernel, and its slopes in the user's units.

        Args:
            contexts: ``n x d_c``.

        Returns:
            ``m x n x t`` and ``d_c x m x n x t``.
        """
        with torch.no_grad():
            # Constants: the way to a gradient in the context are the slopes.
            inside, units = self.model.contexts_inside(contexts)
            side, slopes = self.model.kernel.context_slopes(inside.to(contexts))
            slopes = slopes * units.to(contexts).mT[:, None, :, None]
            return side, slopes[self.model.first_columns]


class _SeparableMoments(LocalMoments):
    def __init__(self, view: SeparableView, X: Tensor) -> None:
        super().__init__(X, view.model.exact.dtype)
        self.view, self.num_rows = view, len(view.system.alpha)
        with self._graph():
            self.side = view.model.decision_side(self.X, view.contexts[:1])  # m x b x t

    def _moments(self, part: slice) -> tuple[Tensor, Tensor]:
        # Some of the contexts: rows of the context's side, nothing else changes.
        system = self.view.system
        system = system._replace(context_side=system.context_side[:, part])
        mean, variance = self.view.moments(self.side, system).unbind()
        return mean, variance

    def _means(self, part: slice) -> Tensor:
        system = self.view.system
        side = system.context_side[:, part]
        return separable_means(self.side, system._replace(context_side=side))

    def _mean_slopes(self, contexts: slice | Tensor) -> Tensor:
        view = self.view
        if view.closed is not None:
            return view.closed.at(self.X).mean_slopes(contexts)
        if not view.model.kernel.has_slopes:
            return super()._mean_slopes(contexts)
        if isinstance(contexts, slice):  # one product of matrices
            of_all = view.own_sides[1][:, :, contexts]
            return separable_mean_slopes(self.side.transpose(0, 1), of_all, view.system)

        def mean_slopes(A: Tensor, B: Tensor, slopes: Tensor) -> tuple[Tensor]:
            return (separable_mean_slopes(A, slopes, view.system),)

        return self._of_sides(mean_slopes, contexts)[0]

    def _slopes(self, contexts: slice | Tensor) -> MomentSlopes:
        view, model = self.view, self.view.model
        if view.closed is not None:
            return view.closed.at(self.X).slopes(contexts)
        if not model.kernel.has_slopes:
            return model.exact.slopes(self.X, view.points(contexts))

        def slopes(A: Tensor, B: Tensor, slopes: Tensor) -> tuple[Tensor, ...]:
            return separable_slopes(A, B, slopes, view.system)

        return MomentSlopes(*self._of_sides(slopes, contexts))

    def _of_sides(
        self,
        function: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, ...]],
        contexts: slice | Tensor,
    ) -> tuple[Tensor, ...]:
        """A function of ``A``, ``B`` and the slopes of ``B``, decisions in blocks."""
        view = self.view
        # A block needs decisions together with contexts of their own, so both travel in
        # the rows of one tensor.
        side, shape = self.side.transpose(0, 1), self.side.shape  # b x m x t
        if isinstance(contexts, slice):
            B, slopes = view.own_sides
            B, slopes = B[:, contexts], slopes[:, :, contexts]
            k, own = B.shape[1], side.new_empty(len(side), 0)
        else:
            k, own = contexts.shape[1], contexts.flatten(1)

        def block(rows: Tensor) -> tuple[Tensor, ...]:
            some, points = rows.tensor_split([shape[0] * shape[2]], dim=-1)
            some = some.unflatten(-1, (shape[0], shape[2]))
            if isinstance(contexts, slice):
                return function(some, B, slopes)
            # All own contexts of the block at once, and then apart again by decision.
            points = points.reshape(-1, contexts.shape[-1])
            each, change = view.sides(points)  # m x (b k) x t, d_c x m x (b k) x t
            each = each.unflatten(1, (-1, k)).transpose(0, 1)
            change = change.unflatten(2, (-1, k)).transpose(1, 2)
            return function(some, each, change)

        # Kernel rows, and slopes in each column, of all summands; forward and backward.
        floats = k * shape[2] * (shape[0] + 1) * (4 + 2 * view.contexts.shape[-1])
        return in_blocks(
            block,
            torch.cat([side.flatten(1), own], dim=-1),
            floats * side.element_size(),
            view.model.exact.memory_budget,
        )
