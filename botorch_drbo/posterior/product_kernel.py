"""Marginal moments of an exact GP whose kernel factorises over decision and context."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.sampling.pathwise.utils import get_train_inputs
from gpytorch.kernels import Kernel
from gpytorch.means import ConstantMean, ZeroMean
from torch import Tensor

from botorch_drbo import _arrays
from botorch_drbo._by_hand import Call
from botorch_drbo.posterior.base import (
    DEFAULT_MEMORY_BUDGET,
    MarginalPosterior,
    MomentSlopes,
)
from botorch_drbo.posterior.context_kernel import ContextKernel, context_components
from botorch_drbo.posterior.exact import ExactPosterior
from botorch_drbo.posterior.hand import HandInterpolant
from botorch_drbo.posterior.interpolant import ContextInterpolant, Seen
from botorch_drbo.posterior.path_support import is_columnwise
from botorch_drbo.posterior.separable import (
    GaussianDecisions,
    GaussianRows,
    SeparableKernel,
    SeparableMoments,
    SkeletonSystem,
    separable_moments,
)
from botorch_drbo.posterior.skeleton import Skeleton, find_skeleton
from botorch_drbo.posterior.spectral import KernelComponent, spectral_components

# With fewer contexts, or fewer pairs of context and training input, the exact path is
# as fast: measured with 1 and 10 decisions. The rule does not ask how many there are,
# so that a decision's value does not depend on the others in its batch.
_MIN_CONTEXTS = 48
_MIN_PAIRS = 2000
_MAX_SHARE = 0.5  # of the contexts: a larger skeleton does not pay
_TOLERANCE = {torch.double: 1e-11, torch.float: 1e-5}
_MAX_PLANS = 4
_HAND_ELEMENTS = 2**18  # of a temporary: measured best on a core with 1 MiB of L2
_HAND_PAIRS = 256  # but enough rows for BLAS
_HAND_CHUNKS = 8  # with more, autograd's functions are faster


class _Found(NamedTuple):
    """A skeleton in the caller's units and precision."""

    skeleton: Skeleton
    points: Tensor  # r x d_c
    system: SkeletonSystem
    interpolation: Tensor  # r x n
    shared: list[tuple[Seen, Tensor]]  # see ContextInterpolant


class _Plan(NamedTuple):
    """What was found out about one set of contexts."""

    seen: Seen
    found: _Found | None


