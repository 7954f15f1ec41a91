"""Marginal moments of an exact Gaussian process, by all rows or by inducing points."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, cast, final

import torch
from botorch.acquisition.objective import (
    PosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.models.transforms.outcome import Standardize
from botorch.models.utils.inducing_point_allocators import GreedyVarianceReduction
from botorch.sampling.pathwise.utils import get_train_inputs
from gpytorch.kernels import InducingPointKernel, Kernel
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from gpytorch.means import ConstantMean, ZeroMean
from torch import Tensor

from botorch_drbo.kernels.components import (
    KernelComponent,
    is_smooth,
    kernel_components,
    prior_kernel,
)
from botorch_drbo.kernels.stationary import is_stationary, stationary_kernel
from botorch_drbo.posterior.blocks import (
    DEFAULT_MEMORY_BUDGET,
    SmoothDistances,
    in_blocks,
)
from botorch_drbo.posterior.ensemble import ModelEnsemble
from botorch_drbo.posterior.models import inputs_in_units
from botorch_drbo.posterior.skeleton import (
    column_sources,
    columns_from,
    keeps_differences,
)
from botorch_drbo.posterior.stationary_moments import (
    ExplainedVariance,
    StationarySystem,
    stationary_mean_slopes,
    stationary_means,
    stationary_moments,
    stationary_slopes,
)
from botorch_drbo.posterior.training import (
    affine_inputs,
    conditioned_system,
    extended_inverse_root,
    outcome_map,
)
from botorch_drbo.posterior.view import (
    Integral,
    LocalMoments,
    MarginalPosterior,
    MomentSlopes,
    View,
    join_columns,
    slopes_by_autograd,
)

_ROUNDING = 100  # machine epsilons that a covariance may be wrong by
_BLOCK_ELEMENTS = 2**21  # of the kernel between contexts
_TEMPORARIES = 12  # of the kernel rows of all contexts, forward and backward


class ExactPosterior(MarginalPosterior):
    r"""Marginal moments of a ``SingleTaskGP`` from one factor of its training matrix.

    .. math::
        \mu(z) = m(z) + k(z, Z)\,\alpha, \qquad
        \sigma^2(z) = k(z, z) - \lVert L^{-1} k(Z, z) \rVert^2

    with ``L L' = K + noise`` and ``alpha = (K + noise)^-1 (y - m)`` computed once, in
    float64, when the object is made. For RBF and Matern kernels the moments and their
    slopes come in one sweep (``stationary_moments``); other kernels are evaluated by
    GPyTorch, and their slopes found by autograd.

    Pending inputs are hallucinated [Desautels2014bucb]_: they enter the factor ``L``
    and leave the mean alone.
    """

    @staticmethod
    def supports(model: Model, posterior_transform: PosteriorTransform | None) -> bool:
        """Whether the formulas of this class give the model's posterior."""
        return (
            isinstance(model, SingleTaskGP)
            and type(model).posterior is SingleTaskGP.posterior
            and type(model).forward is SingleTaskGP.forward
            and model.num_outputs == 1
            and model.train_targets.ndim == 1
            and type(model.likelihood)
            in (GaussianLikelihood, FixedNoiseGaussianLikelihood)
            and type(getattr(model, "outcome_transform", None))
            in (type(None), Standardize)
            and type(posterior_transform) in (type(None), ScalarizedPosteriorTransform)
        )

    def __init__(
        self,
        model: SingleTaskGP,
        context_indices: Sequence[int],
        *,
        posterior_transform: PosteriorTransform | None = None,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> None:
        super().__init__(model, context_indices, memory_budget)
        self.gp = model
        self.kernel = prior_kernel(cast(Kernel, model.covar_module))
        with torch.no_grad():
            known = conditioned_system(model)
            scale, offset = outcome_map(model, posterior_transform)
            prior = known.inputs.new_zeros(())
            if isinstance(model.mean_module, ConstantMean):
                prior = cast(Tensor, model.mean_module.constant).detach()
        Z = known.inputs.detach()
        self.noise = known.noise.mean()
        self.columns = torch.tensor(self.context_indices, device=Z.device)
        self.mean_scale, self.mean_offset = scale.to(Z), offset.to(Z)
        self.prior_mean = prior.to(Z).reshape(())
        self.affine = affine_inputs(model)
        self._beside: tuple[Tensor, Tensor, Tensor, Tensor] | None = None
        self.components = _components(model, Z.shape[-1])
        self.num_columns = get_train_inputs(model, transformed=False)[0].shape[-1]
        # A transform that mixes columns lets the context enter through any.
        sources = column_sources(
            getattr(model, "input_transform", None), self.num_columns
        )
        columns: slice | list[int] = slice(None)
        if sources is not None:
            columns = columns_from(sources, self.context_indices)
        # Only the columns by which the context enters have to be smooth.
        self.smooth = self.components is not None and all(
            is_smooth(factor.smoothness) or not factor.weights[columns].any()
            for component in self.components
            for factor in component.factors
        )
        self._know(Z, known.alpha, known.inverse_root)

    def _know(self, Z: Tensor, alpha: Tensor, inverse_root: Tensor) -> None:
        """Prepare for rows ``t x d``, with ``t x 1`` and ``t x t`` in float64."""
        model = self.gp
        self.train_inputs, self._precise_root = Z, inverse_root
        self.alpha, self.inverse_root = alpha.to(Z), inverse_root.to(Z)
        variances = [part.variance for part in self.components or []]
        # How large a kernel row can be; of an unknown kernel no shortcut is safe.
        prior_variance = math.inf if self.components is None else sum(variances)
        self.explained = ExplainedVariance.of(self.inverse_root, prior_variance)
        kernel = stationary_kernel(self.components or [], self.train_inputs)
        self.system = kernel and StationarySystem(
            kernel, self.alpha, self.explained, self.memory_budget
        )
        # From the user's units to those of the kernel's rows in one step, where moments
        # and slopes are in closed form.
        self.scaled = None
        constant_mean = type(model.mean_module) in (ConstantMean, ZeroMean)
        if kernel is not None and self.affine is not None and constant_mean:
            self.scaled = self.affine.then(kernel.centre, kernel.weights)

    def hallucinating(self, pending: Tensor, noise: float = 1.0) -> ExactPosterior:
        """See ``MarginalPosterior``: one block more in the factor, zeros in alpha."""
        conditioned = copy.copy(self)
        with torch.no_grad():
            rows, cross, own = self._rows_beside(pending)
            own = own.clone()
            # Not less than the rounding of the model's dtype.
            rounding = _ROUNDING * torch.finfo(rows.dtype).eps * own.diagonal().mean()
            own.diagonal().add_((noise * self.noise).clamp_min(rounding))
            conditioned._know(
                rows,
                torch.cat([self.alpha, self.alpha.new_zeros(len(own), 1)]),
                extended_inverse_root(self._precise_root, cross, own),
            )
            conditioned._beside = None
        return conditioned

    def _rows_beside(self, pending: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """All ``t + p`` rows, and the covariances of the last ``p`` with others, own.

        Those of the last call are kept: the same inputs come again with other noise.
        """
        Z, known = self.train_inputs, self._beside
        pending = pending.to(Z)
        if known is None or not torch.equal(known[0], pending):
            P = self.inside(pending)
            cross, own = self.covariance(Z, P), self.covariance(P, P)
            known = pending, torch.cat([Z, P]), cross.double(), own.double()
            self._beside = known
        return known[1:]

    @property
    def dtype(self) -> torch.dtype:
        """The model's."""
        return self.train_inputs.dtype

    def _over(self, contexts: Tensor) -> View:
        return ExactView(self, contexts)

    def _integral(self, contexts: Tensor, weights: Tensor) -> Integral:
        return _ExactIntegral(self, contexts, weights)

    def moments(self, Z: Tensor) -> tuple[Tensor, Tensor]:
        """Evaluate the moments of joint inputs.

        Shapes: ``Z``: ``... x d``.
        """
        flat = Z.reshape(-1, Z.shape[-1])  # N x d
        # In closed form, with its slopes as gradients; else GPyTorch's kernel, in
        # blocks.
        if self.system is not None and self.scaled is not None:
            mean, variance = stationary_moments(self.system, self.scaled(flat))
            mean = self.prior_mean + mean
        else:
            mean, variance = self._general_moments(flat)
        mean = self.mean_offset + self.mean_scale * mean
        # Rounding may leave a variance just below zero where the data know the outcome.
        variance = self.mean_scale.square() * variance.clamp_min(0.0)
        return mean.reshape(Z.shape[:-1]), variance.reshape(Z.shape[:-1])

    def means(self, Z: Tensor) -> Tensor:
        """Evaluate the means of joint inputs.

        Shapes: ``Z``: ``... x d``.
        """

        def block(rows: Tensor) -> tuple[Tensor]:
            prior, kernel = self.rows(rows)
            return (prior + (kernel @ self.alpha).squeeze(-1),)

        row = _TEMPORARIES * len(self.alpha) * Z.element_size()
        (mean,) = in_blocks(block, Z.flatten(0, -2), row, self.memory_budget)
        return (self.mean_offset + self.mean_scale * mean).reshape(Z.shape[:-1])

    def slopes(self, X: Tensor, contexts: Tensor) -> MomentSlopes:
        """Evaluate moments and their slopes in the context.

        Shapes: ``X``: ``b x d_x``, ``contexts``: ``k x d_c``, returns ``b x k``.
        """
        if self.system is None or self.scaled is None:
            return slopes_by_autograd(self._at, X, contexts)
        Z = self.scaled(self.join(X, contexts))  # b x k x d
        mean, variance, mean_slope, variance_slope = (
            found.reshape(*Z.shape[:-1], *found.shape[1:])
            for found in stationary_slopes(self.system, Z.reshape(-1, Z.shape[-1]))
        )
        mean_slope, variance_slope, units = (
            found.index_select(-1, self.columns)  # those of the context
            for found in (mean_slope, variance_slope, self.scaled.slope)
        )
        # Chain rule through the scaled inputs a: d mu / dc = scale * gain * d mu / da.
        units = self.mean_scale * units  # d_c, of scaled inputs
        # A variance that is clamped to zero is flat there.
        inside = (variance > 0.0).unsqueeze(-1)
        return MomentSlopes(
            mean=self.mean_offset + self.mean_scale * (self.prior_mean + mean),
            variance=self.mean_scale.square() * variance.clamp_min(0.0),
            mean_slope=units * mean_slope,
            variance_slope=self.mean_scale * units * variance_slope * inside,
        )

    def _at(self, X: Tensor, contexts: Tensor) -> tuple[Tensor, Tensor]:
        return self.moments(join_columns(X, contexts, self.context_indices))

    def rows(self, Z: Tensor) -> tuple[Tensor, Tensor]:
        """Evaluate prior mean and kernel rows, in the model's own units.

        Shapes: ``Z``: ``N x d``, returns ``N x t``.
        """
        if self.system is not None and self.scaled is not None:
            return self.prior_mean.expand(len(Z)), self.system.kernel(self.scaled(Z))
        inside = self.inside(Z)
        mean = cast(Callable[..., Tensor], self.gp.mean_module)(inside)
        if self.system is not None:
            kernel = self.system.kernel
            return mean, kernel(kernel.scale(inside))
        return mean, self.covariance(inside, self.train_inputs)

    def inside(self, Z: Tensor) -> Tensor:
        r"""Inputs ``... x d`` as the kernel sees them."""
        if self.gp.training:  # as model.posterior does: a transform must not learn here
            self.gp.eval()
        return self.gp.transform_inputs(Z)

    def some_decision(self) -> Tensor:
        r"""The decision of a training input, ``1 x d_x``."""
        row = inputs_in_units(self.gp)[:1]
        columns = range(row.shape[-1])
        return row[:, [i for i in columns if i not in self.context_indices]]

    def _general_moments(self, Z: Tensor) -> tuple[Tensor, Tensor]:
        """In the model's own units, ``N x d`` to ``N``; kernels of any kind."""
        Z = self.inside(Z)
        if self.system is not None:
            scaled = self.system.kernel.scale(Z)
            mean, variance = stationary_moments(self.system, scaled)
        else:
            # For each part of the kernel: its row and its distances, the differences
            # by column, and their like in the backward pass.
            parts = sum(isinstance(part, Kernel) for part in self.gp.modules())
            floats = len(self.train_inputs) * (12 + 4 * Z.shape[-1]) * parts
            mean, variance = in_blocks(
                self._block, Z, Z.element_size() * floats, self.memory_budget
            )
        return cast(Callable[..., Tensor], self.gp.mean_module)(Z) + mean, variance

    def _block(self, Z: Tensor) -> tuple[Tensor, Tensor]:
        # k alpha, and k(z, z) - |L^-1 k|^2.
        K = self.covariance(Z, self.train_inputs)  # N x t
        prior = cast(Tensor, self.kernel(Z, diag=True))
        explained = (K @ self.inverse_root.mT).square().sum(-1)
        return (K @ self.alpha).squeeze(-1), prior - explained

    def covariance(self, left: Tensor, right: Tensor) -> Tensor:
        """Evaluate the kernel, in the model's own units.

        Shapes: ``left``: ``... x k x d``, ``right``: ``... x n x d``, returns ``... x k
        x n``.
        """
        with SmoothDistances():
            return cast(Any, self.kernel)(left, right).to_dense()


class RowsIntegral(Integral, ABC):
    r"""A weighted sum over contexts, from averaged kernel rows.

    .. math:: E[g(x)] = \sum_i w_i m(x, c_i) + B \alpha, \qquad
        \operatorname{Var} g(x) = \sum_{ij} w_i w_j k((x, c_i), (x, c_j))
            - \lVert L^{-1} B \rVert^2

    with :math:`B(x) = \sum_i w_i\, k((x, c_i), Z)`: one product with a ``t x t``
    matrix, whatever the number of contexts. For a stationary kernel the prior's
    variance is the same for all decisions, and computed once.

    Shapes: ``contexts``: ``n x d_c``.
    """

    def __init__(
        self, posterior: ExactPosterior, contexts: Tensor, weights: Tensor
    ) -> None:
        super().__init__(posterior.dtype, posterior.memory_budget)
        self.posterior, self.contexts, self.weights = posterior, contexts, weights
        self.offset = posterior.mean_offset * weights.sum()
        self.prior = self._prior_of_all()

    @abstractmethod
    def averaged_rows(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Evaluate the prior mean and ``B``, in the model's own units.

        Shapes: ``X``: ``b x d_x``, returns ``b x t``.
        """

    def _moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        exact = self.posterior
        # The sum is linear in the kernel rows: with their average B = sum_i w_i k(z_i,
        # Z) its mean is B alpha and its variance w'K w - |L^-1 B|^2, whatever n is.
        mean, B = self.averaged_rows(X)
        prior = self._prior_of(X) if self.prior is None else self.prior
        variance = prior - (B @ exact.inverse_root.mT).square().sum(-1)
        mean = mean + (B @ exact.alpha).squeeze(-1)
        scale = exact.mean_scale
        return self.offset + scale * mean, scale.square() * variance

    def _joint(self, X: Tensor) -> Tensor:
        return join_columns(X, self.contexts, self.posterior.context_indices)

    def _prior_of_all(self) -> Tensor | None:
        """The prior's variance where it is the same for all decisions, a scalar."""
        exact = self.posterior
        kernel = exact.kernel
        transform = getattr(exact.gp, "input_transform", None)
        if not is_stationary(kernel) or not keeps_differences(
            transform, exact.num_columns
        ):
            return None
        # Only differences of contexts count, and they are the same at every decision.
        points = exact.inside(self._joint(exact.some_decision())).squeeze(0)  # n x d
        total = self.weights.new_zeros(())
        # w'K w in strips: the n x n kernel itself need not fit in memory.
        step = max(1, _BLOCK_ELEMENTS // max(1, len(points)))
        for part, weights in zip(
            points.split(step), self.weights.split(step), strict=True
        ):
            total = total + weights @ exact.covariance(part, points) @ (self.weights)
        return total

    def _prior_of(self, X: Tensor) -> Tensor:
        """The prior's variance of ``b x d_x`` decisions, ``b``."""
        points = self.posterior.inside(self._joint(X))  # b x n x d
        K = self.posterior.covariance(points, points)
        return torch.einsum("i,bij,j->b", self.weights, K, self.weights)


@final
class _ExactIntegral(RowsIntegral):
    """The rows of all contexts are evaluated, decision by decision, and averaged."""

    def averaged_rows(self, X: Tensor) -> tuple[Tensor, Tensor]:
        n = len(self.contexts)
        mean, rows = self.posterior.rows(self._joint(X).flatten(0, 1))
        return mean.unflatten(0, (-1, n)) @ self.weights, (
            self.weights @ rows.unflatten(0, (-1, n))
        )

    def _bytes_per_row(self) -> int:
        n, t = len(self.contexts), len(self.posterior.alpha)
        pairs = n * t if self.prior is not None else n * (n + t)
        return _TEMPORARIES * pairs * self.contexts.element_size()


class ExactView(View):
    """See ``ExactPosterior``."""

    method = "exact"

    def __init__(self, posterior: ExactPosterior, contexts: Tensor) -> None:
        super().__init__(contexts)
        self.posterior = posterior

    def at(self, X: Tensor) -> LocalMoments:
        """Evaluate decisions."""
        return _ExactMoments(self, X)


class _ExactMoments(LocalMoments):
    def __init__(self, view: ExactView, X: Tensor) -> None:
        super().__init__(X, view.posterior.dtype)
        self.view, self.num_rows = view, len(view.posterior.alpha)
        self.num_contexts = len(view.contexts)

    def _moments(self, part: slice) -> tuple[Tensor, Tensor]:
        posterior = self.view.posterior
        return posterior.moments(posterior.join(self.X, self.view.contexts[part]))

    def _means(self, part: slice) -> Tensor:
        posterior = self.view.posterior
        return posterior.means(posterior.join(self.X, self.view.contexts[part]))

    def _means_of_moments(self, part: slice) -> Tensor:
        exact, contexts = self.view.posterior, self.view.contexts[part]
        if exact.system is None or exact.scaled is None:
            return super()._means_of_moments(part)
        Z = exact.scaled(exact.join(self.X, contexts))  # b x n x d
        mean = exact.prior_mean + stationary_means(exact.system, Z.flatten(0, -2))
        return (exact.mean_offset + exact.mean_scale * mean).reshape(Z.shape[:-1])

    def _mean_slopes(self, contexts: slice | Tensor) -> Tensor:
        exact, contexts = self.view.posterior, self.view.points(contexts)
        if exact.system is None or exact.scaled is None:
            return exact.slopes(self.X, contexts).mean_slope
        Z = exact.scaled(exact.join(self.X, contexts))  # b x k x d
        slope = stationary_mean_slopes(exact.system, Z.flatten(0, -2)).reshape(Z.shape)
        units = exact.mean_scale * exact.scaled.slope  # d, of scaled inputs
        return (units * slope).index_select(-1, exact.columns)

    def _slopes(self, contexts: slice | Tensor) -> MomentSlopes:
        return self.view.posterior.slopes(self.X, self.view.points(contexts))


def _components(model: SingleTaskGP, d: int) -> list[KernelComponent] | None:
    """The summands of a kernel that is a sum of products of stationary factors."""
    try:
        return kernel_components(prior_kernel(cast(Kernel, model.covar_module)), d)
    except UnsupportedError:  # GPyTorch evaluates it
        return None


def inducing_points(model: SingleTaskGP, num: int) -> Tensor:
    """Some training inputs: one after the other that of the largest variance.

    Given those before it [Burt2020convergence]_, until what is left is rounding.

    Shapes: returns ``m x d``.
    """
    model.eval()
    with torch.no_grad():
        inputs = get_train_inputs(model, transformed=True)[0]
        return GreedyVarianceReduction().allocate_inducing_points(
            inputs=inputs,
            covar_module=cast(Kernel, model.covar_module),
            num_inducing=min(num, len(inputs)),
            input_batch_shape=torch.Size(),
        )


def with_inducing_points(model: Model, num: int) -> Model:
    """A copy of a model whose moments cost as much as with ``num`` rows.

    Variances are not smaller than the model's, up to what inducing points say of the
    noise; how near they are is a question of the kernel and of ``num``.
    """
    if isinstance(model, ModelEnsemble):
        members = [with_inducing_points(member, num) for member in model.members]
        changed = any(a is not b for a, b in zip(members, model.members, strict=True))
        return ModelEnsemble(members) if changed else model
    if (
        not isinstance(model, SingleTaskGP)
        or not ExactPosterior.supports(model, None)
        or isinstance(model.covar_module, InducingPointKernel)
        or len(model.train_targets) <= num
    ):
        return model
    points = inducing_points(model, num)
    few = copy.deepcopy(model)
    few.covar_module = InducingPointKernel(
        cast(Kernel, few.covar_module), points, few.likelihood
    )
    few.prediction_strategy = None
    return few.requires_grad_(False).eval()
