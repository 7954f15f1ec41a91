"""An exact GP whose kernel factorises over decision and context: both sides, once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from typing import cast

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.sampling.pathwise.utils import get_train_inputs
from gpytorch.kernels import InducingPointKernel, Kernel
from gpytorch.means import ConstantMean, ZeroMean
from torch import Tensor

from botorch_drbo.kernels.components import KernelComponent, prior_kernel
from botorch_drbo.kernels.context_kernel import ContextKernel, context_components
from botorch_drbo.posterior.blocks import DEFAULT_MEMORY_BUDGET, in_blocks
from botorch_drbo.posterior.exact import ExactPosterior, RowsIntegral
from botorch_drbo.posterior.separable import (
    SeparableKernel,
    SkeletonSystem,
    coarse_moments,
    separable_mean_slopes,
    separable_means,
    separable_moments,
    separable_slopes,
)
from botorch_drbo.posterior.skeleton import (
    Skeleton,
    column_sources,
    columns_from,
    find_skeleton,
)
from botorch_drbo.posterior.view import (
    Integral,
    LocalMoments,
    MarginalPosterior,
    MomentSlopes,
    View,
    columns_of,
    means_alone_pay,
)

BLOCK_ELEMENTS = 2**21  # of a kernel row's temporaries


def factors_of(
    model: Model,
    context_indices: Sequence[int],
    posterior_transform: PosteriorTransform | None,
) -> list[KernelComponent] | None:
    """The context's side of a model that keeps decision and context apart."""
    if not isinstance(model, SingleTaskGP) or not ExactPosterior.supports(
        model, posterior_transform
    ):
        return None
    # Decision and context stay apart if no result of the input transform depends on
    # both, and if each factor of the kernel splits.
    sources = _sources(model)
    if type(model.mean_module) not in (ConstantMean, ZeroMean) or sources is None:
        return None
    kernel = prior_kernel(cast(Kernel, model.covar_module))
    columns = columns_from(sources, context_indices)
    return context_components(kernel, len(sources), columns)


class FactorizedModel:
    r"""Both sides of a kernel, and how decisions and contexts come to them.

    .. math:: k((x, c), (x', c')) = \sum_m s_m\, a_m(x, x')\, b_m(c, c')
    """

    def __init__(
        self, exact: ExactPosterior, context_side: list[KernelComponent]
    ) -> None:
        sources = cast(list[int], _sources(exact.gp))
        context_indices = exact.context_indices
        self.exact = exact
        inputs = exact.train_inputs
        # The contexts' columns as the kernel sees them: several of each category.
        self.context_columns = columns_from(sources, context_indices)
        of_columns = [sources[column] for column in self.context_columns]
        self.source_positions = [context_indices.index(source) for source in of_columns]
        # One for each of the user's columns: a category's has slope zero, as they all.
        self.first_columns = [of_columns.index(source) for source in context_indices]
        self.context_kernel = ContextKernel(
            context_side, inputs[:, self.context_columns].double()
        )
        affine = exact.affine
        self.context_affine = affine and affine.of(context_indices)
        columns = range(exact.num_columns)
        decisions = [i for i in columns if i not in context_indices]
        self.decision_affine = affine and affine.of(decisions).to(exact.dtype)
        self.kernel = SeparableKernel(
            exact.components or [], inputs, self.context_columns
        )

    def of(self, exact: ExactPosterior) -> FactorizedModel:
        """The same sides for a posterior of the same inputs, with other noise."""
        twin = copy(self)
        twin.exact = exact
        return twin

    def system_at(self, inside: Tensor) -> SkeletonSystem:
        """What turns kernel rows at contexts into moments.

        Shapes: ``inside``: ``r x d_c``.
        """
        exact = self.exact
        # Once for all: from the kernel's units to those of y.
        offset = exact.mean_offset + exact.mean_scale * exact.prior_mean
        return SkeletonSystem(
            context_side=self.kernel.context_side(inside),
            alpha=exact.alpha,
            explained=exact.explained,
            variance=self.kernel.variance,
            offset=offset.item(),  # once: numbers never wait for a device again
            scale=exact.mean_scale.item(),
            memory_budget=exact.memory_budget,
        )

    def contexts_inside(self, contexts: Tensor) -> tuple[Tensor, Tensor]:
        """Transform contexts; each column by itself.

        Shapes: ``contexts``: ``n x d_c``, returns ``n x k``.
        """
        contexts = contexts.double()
        if self.context_affine is not None:
            affine = self.context_affine
            return affine(contexts), affine.slope.expand_as(contexts)
        # A transform that is not affine is evaluated at some decision: the columns of
        # the context do not depend on which.
        decision = self.exact.some_decision()
        with torch.enable_grad():
            leaf = contexts.detach().requires_grad_()
            joint = self.exact.join(decision, leaf.to(decision))
            Z = self.exact.gp.transform_inputs(joint)[0]  # n x d
            transformed = Z[:, self.context_columns].double()
            # No context column has a gradient if all are categories.
            total = transformed.sum() + 0.0 * leaf.sum()
            (slope,) = torch.autograd.grad(total, leaf)
        return transformed.detach(), slope[:, self.source_positions]

    def decision_side(self, X: Tensor, context: Tensor) -> Tensor:
        """Evaluate the decision's side.

        Shapes: ``X``: ``b x d_x``, ``context``: ``1 x d_c``, returns ``m x b x t``.
        """
        if self.decision_affine is not None:
            return self.kernel.decision_side(self.decision_affine(X))
        Z = self.exact.inside(self.exact.join(X, context).squeeze(-2))  # b x d
        inside = columns_of(Z, self.kernel.columns[: self.kernel.split])
        return self.kernel.decision_side(inside)


