"""Marginal moments of an exact GP whose kernel factorises over decision and context."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from botorch.models import SingleTaskGP
from gpytorch.kernels import InducingPointKernel
from torch import Tensor

from botorch_drbo.posterior.blocks import DEFAULT_MEMORY_BUDGET
from botorch_drbo.posterior.exact import ExactPosterior, RowsIntegral
from botorch_drbo.posterior.factorized import (
    BLOCK_ELEMENTS,
    FactorizedModel,
    factors_of,
)
from botorch_drbo.posterior.product_view import ProductView
from botorch_drbo.posterior.separable_view import SeparableView, view_of_every_context
from botorch_drbo.posterior.skeleton import find_skeleton
from botorch_drbo.posterior.view import Integral, MarginalPosterior, View

# With fewer contexts, or fewer pairs of context and training input, the exact view is
# as fast: measured with 1 and 10 decisions. The rule does not ask how many there are,
# so that a decision's value does not depend on the others in its batch.
_MIN_CONTEXTS = 48
_MIN_PAIRS = 2000
_MAX_SHARE = 0.5  # of the contexts: a larger skeleton does not pay
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

    Args:
        model: A ``SingleTaskGP`` for which ``factors_of`` is not None.
        context_indices: The model's input columns that hold the context.
        posterior_transform: None or a ``ScalarizedPosteriorTransform``.
        pending: Joint inputs ``p x d`` that are being evaluated.
        pending_noise: Their noise variance, as a share of the model's.
        memory_budget: Bytes for the temporaries of one block.

    Raises:
        UnsupportedError: A kernel that does not factorise.
    """

    def __init__(
        self,
        model: SingleTaskGP,
        context_indices: Sequence[int],
        *,
        posterior_transform: PosteriorTransform | None = None,
        pending: Tensor | None = None,
        pending_noise: float = 1.0,
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
            pending=pending,
            pending_noise=pending_noise,
            memory_budget=memory_budget,
        )
        self.factors = FactorizedModel(self.exact, context_side)
        self.smooth = self.exact.smooth

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
        max_size = int(_MAX_SHARE * n)
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
            # One matrix n x t stays; with two sides fewer exponentials are needed.
            side = n * len(self.exact.alpha) * contexts.element_size()
            if side <= self.memory_budget // 4:
                return SeparableView(self.factors, contexts)
            return view_of_every_context(self.factors, contexts)
        return ProductView(
            self.factors, contexts, skeleton, transformed[skeleton.chosen]
        )

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
