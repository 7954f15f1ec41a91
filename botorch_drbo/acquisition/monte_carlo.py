"""Batches of decisions, chosen jointly, by Monte Carlo over posterior sample paths."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import cast

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    UnsupportedError,
)
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from botorch_drbo._validation import (
    check_count,
    check_finite,
    check_nonnegative,
    check_points,
)
from botorch_drbo.acquisition.inputs import (
    check_context_set,
    check_objective,
    context_columns,
    num_inputs,
)
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import Objective
from botorch_drbo.posterior import DEFAULT_MEMORY_BUDGET, marginal_posterior
from botorch_drbo.posterior.paths import PosteriorPaths, supports_paths


class PathwiseBatchAcquisitionFunction(AcquisitionFunction, ABC):
    r"""The best decision of a batch on each posterior sample path, averaged.

    .. math::
        \alpha(x_1, \dots, x_q) = \frac1S \sum_{s=1}^S \max_{j \le q} u_s(x_j)

    ``u_s(x)`` is the utility of one decision on path ``f_s``: the path's values over
    the contexts, collapsed by the objective ``g``. The paths are drawn once, when the
    object is made, and stay: the function is deterministic, and ``optimize_acqf`` can
    climb it. One path is a function of decision and context, so no covariance between
    the ``q n`` joint inputs is ever formed: the cost is linear in ``q``, in the number
    of contexts and in the number of paths.

    *Pending decisions* join the maximum over ``j``, as in BoTorch. That is also what
    ``optimize_acqf(sequential=True)`` uses. Since a pending decision sits on the same
    paths, no context has to be guessed for it.

    ``num_features`` need not be large: with any number the mean and the covariance of
    the paths are those of the posterior; with more, several values together come closer
    to being Gaussian. The time goes with ``num_paths * num_features``.

    The paths belong to the model as it is now: with new data or new hyper-parameters
    make a new acquisition function.
    """

    _pending_utility: Tensor | None

    def __init__(
        self,
        model: Model,
        context_set: ContextSet,
        objective: Objective,
        *,
        num_paths: int,
        num_features: int,
        seed: int | None,
        context_indices: Sequence[int] | None,
        memory_budget: int,
    ) -> None:
        r"""Check the arguments and draw the paths.

        Args:
            model: A fitted ``SingleTaskGP`` of the joint input ``[x, c]``.
            context_set: The reference distribution, ``n`` contexts of ``d_c`` columns.
            objective: Collapses ``... x n`` values and the weights to ``...``.
            num_paths: The number of sample paths ``S``.
            num_features: Random features of each path's prior part.
            seed: The seed of the paths; None draws one from torch's generator.
            context_indices: The model's input columns that hold the context.
            memory_budget: Bytes for the temporaries of paths and posterior.

        Raises:
            InputDataError: A wrong context set or objective, or a count below one.
            BotorchTensorDimensionError: Context columns that do not fit the model, or
                an objective for another number of contexts.
            UnsupportedError: A model without sample paths.
        """
        super().__init__(model=model)
        check_count(num_paths, "num_paths")
        check_count(num_features, "num_features")
        check_count(memory_budget, "memory_budget")
        if seed is not None:
            check_count(seed, "seed", minimum=0)
        self.num_joint = _check_parts(model, context_set, objective)
        self.context_indices = context_columns(
            context_indices, self.num_joint, context_set.dim
        )
        reason = supports_paths(model)
        if reason is not None:
            raise UnsupportedError(
                f"{type(self).__name__} needs posterior sample paths, and this model "
                f"has none: {reason.rstrip('.')}. DistributionallyRobustUCB takes any "
                "single-output model, one decision at a time."
            )
        self.context_set = context_set
        self.objective = objective
        self.paths = PosteriorPaths(
            cast(SingleTaskGP, model),
            self.context_indices,
            num_paths=num_paths,
            num_features=num_features,
            seed=int(torch.randint(2**31, ())) if seed is None else seed,
            memory_budget=memory_budget,
        )
        self.register_buffer("_pending_utility", None, persistent=False)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        r"""Tell the acquisition function which decisions are being evaluated.

        Args:
            X_pending: Decisions ``m x d_x``, or None for none.

        Raises:
            BotorchTensorDimensionError: A wrong number of columns.
            InputDataError: NaN, infinite or integer entries.
        """
        if isinstance(X_pending, Tensor) and X_pending.numel() == 0:
            X_pending = None
        if X_pending is not None:
            check_points(X_pending, "X_pending", num_columns=self._num_decision_columns)
        super().set_X_pending(X_pending)
        # Constants for the optimiser: the best pending utility on each path.
        self._pending_utility = None
        if self.X_pending is not None:
            with torch.no_grad():
                utility = self._utility(self.X_pending.unsqueeze(0))  # S x 1 x m
            self._pending_utility = utility.amax(-1)  # S x 1

    # BoTorch types its decorator for the base class only.
    @t_batch_mode_transform()  # pyright: ignore[reportArgumentType]
    def forward(self, X: Tensor) -> Tensor:
        r"""Evaluate batches of decisions.

        Args:
            X: Batches of decisions, ``b x q x d_x``.

        Returns:
            One value per batch, ``b``; higher is better.
        """
        if X.shape[-1] != self._num_decision_columns:
            raise BotorchTensorDimensionError(
                f"`X` must have {self._num_decision_columns} columns, the decisions "
                f"alone, got shape {tuple(X.shape)}. The contexts come from the "
                "context set."
            )
        if X.shape[-2] == 0:
            raise BotorchTensorDimensionError(
                f"`X` has no decisions (q = 0), got shape {tuple(X.shape)}. Evaluate "
                "`b x q x d_x` with q of at least 1."
            )
        points = self.context_set.points
        if points.device != X.device or points.dtype != X.dtype:
            self.to(X)
        best = self._utility(X).amax(-1)  # S x b
        if self._pending_utility is not None:
            pending = self._pending_utility.to(X)
            best = torch.maximum(best, pending.reshape(-1, *[1] * (best.ndim - 1)))
        return best.mean(0)

    @property
    def _num_decision_columns(self) -> int:
        return self.num_joint - len(self.context_indices)

    @abstractmethod
    def _utility(self, X: Tensor) -> Tensor:
        """What each decision is worth on each path: ``b x q x d_x`` to ``S x b x q``"""


class qDistributionallyRobustUCB(PathwiseBatchAcquisitionFunction):
    r"""The distributionally robust upper confidence bound of a batch, by Monte Carlo.

    .. math::
        \alpha(x_1, \dots, x_q) &= \frac1S \sum_{s=1}^S \max_{j \le q}
            g\big( a_s(x_j, c_1), \dots, a_s(x_j, c_n);\ w \big) \\
        a_s(x, c) &= \mu(x, c)
            + \sqrt{\beta \pi / 2}\; \lvert f_s(x, c) - \mu(x, c) \rvert

    ``f_s`` are posterior sample paths, ``mu`` is the exact posterior mean and ``g`` the
    objective. The factor makes the mean of ``a_s`` the confidence bound
    ``mu + sqrt(beta) sigma`` at every context. Hence, but for the Monte Carlo error,

    - with one context it is BoTorch's ``qUpperConfidenceBound`` at ``[x, c]``;
    - with q = 1 and the expectation as objective it is ``DistributionallyRobustUCB``;
    - with q = 1 and a concave objective (the worst case over any ambiguity set) it
      is *at most* that: the mean of a minimum is not more than the minimum of the
      mean. It is near, and equal only where the worst distribution is the same on
      every path.

    Taking BoTorch's bound of the robust value ``g(f_s)`` instead would give its
    ``qUpperConfidenceBound`` of the expected outcome for the expectation, but not
    ``DistributionallyRobustUCB``: that bounds every context on its own.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo.objectives import UncertaintyObjective
        >>> Z = torch.rand(8, 2, dtype=torch.double)  # decision, context
        >>> model = SingleTaskGP(Z, Z.sum(dim=-1, keepdim=True))
        >>> acqf = qDistributionallyRobustUCB(
        ...     model,
        ...     beta=2.25,
        ...     context_set=ContextSet.empirical(Z[:, 1:]),
        ...     objective=UncertaintyObjective.ro(),
        ...     seed=0,
        ... )
        >>> acqf(torch.rand(5, 4, 1, dtype=torch.double)).shape  # 5 batches of 4
        torch.Size([5])

    The bound of a batch is that of [Wilson2017reparam]_; joining it with robust
    objectives is ours.
    """

    beta: Tensor

    def __init__(
        self,
        model: Model,
        beta: float | Tensor,
        context_set: ContextSet,
        objective: Objective,
        *,
        num_paths: int = 128,
        num_features: int = 64,
        seed: int | None = None,
        context_indices: Sequence[int] | None = None,
        X_pending: Tensor | None = None,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> None:
        r"""Join a model, a context distribution and an objective.

        Args:
            model: A fitted ``SingleTaskGP`` of the joint input ``[x, c]``.
            beta: The squared width of the confidence bound, BoTorch's convention.
            context_set: The reference distribution, ``n`` contexts of ``d_c`` columns.
            objective: Collapses ``... x n`` scores and the weights to ``...``.
            num_paths: The number of sample paths ``S``.
            num_features: Random features of each path's prior part.
            seed: The seed of the paths; None draws one from torch's generator.
            context_indices: The model's input columns that hold the context; by
                default the last ``d_c``.
            X_pending: Decisions ``m x d_x`` whose outcomes are on the way.
            memory_budget: Bytes for the temporaries of paths and posterior.

        Raises:
            InputDataError: A negative beta, a wrong context set or objective, or a
                count below one.
            BotorchTensorDimensionError: Context columns that do not fit the model, or
                an objective for another number of contexts.
            UnsupportedError: A model without sample paths.
        """
        super().__init__(
            model,
            context_set,
            objective,
            num_paths=num_paths,
            num_features=num_features,
            seed=seed,
            context_indices=context_indices,
            memory_budget=memory_budget,
        )
        beta = check_nonnegative(beta, "beta")
        if beta.numel() != 1:
            raise BotorchTensorDimensionError(
                f"`beta` must be a scalar, got shape {tuple(beta.shape)}."
            )
        self.register_buffer("beta", beta.detach().clone().reshape(()))
        self.posterior = marginal_posterior(
            model, self.context_indices, memory_budget=memory_budget
        )
        self.set_X_pending(X_pending)

    def _utility(self, X: Tensor) -> Tensor:
        contexts = self.context_set.points.to(X)
        mean, _ = self.posterior(X, contexts)  # b x q x n
        width = (self.beta.to(X) * math.pi / 2).sqrt()
        scores = mean + width * (self.paths(X, contexts) - mean).abs()  # S x b x q x n
        return self.objective(scores, self.context_set.weights.to(X))


class qDistributionallyRobustExpectedImprovement(PathwiseBatchAcquisitionFunction):
    r"""By how much the best of a batch is expected to improve the robust value.

    .. math::
        \alpha(x_1, \dots, x_q) = \frac1S \sum_{s=1}^S \max_{j \le q}
        \Big( g\big( f_s(x_j, c_1), \dots, f_s(x_j, c_n);\ w \big)
        - g^\star \Big)_+

    ``f_s`` are posterior sample paths, ``g`` is the objective and ``g*`` the best value
    so far; ``best_robust_value`` gives the best ``g`` of the posterior mean. With one
    context, or with the expectation as objective, it is BoTorch's
    ``qExpectedImprovement`` of ``g`` with ``best_f = best_value``, but for the Monte
    Carlo error.

    Where no path improves, the value and its gradient are zero. ``optimize_acqf`` finds
    better starting points if it knows that no value is negative: pass it
    ``options={"nonnegative": True}``.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo.objectives import UncertaintyObjective
        >>> Z = torch.rand(8, 2, dtype=torch.double)  # decision, context
        >>> model = SingleTaskGP(Z, Z.sum(dim=-1, keepdim=True))
        >>> contexts, ro = ContextSet.empirical(Z[:, 1:]), UncertaintyObjective.ro()
        >>> acqf = qDistributionallyRobustExpectedImprovement(
        ...     model,
        ...     best_value=best_robust_value(model, Z[:, :1], contexts, ro),
        ...     context_set=contexts,
        ...     objective=ro,
        ...     seed=0,
        ... )
        >>> acqf(torch.rand(5, 4, 1, dtype=torch.double)).shape  # 5 batches of 4
        torch.Size([5])

    The improvement of a batch is that of [Wilson2017reparam]_; joining it with robust
    objectives is ours.
    """

    best_value: Tensor

    def __init__(
        self,
        model: Model,
        best_value: float | Tensor,
        context_set: ContextSet,
        objective: Objective,
        *,
        num_paths: int = 128,
        num_features: int = 64,
        seed: int | None = None,
        context_indices: Sequence[int] | None = None,
        X_pending: Tensor | None = None,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> None:
        r"""Join a model, a context distribution, an objective and its best value.

        Args:
            model: A fitted ``SingleTaskGP`` of the joint input ``[x, c]``.
            best_value: The robust value to improve on, in the units of ``objective``;
                see ``best_robust_value``.
            context_set: The reference distribution, ``n`` contexts of ``d_c`` columns.
            objective: Collapses ``... x n`` values and the weights to ``...``.
            num_paths: The number of sample paths ``S``.
            num_features: Random features of each path's prior part.
            seed: The seed of the paths; None draws one from torch's generator.
            context_indices: The model's input columns that hold the context; by
                default the last ``d_c``.
            X_pending: Decisions ``m x d_x`` whose outcomes are on the way.
            memory_budget: Bytes for the temporaries of the paths.

        Raises:
            InputDataError: A best value that is not a finite number, a wrong context
                set or objective, or a count below one.
            BotorchTensorDimensionError: Context columns that do not fit the model, an
                objective for another number of contexts, or several best values.
            UnsupportedError: A model without sample paths.
        """
        super().__init__(
            model,
            context_set,
            objective,
            num_paths=num_paths,
            num_features=num_features,
            seed=seed,
            context_indices=context_indices,
            memory_budget=memory_budget,
        )
        if not isinstance(best_value, Tensor):
            best_value = torch.tensor(best_value, dtype=torch.double)
        check_finite(best_value, "best_value")
        if best_value.numel() != 1:
            raise BotorchTensorDimensionError(
                f"`best_value` must be a scalar, got shape {tuple(best_value.shape)}."
            )
        self.register_buffer("best_value", best_value.detach().clone().reshape(()))
        self.set_X_pending(X_pending)

    def _utility(self, X: Tensor) -> Tensor:
        values = self.paths(X, self.context_set.points.to(X))  # S x b x q x n
        robust = self.objective(values, self.context_set.weights.to(X))
        return (robust - self.best_value.to(X)).clamp_min(0.0)


def best_robust_value(
    model: Model,
    X: Tensor,
    context_set: ContextSet,
    objective: Objective,
    *,
    context_indices: Sequence[int] | None = None,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> Tensor:
    r"""The largest robust value of the posterior mean over the decisions tried.

    .. math:: g^\star = \max_i g\big( \mu(x_i, c_1), \dots, \mu(x_i, c_n);\ w \big)

    Outcomes are seen at one context each, so the robust value of a decision is never
    observed, not even without noise; the posterior mean stands in for it. For a concave
    objective (a worst case) it is not less than the mean of ``g`` over posterior
    samples: the bar is a little high where contexts are uncertain.

    Args:
        model: A fitted single-output BoTorch model of the joint input ``[x, c]``.
        X: The decisions tried, ``t x d_x``.
        context_set: The reference distribution, ``n`` contexts of ``d_c`` columns.
        objective: Collapses ``... x n`` values and the weights to ``...``.
        context_indices: The model's input columns that hold the context; by default
            the last ``d_c``.
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
        >>> from botorch_drbo.objectives import UncertaintyObjective
        >>> Z = torch.rand(8, 2, dtype=torch.double)  # decision, context
        >>> model = SingleTaskGP(Z, Z.sum(dim=-1, keepdim=True))
        >>> contexts, so = ContextSet.empirical(Z[:, 1:]), UncertaintyObjective.so()
        >>> best_robust_value(model, Z[:, :1], contexts, so).shape
        torch.Size([])
    """
    num_joint = _check_parts(model, context_set, objective)
    columns = context_columns(context_indices, num_joint, context_set.dim)
    check_points(X, "X", num_columns=num_joint - len(columns))
    posterior = marginal_posterior(model, columns, memory_budget=memory_budget)
    with torch.no_grad():
        mean, _ = posterior(X, context_set.points.to(X))  # t x n (ensembles t x S x n)
        values = objective(mean, context_set.weights.to(X))
        if values.ndim > 1:  # an ensemble: the mean over its models comes last
            values = values.mean(-1)
        return values.amax()


def _check_parts(model: Model, context_set: ContextSet, objective: Objective) -> int:
    """Check what both kinds of acquisition function share; the model's inputs."""
    check_objective(objective, check_context_set(context_set))
    return num_inputs(model)