def _sources(model: SingleTaskGP) -> list[int] | None:
    """The user's column that each of the kernel's comes from, if it is one each."""
    columns = get_train_inputs(model, transformed=False)[0].shape[-1]
    return column_sources(getattr(model, "input_transform", None), columns)


def view_of_every_context(model: FactorizedModel, contexts: Tensor) -> View:
    """The view that interpolates nothing.

    Shapes: ``contexts``: ``n x d_c``.
    """
    if model.exact.system is not None:
        return model.exact.over(contexts)
    return SeparableView(model, contexts)


class SeparableView(View):
    """A posterior over contexts that are all evaluated, each on its own side once.

    Shapes: ``contexts``: ``n x d_c``.
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
        """The context's side of the kernel, and its slopes in the user's units.

        Shapes: ``contexts``: ``n x d_c``, returns ``m x n x t``.
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
        self.num_contexts = len(view.contexts)
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

    def _means_of_moments(self, part: slice) -> Tensor:
        return self._means(part)

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


_FREE_FLOPS = 2**15  # per context; below it calls take longer than what they compute


class ProductView(View):
    """A posterior over contexts for which there is a skeleton.

    Shapes: ``contexts``: ``n x d_c``, ``inside``: ``r x d_c``.
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
        """What takes moments to some of the view's contexts; computed once.

        Shapes: returns ``r x ((1 + d_c) k)``.
        """
        key = part.indices(len(self.contexts))
        if key not in self._slope_matrices:
            matrices = self.matrices(self.contexts[part])  # (1 + d_c) x k x r
            self._slope_matrices[key] = matrices.flatten(0, 1).mT.contiguous()
        return self._slope_matrices[key]

    def matrices(self, contexts: Tensor) -> Tensor:
        r"""What takes moments at the skeleton to any contexts.

        .. math:: e_s(c), \qquad \partial_{c_j} e_s(c)

        Shapes: ``contexts``: ``n x d_c``, returns ``(1 + d_c) x n x r``.
        """
        with torch.no_grad():
            # The functions e_s are known in closed form, at any context and with
            # slopes: what the skeleton interpolates need not lie on the view's list.
            columns, budget = (
                self.skeleton.kernel.num_columns,
                self.system.memory_budget,
            )
            row = 8 * (1 + contexts.shape[-1]) * (columns + 6 * self.size)  # bytes
            rows = max(1, min(BLOCK_ELEMENTS // max(1, columns), budget // row))
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
        self.num_contexts = len(view.contexts)
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

    def _means_of_moments(self, part: slice) -> Tensor:
        # Beside zeros: a product of as many rows is rounded in the same way.
        found = separable_means(self.side, self.view.system)
        both = torch.stack([found, torch.zeros_like(found)])
        return (both @ self.view.interpolation[:, part])[0]

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


# With fewer contexts, or fewer pairs of context and training input, the exact view is
# as fast: measured with 1 and 10 decisions. The rule does not ask how many there are,
# so that a decision's value does not depend on the others in its batch.
_MIN_CONTEXTS = 48
_MIN_PAIRS = 2000
# Of the contexts, and at all: a larger skeleton does not pay, but takes long to find.
_MAX_SHARE, _MAX_SIZE = 0.5, 1024
_TOLERANCE = {torch.double: 1e-11, torch.float: 1e-5}
_OF_INDUCING_POINTS = 1e-9  # what these leave out is far more
_TEMPORARIES = 12  # of m x t, in the integral of one decision


class ProductPosterior(MarginalPosterior):
    r"""Moments at ``n`` contexts from those at a few, for kernels that factorise.

    .. math:: k((x, c), (x', c')) = \sum_m s_m\, a_m(x, x')\, b_m(c, c')

    RBF kernels are of this form, and so are products and sums of kernels that look at
    decision or context columns alone. Then both moments are, as functions of ``c``, in
    a small space that does not depend on ``x``: they are computed at a *skeleton* of
    ``r`` of the contexts, and interpolated at the others (``find_skeleton`` says how),

    .. math:: \mu(x, c_i) = \sum_s E_{is}\, \mu(x, c_s), \qquad
        \sigma^2(x, c_i) = \sum_s E_{is}\, \sigma^2(x, c_s),

    which costs ``O(r t^2 + n r)`` per decision instead of ``O(n t^2)``. Errors stay
    below 1e-8 of the prior's scale (1e-6 with inducing points, 1e-3 in float32). Where
    no small skeleton does that, ``over`` returns a ``SeparableView``: the rows of both
    sides once each, multiplied for every pair. For few contexts, or too many for one
    side to be kept, it returns that too, but for a kernel that is one stationary factor
    the view of ``ExactPosterior``.
    """

    def __init__(
        self,
        model: SingleTaskGP,
        context_indices: Sequence[int],
        *,
        posterior_transform: PosteriorTransform | None = None,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> None:
        super().__init__(model, context_indices, memory_budget)
        context_side = factors_of(model, context_indices, posterior_transform)
        if context_side is None:
            raise UnsupportedError(
                "The product view needs a SingleTaskGP with a constant mean, an input "
                "transform whose results depend on one column each, and a kernel that "
                "factorises over decision and context columns (RBF, or products and "
                "sums of kernels that look at one side only), got "
                f"{type(model).__name__}. Use method='auto' or method='exact'."
            )
        self.exact = ExactPosterior(
            model,
            context_indices,
            posterior_transform=posterior_transform,
            memory_budget=memory_budget,
        )
        self.context_side = context_side
        self.factors = FactorizedModel(self.exact, context_side)
        self._conditioned: FactorizedModel | None = None  # on the last pending inputs
        self.smooth = self.exact.smooth

    def hallucinating(self, pending: Tensor, noise: float = 1.0) -> ProductPosterior:
        """See ``MarginalPosterior``."""
        conditioned = copy(self)
        conditioned.exact = exact = self.exact.hallucinating(pending, noise)
        known = self._conditioned
        if known is None or known.exact.train_inputs is not exact.train_inputs:
            self._conditioned = known = FactorizedModel(exact, self.context_side)
        conditioned.factors, conditioned._conditioned = known.of(exact), None
        return conditioned

    @property
    def dtype(self) -> torch.dtype:
        """The model's."""
        return self.exact.dtype

    def _over(self, contexts: Tensor) -> View:
        # Few contexts are interpolated from none; below these numbers calls take longer
        # than what they compute.
        n, columns = len(contexts), self.factors.context_kernel.num_columns
        if n < _MIN_CONTEXTS or n * columns < _MIN_PAIRS:
            return view_of_every_context(self.factors, contexts)
        transformed, _ = self.factors.contexts_inside(contexts)
        max_size = min(int(_MAX_SHARE * n), _MAX_SIZE)
        # One matrix n x r stays; and a block has some temporaries of both widths.
        max_size = min(max_size, self.memory_budget // (32 * n))
        skeleton = find_skeleton(
            self.factors.context_kernel,
            transformed,
            amplification=self._amplification(),
            tolerance=self._tolerance(contexts.dtype),
            max_size=max_size,
            chunk=max(1, self.memory_budget // (64 * (columns + max_size + 64))),
        )
        if skeleton is None:
            # With two sides fewer exponentials are needed.
            if self._holds_side_of(contexts):
                return SeparableView(self.factors, contexts)
            return view_of_every_context(self.factors, contexts)
        return ProductView(
            self.factors, contexts, skeleton, transformed[skeleton.chosen]
        )

    def _over_coarsely(self, contexts: Tensor) -> View:
        # Products of float32 numbers at a few contexts cost less than a skeleton.
        if self._holds_side_of(contexts):
            return SeparableView(self.factors, contexts).coarse()
        return self._over(contexts).coarse()

    def _over_for_means(self, contexts: Tensor) -> View:
        # A mean is one product of two rows: a skeleton takes longer to find than it
        # saves.
        pays = means_alone_pay(len(self.exact.alpha), len(contexts))
        if pays and self._holds_side_of(contexts):
            return SeparableView(self.factors, contexts)
        return self._over(contexts)

    def _holds_side_of(self, contexts: Tensor) -> bool:
        """Whether there is memory for the one matrix ``n x t`` that stays."""
        side = len(contexts) * len(self.exact.alpha) * contexts.element_size()
        return side <= self.memory_budget // 4

    def _integral(self, contexts: Tensor, weights: Tensor) -> Integral:
        return _ProductIntegral(self, contexts, weights)

    def _tolerance(self, dtype: torch.dtype) -> float:
        """The error of the skeleton that is aimed at, relative to the prior's scale."""
        tolerance = _TOLERANCE.get(dtype, 1e-5)
        if isinstance(self.exact.gp.covar_module, InducingPointKernel):
            tolerance = max(tolerance, _OF_INDUCING_POINTS)
        return tolerance

    def _amplification(self) -> float:
        """By how much an error in a kernel row can grow, relative to the prior."""
        variance = self.factors.context_kernel.variance
        # A variance is |L^-1 k|^2: an error e of a row becomes |L^-1|_2 e.
        root = self.exact.inverse_root.double()
        size = torch.linalg.matrix_norm
        # |L^-1|_2 <= min(|L^-1|_F, sqrt(|L^-1|_1 |L^-1|_inf))
        norm = torch.minimum(size(root), (size(root, 1) * size(root, torch.inf)).sqrt())
        # A mean is k alpha: an error becomes |alpha| e, relative to what there is to
        # explain.
        residual = self.exact.gp.train_targets.double() - self.exact.prior_mean.double()
        largest = residual.abs().max()
        mean_gain = variance * self.exact.alpha.double().norm()
        mean_gain = mean_gain / largest.clamp_min(torch.finfo(torch.double).tiny)
        return max(1.0, float(torch.maximum(variance**0.5 * norm, mean_gain)))


class _ProductIntegral(RowsIntegral):
    """With the sum over the contexts drawn to their side of the kernel, once."""

    def __init__(
        self, posterior: ProductPosterior, contexts: Tensor, weights: Tensor
    ) -> None:
        super().__init__(posterior.exact, contexts, weights)
        self.factors = posterior.factors
        inside, _ = self.factors.contexts_inside(contexts)
        kernel, t = self.factors.kernel, len(posterior.exact.alpha)
        # k(z, Z) = sum_m A_m(x) B_m(c): the sum over contexts acts on B alone. In
        # strips.
        step = max(1, BLOCK_ELEMENTS // t)
        self.context_side = sum(
            (
                part @ kernel.context_side(points.to(contexts))
                for part, points in zip(
                    weights.split(step), inside.split(step), strict=True
                )
            ),
            start=weights.new_zeros(()),
        )  # m x t

    def averaged_rows(self, X: Tensor) -> tuple[Tensor, Tensor]:
        r"""The sum ``sum_m A_m(x) (w' B_m)``."""
        sides = self.factors.decision_side(X, self.contexts[:1])  # m x b x t
        rows = (sides * self.context_side.unsqueeze(1)).sum(0)
        mean = self.posterior.prior_mean * self.weights.sum()
        return mean.expand(len(X)), rows

    def _bytes_per_row(self) -> int:
        return _TEMPORARIES * self.context_side.numel() * self.contexts.element_size()