class ProductPosterior(MarginalPosterior):
    r"""Moments at ``n`` contexts from those at a few, for kernels that factorise.

    .. math:: k((x, c), (x', c')) = \sum_m s_m\, a_m(x, x')\, b_m(c, c')

    RBF kernels are of this form, and so are products and sums of kernels that look at
    decision or context columns alone. Then both moments are, as functions of ``c``, in
    a small space that does not depend on ``x``: they are computed at a *skeleton* of
    ``r`` of the contexts by ``ExactPosterior``, and interpolated at the others
    (``find_skeleton`` says how),

    .. math:: \mu(x, c_i) = \sum_s E_{is}\, \mu(x, c_s), \qquad
        \sigma^2(x, c_i) = \sum_s E_{is}\, \sigma^2(x, c_s),

    which costs ``O(r t^2 + n r)`` per decision instead of ``O(n t^2)``. The skeleton is
    chosen when a set of contexts is seen for the first time, and kept for the last few
    sets. Errors stay below 1e-8 of the prior's scale (1e-3 in float32). Where no small
    skeleton does that, or there are few contexts, or contexts need a gradient or differ
    between decisions, the exact path is taken: ``path_of(X, contexts)`` tells.

    Args:
        model: A ``SingleTaskGP`` for which ``ProductPosterior.components`` is not None.
        context_indices: The model's input columns that hold the context.
        posterior_transform: None or a ``ScalarizedPosteriorTransform``.
        pending: Joint inputs ``p x d`` whose outcomes are on the way.
        pending_noise: Their noise variance, as a share of the model's.
        memory_budget: Bytes for the temporaries of one chunk.
    """

    path = "product"

    @staticmethod
    def components(
        model: Model,
        context_indices: Sequence[int],
        posterior_transform: PosteriorTransform | None,
    ) -> list[KernelComponent] | None:
        r"""The context's side of a model that keeps decision and context apart.

        Args:
            model: Any BoTorch model.
            context_indices: The model's input columns that hold the context.
            posterior_transform: The transform that would be applied to its posterior.

        Returns:
            The summands of the kernel for models of ``ExactPosterior`` with a constant
            mean, an input transform that acts on each column by itself, and a kernel
            that factorises; None for others.
        """
        if not isinstance(model, SingleTaskGP) or not ExactPosterior.supports(
            model, posterior_transform
        ):
            return None
        if type(model.mean_module) not in (ConstantMean, ZeroMean) or not is_columnwise(
            getattr(model, "input_transform", None)
        ):
            return None
        d = get_train_inputs(model, transformed=True)[0].shape[-1]
        kernel = cast(Kernel, model.covar_module)
        return context_components(kernel, d, context_indices)

    def __init__(
        self,
        model: SingleTaskGP,
        context_indices: Sequence[int],
        *,
        posterior_transform: PosteriorTransform | None = None,
        pending: Tensor | None = None,
        pending_noise: float = 1.0,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
        components: Sequence[KernelComponent] | None = None,
    ) -> None:
        r"""Factor the training covariance, and take the kernel apart.

        Args:
            model: A ``SingleTaskGP``.
            context_indices: The model's input columns that hold the context.
            posterior_transform: None or a ``ScalarizedPosteriorTransform``.
            pending: Joint inputs ``p x d`` whose outcomes are on the way.
            pending_noise: Their noise variance, as a share of the model's.
            memory_budget: Bytes for the temporaries of one chunk.
            components: ``ProductPosterior.components`` of the model, where known.

        Raises:
            UnsupportedError: A kernel that does not factorise.
        """
        super().__init__(model, context_indices, memory_budget)
        self.exact = ExactPosterior(
            model,
            context_indices,
            posterior_transform=posterior_transform,
            pending=pending,
            pending_noise=pending_noise,
            memory_budget=memory_budget,
        )
        inputs = self.exact.train_inputs
        if components is None:
            components = context_components(
                cast(Kernel, model.covar_module), inputs.shape[-1], context_indices
            )
        if components is None:
            raise UnsupportedError(
                "The product path needs a kernel that factorises over decision and "
                "context columns (RBF, or products and sums of kernels that look at "
                "one side only). Use path='auto' or path='exact'."
            )
        self.context_kernel = ContextKernel(
            components, inputs[:, list(context_indices)].double()
        )
        self.separable = SeparableKernel(
            spectral_components(cast(Kernel, model.covar_module), inputs.shape[-1]),
            inputs,
            self.context_indices,
        )
        self.gaussian = (
            GaussianDecisions(self.separable, self.exact.affine)
            if self.exact.affine is not None and self.separable.gaussian_decisions
            else None
        )
        if self.exact.affine is not None:
            self._context_affine = self.exact.affine.of(self.context_indices)
        self._amplification: float | None = None
        self._plans: list[_Plan] = []

    def forward(self, X: Tensor, contexts: Tensor) -> tuple[Tensor, Tensor]:
        r"""Evaluate the marginal moments.

        Args:
            X: Decisions, ``... x d_x``.
            contexts: Contexts, ``n x d_c`` or ``... x n x d_c``.

        Returns:
            The means and the variances, each ``... x n``, in the units of the outcome,
            noise not included.
        """
        interpolant = self.interpolant(X, contexts)
        return self.exact(X, contexts) if interpolant is None else interpolant.moments()

    def interpolant(self, X: Tensor, contexts: Tensor) -> ContextInterpolant | None:
        r"""Evaluate decisions at the skeleton, for moments and slopes at any context.

        Args:
            X: Decisions, ``... x d_x``.
            contexts: Contexts ``n x d_c`` for which the skeleton is right.

        Returns:
            Moments and slopes as functions of the context, differentiable in ``X``;
            None where ``forward`` takes the exact path.
        """
        plan = self._plan(X, contexts)
        if plan is None or plan.found is None:
            return None
        return self._interpolant(X, plan.found, self._at_skeleton(X, plan.found))

    def _interpolant(
        self, X: Tensor, found: _Found, moments: Tensor
    ) -> ContextInterpolant:
        return ContextInterpolant(
            skeleton=found.skeleton,
            moments=moments,
            interpolation=found.interpolation,
            inside=partial(self._inside_and_slope, X.detach()),
            shared=found.shared,
        )

    def by_hand(
        self,
        x: Any,
        contexts: Tensor,
        *,
        wanted: bool,
        width: float,
        min_variance: float,
    ) -> HandInterpolant:
        r"""Evaluate a few decisions at the skeleton, for a chain of calls by hand.

        Args:
            x: An array of decisions, ``b x d_x``, at most ``rows_by_hand``.
            contexts: Contexts ``n x d_c``.
            wanted: Whether gradients are.
            width: By how many standard deviations bounds lie above the mean.
            min_variance: Variances below it count as this, and have no slope.

        Returns:
            What ``interpolant`` returns, as arrays.
        """
        X = torch.from_numpy(x)
        plan = self._plan(X, contexts)
        assert plan is not None
        assert plan.found is not None
        assert self.gaussian is not None
        rows = Call(wanted, GaussianRows, x, *self.gaussian.parts())
        system = plan.found.system
        moments = Call(wanted, SeparableMoments, rows.value, system, len(x), True)
        local = self._interpolant(X, plan.found, torch.from_numpy(moments.value))
        return HandInterpolant(
            wanted, rows, moments, local, self._context_affine, width, min_variance
        )

    def rows_by_hand(self, X: Tensor, contexts: Tensor) -> int | None:
        r"""How many decisions at a time ``by_hand`` is to be asked for.

        Args:
            X: Decisions, ``... x d_x``.
            contexts: Contexts, ``n x d_c`` or ``... x n x d_c``.

        Returns:
            So many that temporaries stay in the cache; None where it does not take
            these decisions, or would not be faster.
        """
        if self.gaussian is None or X.dtype != torch.double or not _arrays.on_cpu(X):
            return None
        plan = self._plan(X, contexts)
        if plan is None or plan.found is None:
            return None
        _, r, t = plan.found.system.context_side.shape
        rows = min(
            _HAND_ELEMENTS // len(contexts),
            max(_HAND_ELEMENTS // (r * t), _HAND_PAIRS // r),
        )
        rows = max(1, rows)
        differentiates = torch.is_grad_enabled() and X.requires_grad
        most = rows if differentiates else _HAND_CHUNKS * rows
        return rows if X.shape[:-1].numel() <= most else None

    def slopes(self, X: Tensor, contexts: Tensor) -> MomentSlopes | None:
        r"""Evaluate moments and slopes on the exact path.

        Args:
            X: Decisions, ``... x d_x``.
            contexts: Contexts, ``n x d_c`` or ``... x n x d_c``.

        Returns:
            See ``ExactPosterior.slopes``.
        """
        return self.exact.slopes(X, contexts)

    @property
    def smooth(self) -> bool:
        """Whether an ``interpolant`` has slopes: RBF factors only on the context."""
        return self.context_kernel.smooth

    def path_of(self, X: Tensor, contexts: Tensor) -> str:
        r"""Tell which path ``forward`` takes.

        Args:
            X: Decisions, ``... x d_x``.
            contexts: Contexts, ``n x d_c`` or ``... x n x d_c``.

        Returns:
            "product" or "exact".
        """
        size = self.skeleton_size(X, contexts)
        return "exact" if size is None else self.path

    def skeleton_size(self, X: Tensor, contexts: Tensor) -> int | None:
        r"""Tell at how many contexts the model itself is evaluated.

        Args:
            X: Decisions, ``... x d_x``.
            contexts: Contexts, ``n x d_c`` or ``... x n x d_c``.

        Returns:
            ``r``, or None where the exact path is taken.
        """
        plan = self._plan(X, contexts)
        return None if plan is None or plan.found is None else len(plan.found.points)

    def _moments(self, Z: Tensor) -> tuple[Tensor, Tensor]:
        return self.exact._moments(Z)

    def _at_skeleton(self, X: Tensor, found: _Found) -> Tensor:
        """Means and variances, ``2 x ... x r``; half of each kernel row is known."""
        flat = X.reshape(-1, X.shape[-1])  # b x d_x
        if self.gaussian is None:
            decisions = self._decisions_inside(flat, found.points)
            side = self.separable.decision_side(decisions)
        else:
            side = self.gaussian(flat)
        moments = separable_moments(side, found.system, self.memory_budget)
        return moments.reshape(2, *X.shape[:-1], -1)

    def _decisions_inside(self, X: Tensor, contexts: Tensor) -> Tensor:
        """The decisions as the kernel sees them, ``b x d_x``."""
        model = cast(SingleTaskGP, self.model)
        if model.training:
            model.eval()
        Z = model.transform_inputs(self.join(X, contexts[:1]))  # b x 1 x d
        return Z[:, 0, self.separable.columns[: X.shape[-1]]]

    def _plan(self, X: Tensor, contexts: Tensor) -> _Plan | None:
        """What is known about these contexts; None where nothing can be gained."""
        if (
            contexts.ndim != 2
            or len(contexts) < _MIN_CONTEXTS
            or len(contexts) * self.context_kernel.num_columns < _MIN_PAIRS
            or X.numel() == 0
            or (contexts.requires_grad and torch.is_grad_enabled())
        ):
            return None
        for position, plan in enumerate(self._plans):
            if plan.seen.same(contexts):
                if position:  # the most recent first
                    self._plans.insert(0, self._plans.pop(position))
                return plan
        with torch.inference_mode(False), torch.no_grad():  # it is kept
            plan = self._make_plan(X, contexts)
        self._plans = [plan, *self._plans[: _MAX_PLANS - 1]]
        return plan

    def _make_plan(self, X: Tensor, contexts: Tensor) -> _Plan:
        if self._amplification is None:
            self._amplification = _amplification(
                cast(SingleTaskGP, self.model), self.exact, self.context_kernel.variance
            )
        inside = self._inside(X, contexts)
        n, columns = len(contexts), self.context_kernel.num_columns
        max_size = int(_MAX_SHARE * n)
        # One matrix n x r stays; and a chunk has some temporaries of both widths.
        max_size = min(max_size, self.memory_budget // (32 * n))
        skeleton = find_skeleton(
            self.context_kernel,
            inside,
            amplification=self._amplification,
            tolerance=_TOLERANCE.get(contexts.dtype, 1e-5),
            max_size=max_size,
            chunk=max(1, self.memory_budget // (64 * (columns + max_size + 64))),
        )
        found = None
        if skeleton is not None:
            interpolation = skeleton.interpolation.mT.contiguous().to(contexts)
            found = _Found(
                skeleton=skeleton._replace(interpolation=interpolation),
                points=contexts[skeleton.chosen],
                system=self._system(inside[skeleton.chosen]),
                interpolation=interpolation,
                shared=[],
            )
        return _Plan(Seen.of(contexts), found)

    def _system(self, skeleton: Tensor) -> SkeletonSystem:
        """What turns kernel rows at a skeleton, as the kernel sees it, into moments."""
        exact = self.exact
        offset = exact.mean_offset + exact.mean_scale * exact.prior_mean
        return SkeletonSystem(
            context_side=self.separable.context_side(skeleton.to(exact.train_inputs)),
            alpha=exact.alpha,
            inverse_root=exact.inverse_root,
            variance=self.separable.variance,
            offset=offset.item(),  # once: numbers never wait for a device again
            scale=exact.mean_scale.item(),
        )

    def _inside(self, X: Tensor, contexts: Tensor) -> Tensor:
        """The contexts as the kernel sees them; each column by itself."""
        if self.exact.affine is not None:
            return self._context_affine(contexts.double())
        model = cast(SingleTaskGP, self.model)
        if model.training:
            model.eval()
        some = X.reshape(-1, X.shape[-1])[:1]
        Z = model.transform_inputs(self.join(some, contexts.to(some)))[0]  # n x d
        return Z[:, list(self.context_indices)].double()

    def _inside_and_slope(self, X: Tensor, contexts: Tensor) -> tuple[Tensor, Tensor]:
        """And the derivative of each column in itself, ``n x d_c`` both."""
        if getattr(self.model, "input_transform", None) is None:
            return contexts.double(), torch.ones_like(contexts, dtype=torch.double)
        if self.exact.affine is not None:
            contexts = contexts.double()
            affine = self._context_affine
            return affine(contexts), affine.slope.expand_as(contexts)
        with torch.enable_grad():
            leaf = contexts.detach().requires_grad_()
            inside = self._inside(X, leaf)
            (slope,) = torch.autograd.grad(inside.sum(), leaf)
        return inside.detach(), slope.double()


def _amplification(
    model: SingleTaskGP, exact: ExactPosterior, variance: float
) -> float:
    """By how much an error in a kernel row can grow, in units of the prior's scale."""
    root = exact.inverse_root.double()
    size = torch.linalg.matrix_norm
    # Two bounds of the spectral norm of L^-1.
    norm = torch.minimum(size(root), (size(root, 1) * size(root, torch.inf)).sqrt())
    residual = model.train_targets.double()
    if isinstance(model.mean_module, ConstantMean):
        residual = residual - cast(Tensor, model.mean_module.constant)
    largest = residual.abs().max()
    of_mean = variance * exact.alpha.double().norm() / largest.clamp_min(1e-300)
    return max(1.0, float(torch.maximum(variance**0.5 * norm, of_mean)))
