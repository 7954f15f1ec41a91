"""Expected improvement: of an expectation, and of a robust value by sample paths."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Unpack, final

import torch
from botorch.acquisition.analytic import _log_ei_helper
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from botorch.utils.safe_math import log_fatplus, logmeanexp
from torch import Tensor

from botorch_drbo._validation import check_points
from botorch_drbo.acquisition.analytic import PosteriorAcquisitionFunction
from botorch_drbo.acquisition.inputs import (
    MomentOptions,
    PathOptions,
    check_context_set,
    check_objective,
    context_columns,
    count_inputs,
)
from botorch_drbo.acquisition.monte_carlo import PathwiseBatchAcquisitionFunction
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import Objective
from botorch_drbo.posterior import marginal_posterior
from botorch_drbo.posterior.blocks import DEFAULT_MEMORY_BUDGET
from botorch_drbo.posterior.models import prior_variance


@final
class LogExpectedImprovementOfExpectation(PosteriorAcquisitionFunction):
    r"""Log expected improvement of the expectation over the contexts, in closed form.

    .. math::
        g(x) = \sum_i w_i f(x, c_i) \sim N\big( m(x), s^2(x) \big), \qquad
        m(x) = w' \mu(x, C), \quad s^2(x) = w' \Sigma(x) w

    .. math::
        \alpha(x) = \log E\big[ (g(x) - g^\star)_+ \big]
            = \log s(x) + \log\big( \phi(u) + u\, \Phi(u) \big), \qquad
        u = \frac{m(x) - g^\star}{s(x)}, \quad g^\star = \max_j m(x_j)

    The expectation is itself Gaussian, so no sampling is needed. :math:`\Sigma(x)` is
    the joint posterior covariance over the contexts: model errors at different contexts
    partly cancel, while a bound that adds up their deviations, as
    ``DistributionallyRobustUCB`` does, overstates the uncertainty of the expectation.

    The incumbent :math:`g^\star` is the largest posterior mean of ``g`` among the
    decisions tried, because ``g`` itself is never observed: outcomes are noisy and
    belong to one context each. BoTorch's ``LogExpectedImprovement`` does the same for
    noisy data. ``qLogDistributionallyRobustNoisyExpectedImprovement`` uses the
    incumbent of each sample path instead, which is better if much is unknown at the
    decisions tried.

    For an ensemble, the value is the logarithm of the mean of its models' expected
    improvements, each with its own incumbent. If the units of the outcome change, all
    values change by the same constant.

    Args:
        model: A fitted single-output BoTorch model of the joint input ``[x, c]``.
        X_baseline: The decisions tried, ``t x d_x``.
        context_set: The distribution of the context, ``n`` contexts of ``d_c`` columns.
        X_pending: Decisions ``m x d_x`` that are being evaluated.
        options: The options of functions of posterior moments; see ``MomentOptions``.

    Raises:
        InputDataError: No decisions tried or bad entries, or a wrong context set.
        BotorchTensorDimensionError: Columns that do not fit the model.
        UnsupportedError: A model that is not single-output, or whose outcomes are not
            jointly Gaussian.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo import ContextSet
        >>> from botorch_drbo.acquisition import LogExpectedImprovementOfExpectation
        >>> Z = torch.rand(8, 2, dtype=torch.double)  # decision, context
        >>> acqf = LogExpectedImprovementOfExpectation(
        ...     SingleTaskGP(Z, Z.sum(dim=-1, keepdim=True)),
        ...     X_baseline=Z[:, :1],
        ...     context_set=ContextSet.empirical(Z[:, 1:]),
        ... )
        >>> acqf(torch.rand(5, 1, 1, dtype=torch.double)).shape
        torch.Size([5])

    The logarithm is that of [Ament2023logei]_; the expected improvement of an
    integral over contexts is that of [Williams2000integrated]_.
    """

    _log = True
    X_baseline: Tensor

    def __init__(
        self,
        model: Model,
        X_baseline: Tensor,
        context_set: ContextSet,
        *,
        X_pending: Tensor | None = None,
        **options: Unpack[MomentOptions],
    ) -> None:
        super().__init__(model, context_set, **options)
        check_points(X_baseline, "X_baseline", num_columns=self.num_decision_columns)
        self.register_buffer("X_baseline", X_baseline.detach().clone())
        self.set_X_pending(X_pending)

    def _prepare(self, joint: Tensor | None) -> None:
        contexts, weights = self.context_set.points, self.context_set.weights
        self.integral = self.posterior.integral(contexts, weights)
        with torch.no_grad():  # pending decisions leave the mean as it is
            self._bar = self.integral(self.X_baseline)[0].amax(0)

    def values(self, X: Tensor) -> Tensor:
        r"""The logarithm of the expected improvement, of each model of an ensemble."""
        mean, variance = self.integral(X)  # b (x S)
        deviation = variance.clamp_min(self.min_variance).sqrt()
        gain = (mean - self._bar.to(mean)) / deviation
        return deviation.log() + _log_ei_helper(gain)

    def _over_models(self, values: Tensor) -> Tensor:
        return logmeanexp(values, dim=-1)


_FEW = 4  # decisions tried, whose objective is looked at first on each path
_MANY_TRIED = 25  # from so many on some of the paths do, to rank decisions by:
_EVERY = slice(None, None, 3)  # of them
_OF_PATHS = ("_pending_utility", "_tried", "_bar")  # buffers with a row for each path
# In prior standard deviations:
_SMOOTHING = 1e-6  # BoTorch's TAU_RELU
_MARGIN = 1e-3  # a pair that cannot improve counts as one that is short by so much more


class qLogDistributionallyRobustNoisyExpectedImprovement(
    PathwiseBatchAcquisitionFunction
):
    r"""Log expected improvement of a batch over the decisions tried so far.

    .. math::
        \alpha(x_1, \dots, x_q) &= \log \frac1S \sum_{s=1}^S
            \Big( \max_{j \le q} g_s(x_j) - \max_{i \le t} g_s(x_i) \Big)_+ \\
        g_s(x) &= g\big( f_s(x, c_1), \dots, f_s(x, c_n);\ w \big)

    ``f_s`` are posterior sample paths, ``g`` is the objective, and the second maximum
    is over the decisions tried (``X_baseline``) and those pending.

    *Each path has its own incumbent*, as in BoTorch's ``qNoisyExpectedImprovement``.
    The robust value of a decision that was tried is unknown even without noise, because
    its outcome was observed at one context only. A path that is high everywhere is also
    high at the decisions tried, and is therefore no improvement. With a single
    incumbent for all paths, the best robust value of the posterior mean
    (``best_robust_value``), such a path would count as an improvement for every
    decision.

    *No second exploration bonus.* Far from data the posterior of a Gaussian process is
    flat in the context, and so is any bound ``mu + w sigma``. A penalty on the slope of
    the bound, or its worst case over a ball, is therefore small for a decision that was
    never tried and large for a good decision that is known well. It acts as an
    exploration bonus in addition to ``w sigma``. Sample paths are as steep far from
    data as near them, so the expected improvement of the worst case has no such bonus.

    *Cost.* If the objective cannot exceed the expectation (``Objective.upper_bound``),
    a path can improve only where its expectation does; for all other pairs of decision
    and path, about nine in ten, no worst case is computed.

    If no path improves, the plain expected improvement and its gradient are zero.
    BoTorch's ``fatplus`` replaces the positive part, and its logarithm has a gradient
    there too [Ament2023logei]_. If the units of the outcome change, all values change
    by the same constant.

    Args:
        model: A fitted ``SingleTaskGP`` of the joint input ``[x, c]``.
        X_baseline: The decisions tried, ``t x d_x``.
        context_set: The reference distribution, ``n`` contexts of ``d_c`` columns.
        objective: Collapses ``... x n`` values and the weights to ``...``.
        X_pending: Decisions ``m x d_x`` that are being evaluated.
        options: The options of every average over paths:
            ``botorch_drbo.acquisition.inputs.PathOptions``.

    Raises:
        InputDataError: No decisions tried or bad entries, a wrong context set or
            objective, or a count below one.
        BotorchTensorDimensionError: Columns that do not fit the model, or an
            objective for another number of contexts.
        UnsupportedError: A model without sample paths, or a transform that is not
            a ``ScalarizedPosteriorTransform`` of one weight.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo import ContextSet
        >>> from botorch_drbo.acquisition import (
        ...     qLogDistributionallyRobustNoisyExpectedImprovement,
        ... )
        >>> from botorch_drbo.objectives import UncertaintyObjective
        >>> Z = torch.rand(8, 2, dtype=torch.double)  # decision, context
        >>> acqf = qLogDistributionallyRobustNoisyExpectedImprovement(
        ...     SingleTaskGP(Z, Z.sum(dim=-1, keepdim=True)),
        ...     X_baseline=Z[:, :1],
        ...     context_set=ContextSet.empirical(Z[:, 1:]),
        ...     objective=UncertaintyObjective.ro(),
        ...     seed=0,
        ... )
        >>> acqf(torch.rand(5, 4, 1, dtype=torch.double)).shape  # 5 batches of 4
        torch.Size([5])

    The logarithm is that of [Ament2023logei]_; joining it with robust objectives is
    ours.
    """

    _log = True
    X_baseline: Tensor
    _tried: Tensor | None
    _bar: Tensor

    def __init__(
        self,
        model: Model,
        X_baseline: Tensor,
        context_set: ContextSet,
        objective: Objective,
        *,
        X_pending: Tensor | None = None,
        **options: Unpack[PathOptions],
    ) -> None:
        super().__init__(model, context_set, objective, **options)
        check_points(X_baseline, "X_baseline", num_columns=self.num_decision_columns)
        self.register_buffer("X_baseline", X_baseline.detach().clone())
        self.set_X_pending(X_pending)

    def _prepare(self) -> None:
        # Smoothing and margin in units of the outcome, so that other units change
        # nothing.
        variance = prior_variance(self.model, self.posterior_transform)
        self.smoothing = _SMOOTHING * math.sqrt(variance)
        self.margin = _MARGIN * math.sqrt(variance)
        for name in ("_tried", "_bar"):  # the best on each path: of those tried, of all
            self.register_buffer(name, None, persistent=False)

    def _condition(self, pending: Tensor | None) -> None:
        with torch.no_grad():
            # The paths are fixed, so what was tried is evaluated once for all.
            if self._tried is None:
                tried = self._utilities(self.X_baseline)  # S x t
                self._tried = tried.amax(-1, keepdim=True)
            super()._condition(pending)
            self._bar = self._tried
            if self._pending_utility is not None:
                # Noisy EI: the bar of a path is the best of what was tried on that
                # path, pending ones included, since on it their values are known.
                self._bar = torch.maximum(self._tried, self._pending_utility)  # S x b

    def ranking(self, X: Tensor) -> Tensor:
        r"""Evaluate decisions on every third path, if many have been tried.

        With few of them the improvement has several hills of like height.

        Args:
            X: Decisions, ``b x 1 x d_x``.

        Returns:
            Numbers in nearly the order of the values, ``b``, without a gradient.

        Raises:
            BotorchTensorDimensionError: As ``forward``.
        """
        if len(self.X_baseline) < _MANY_TRIED:
            return super().ranking(X)
        self._refresh(X)
        # A shallow copy that shares the model and has every third path.
        some = copy.copy(self)
        some._modules = {**self._modules, "paths": self.paths.part(_EVERY)}
        rows = {name: getattr(self, name) for name in _OF_PATHS}
        thinned = {
            name: None if each is None else each[_EVERY] for name, each in rows.items()
        }
        some._buffers = {**self._buffers, **thinned}
        with torch.no_grad():
            return some(X)

    def _over_paths(self, best: Tensor) -> Tensor:
        bar = self._expand_like(self._bar, best)
        # LogEI (Ament et al. 2023): a softplus with fat tails has a slope even where no
        # path improves.
        return logmeanexp(log_fatplus(best - bar, tau=self.smoothing), dim=0)

    def _utility(
        self, values: Tensor, shared: Tensor, weights: Tensor, part: slice
    ) -> Tensor:
        # Screening: the robust value needs a solver, an upper bound of it does not.
        bound = self.objective.upper_bound(values, weights)  # S x N
        if self._tried is None:
            return self._best_of(values, bound, weights)
        # Only pairs of path and decision whose bound exceeds the bar are solved.
        hopeful = bound > self._tried[part].to(values)
        solved = self.objective(values[hopeful], weights)
        # What cannot improve keeps a value below the bar with the slope of the bound.
        return (bound - self.margin).masked_scatter(hopeful, solved)

    def _best_of(self, values: Tensor, bound: Tensor, weights: Tensor) -> Tensor:
        """The objective where it may be the largest of a path, else minus infinity.

        First of a few decisions with the highest bounds, then of those whose bound is
        above what was found.
        """
        found = torch.full_like(bound, -torch.inf)
        # Branch and bound: the most promising decisions first, then all whose bound
        # exceeds the best of them.
        promising = bound.topk(min(_FEW, bound.shape[-1]), -1).indices
        wanted = torch.zeros_like(bound, dtype=torch.bool).scatter(-1, promising, True)
        found = found.masked_scatter(wanted, self.objective(values[wanted], weights))
        wanted = (bound > found.amax(-1, keepdim=True)) & ~wanted
        return found.masked_scatter(wanted, self.objective(values[wanted], weights))


def best_robust_value(
    model: Model,
    X: Tensor,
    context_set: ContextSet,
    objective: Objective,
    *,
    context_indices: Sequence[int] | None = None,
    posterior_transform: PosteriorTransform | None = None,
    num_inputs: int | None = None,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> Tensor:
    r"""The largest robust value of the posterior mean over the decisions tried.

    .. math:: g^\star = \max_i g\big( \mu(x_i, c_1), \dots, \mu(x_i, c_n);\ w \big)

    Among decisions known to be feasible it is a ``reference`` of
    ``FeasibilityWeighted``. Each outcome belongs to one context, so the robust value of
    a decision is never observed, not even without noise; the posterior mean replaces
    it. For a concave objective (a worst case) this is at least the mean of ``g`` over
    posterior samples, so it is slightly too high where the model is uncertain.

    Args:
        model: A fitted single-output BoTorch model of the joint input ``[x, c]``.
        X: The decisions tried, ``t x d_x``.
        context_set: The reference distribution, ``n`` contexts of ``d_c`` columns.
        objective: Collapses ``... x n`` values and the weights to ``...``.
        context_indices: The model's input columns that hold the context; by default
            the last ``d_c``.
        posterior_transform: Combines several outputs into one, or changes the sign; the
            same as that of the acquisition function.
        num_inputs: The number of columns of ``[x, c]``, for a model that does not state
            it.
        memory_budget: Bytes for the temporaries of the posterior.

    Returns:
        The best value, a scalar without gradient.

    Raises:
        InputDataError: A wrong context set or objective, or bad entries of ``X``.
        BotorchTensorDimensionError: No decisions, or columns or an objective that do
            not fit.
        UnsupportedError: A model that is not single-output.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo import ContextSet
        >>> from botorch_drbo.acquisition import best_robust_value
        >>> from botorch_drbo.objectives import UncertaintyObjective
        >>> Z = torch.rand(8, 2, dtype=torch.double)  # decision, context
        >>> model = SingleTaskGP(Z, Z.sum(dim=-1, keepdim=True))
        >>> contexts, so = ContextSet.empirical(Z[:, 1:]), UncertaintyObjective.so()
        >>> best_robust_value(model, Z[:, :1], contexts, so).shape
        torch.Size([])
    """
    objective = check_objective(objective, check_context_set(context_set))
    num_joint = count_inputs(model, num_inputs)
    columns = context_columns(context_indices, num_joint, context_set.dim)
    check_points(X, "X", num_columns=num_joint - len(columns))
    posterior = marginal_posterior(
        model,
        columns,
        posterior_transform=posterior_transform,
        memory_budget=memory_budget,
    )
    with torch.no_grad():
        mean, _ = posterior(X, context_set.points.to(X))  # t x n (ensembles t x S x n)
        values = objective(mean, context_set.weights.to(X))
        if values.ndim > 1:  # an ensemble: the mean over its models comes last
            values = values.mean(-1)
        return values.amax()
