"""A factorised posterior over many contexts, interpolated from its skeleton."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from botorch_drbo.posterior.factorized import BLOCK_ELEMENTS, FactorizedModel
from botorch_drbo.posterior.separable import separable_means, separable_moments
from botorch_drbo.posterior.separable_view import view_of_every_context
from botorch_drbo.posterior.skeleton import Skeleton
from botorch_drbo.posterior.view import LocalMoments, MomentSlopes, View

_FREE_FLOPS = 2**15  # per context; below it calls take longer than what they compute


class ProductView(View):
    r"""A posterior over contexts for which there is a skeleton.

    Args:
        model: The two sides of its kernel.
        contexts: The contexts, ``n x d_c``.
        skeleton: Their skeleton.
        inside: The skeleton contexts as the kernel sees them, ``r x d_c``.
    """

    method = "product"

    def __init__(
        self,
        model: FactorizedModel,
        contexts: Tensor,
        skeleton: Skeleton,
        inside: Tensor,
    ) -> None:
        super().__init__(contexts)
        self.model, self.skeleton = model, skeleton
        self.interpolation = skeleton.interpolation.mT.contiguous().to(contexts)
        self.system = model.system_at(inside.to(contexts))
        self._slope_matrices: dict[tuple[int, int, int], Tensor] = {}

    @cached_property
    def every_context(self) -> View:
        """The view that interpolates nothing."""
        return view_of_every_context(self.model, self.contexts)

    @property
    def size(self) -> int:
        """At how many contexts the model itself is evaluated, ``r``."""
        return len(self.skeleton.chosen)

    def at(self, X: Tensor) -> LocalMoments:
        """Evaluate decisions."""
        return _InterpolatedMoments(self, X)

    def shared_matrices(self, part: slice) -> Tensor:
        r"""What takes moments to some of the view's contexts; computed once.

        Args:
            part: Some of the contexts.

        Returns:
            The interpolation and its derivatives in each column, one after the other:
            ``r x ((1 + d_c) k)``.
        """
        key = part.indices(len(self.contexts))
        if key not in self._slope_matrices:
            matrices = self.matrices(self.contexts[part])  # (1 + d_c) x k x r
            self._slope_matrices[key] = matrices.flatten(0, 1).mT.contiguous()
        return self._slope_matrices[key]

    def matrices(self, contexts: Tensor) -> Tensor:
        r"""What takes moments at the skeleton to any contexts.

        .. math:: e_s(c), \qquad \partial_{c_j} e_s(c)

        Args:
            contexts: ``n x d_c``, among those that the skeleton was checked for.

        Returns:
            The interpolation and its derivatives, ``(1 + d_c) x n x r``.
        """
        with torch.no_grad():
            # The functions e_s are known in closed form, at any context and with
            # slopes: what the skeleton interpolates need not lie on the view's list.
            rows = max(1, BLOCK_ELEMENTS // max(1, self.skeleton.kernel.num_columns))
            parts = [
                self.skeleton.values_and_slopes(part, units)
                for part, units in zip(
                    *(
                        inside.split(rows)
                        for inside in self.model.contexts_inside(contexts)
                    ),
                    strict=True,
                )
            ]
            found = torch.cat(parts, dim=1).to(contexts)  # (1 + k) x n x r
            rows = (0, *(1 + column for column in self.model.first_columns))
            return torch.stack([found[row] for row in rows])

    def has_slopes(self, *, own: bool) -> bool:
        """Whether slopes are interpolated too: where they exist, and cost less."""
        if not self.model.context_kernel.smooth:
            return False
        # Own contexts need e_s anew at each of them; the exact view needs a product
        # with a t x t matrix there.
        t = len(self.system.alpha)
        return not own or self.skeleton.flops_per_context() < max(
            8 * t * t, _FREE_FLOPS
        )


class _InterpolatedMoments(LocalMoments):
    def __init__(self, view: ProductView, X: Tensor) -> None:
        super().__init__(X, view.model.exact.dtype)
        self.view, self.num_rows = view, len(view.system.alpha)
        with self._graph():
            self.side = view.model.decision_side(self.X, view.contexts[:1])  # m x b x t
        self._at_skeleton: Tensor | None = None

    @property
    def at_skeleton(self) -> Tensor:
        """Both moments at the skeleton, ``2 x b x r``; for means alone not needed."""
        # Found once for moments and slopes; again where a graph is wanted by now.
        found = self._at_skeleton
        graph = torch.is_grad_enabled() and self.side.requires_grad
        if found is None or (graph and not found.requires_grad):
            found = self._at_skeleton = separable_moments(self.side, self.view.system)
        return found

    def _means(self, part: slice) -> Tensor:
        found = separable_means(self.side, self.view.system)  # b x r
        return found @ self.view.interpolation[:, part]

    def _moments(self, part: slice) -> tuple[Tensor, Tensor]:
        # f(c_i) = sum_s E_is f(c_s), of both moments.
        found = self.at_skeleton @ self.view.interpolation[:, part]  # 2 x b x n
        mean, variance = found.unbind()
        return mean, variance.clamp_min(0.0)

    def _mean_slopes(self, contexts: slice | Tensor) -> Tensor:
        view = self.view
        if not view.has_slopes(own=isinstance(contexts, Tensor)):
            return view.every_context.at(self.X).mean_slopes(contexts)
        at_skeleton = separable_means(self.side, view.system)  # b x r
        if isinstance(contexts, Tensor):
            matrices = view.matrices(contexts.flatten(0, 1))[1:]  # d_c x b k x r
            matrices = matrices.unflatten(1, contexts.shape[:2])
            return torch.einsum("br,dbkr->bkd", at_skeleton, matrices)
        found = at_skeleton @ view.shared_matrices(contexts)
        count = 1 + view.contexts.shape[-1]
        return found.unflatten(-1, (count, -1))[:, 1:].mT

    def _slopes(self, contexts: slice | Tensor) -> MomentSlopes:
        view = self.view
        if not view.has_slopes(own=isinstance(contexts, Tensor)):
            return view.every_context.at(self.X).slopes(contexts)
        if isinstance(contexts, Tensor):
            # From (1 + d_c) x b x k x r to one matrix for each decision.
            matrices = view.matrices(contexts.flatten(0, 1))
            matrices = matrices.unflatten(1, contexts.shape[:2]).permute(1, 3, 0, 2)
            at_skeleton = self.at_skeleton.transpose(0, 1)  # b x 2 x r
            moments = (at_skeleton @ matrices.flatten(2)).unbind(1)
        else:
            moments = (self.at_skeleton @ view.shared_matrices(contexts)).unbind()
        # Values first, then the slope in each context column.
        count = 1 + view.contexts.shape[-1]
        (mean, *mean_slopes), (variance, *variance_slopes) = (
            part.unflatten(-1, (count, -1)).unbind(1) for part in moments
        )  # b x k each
        inside = (variance > 0.0).unsqueeze(-1)
        return MomentSlopes(
            mean=mean,
            variance=variance.clamp_min(0.0),
            mean_slope=torch.stack(mean_slopes, -1),  # b x k x d_c
            variance_slope=torch.stack(variance_slopes, -1) * inside,
        )
