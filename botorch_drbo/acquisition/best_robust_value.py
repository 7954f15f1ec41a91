"""The expected improvement of the robust value by a batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo._validation import check_finite, check_points, check_scalar
from botorch_drbo.acquisition.inputs import (
    check_context_set,
    check_objective,
    context_columns,
    count_inputs,
)
from botorch_drbo.acquisition.monte_carlo import PathwiseBatchAcquisitionFunction
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import Objective
from botorch_drbo.posterior import DEFAULT_MEMORY_BUDGET, marginal_posterior


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

    Args:
        model: A fitted ``SingleTaskGP`` of the joint input ``[x, c]``.
        best_value: The robust value to improve on, in the units of ``objective``
            and after the posterior transform; see ``best_robust_value``.
        context_set: The reference distribution, ``n`` contexts of ``d_c`` columns.
        objective: Collapses ``... x n`` values and the weights to ``...``.
        num_paths: The number of sample paths ``S``.
        num_features: Random features of each path's prior part.
        seed: The seed of the paths; None draws one from torch's generator.
        context_indices: The model's input columns that hold the context; by
            default the last ``d_c``.
        posterior_transform: A weight and an offset for the outcome; a weight of -1
            minimises it.
        X_pending: Decisions ``m x d_x`` whose outcomes are on the way.
        memory_budget: Bytes for the temporaries of the paths.

    Raises:
        InputDataError: A best value that is not a finite number, a wrong context
            set or objective, or a count below one.
        BotorchTensorDimensionError: Context columns that do not fit the model, an
            objective for another number of contexts, or several best values.
        UnsupportedError: A model without sample paths, or a transform that is not
            a ``ScalarizedPosteriorTransform`` of one weight.

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
        posterior_transform: PosteriorTransform | None = None,
        X_pending: Tensor | None = None,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> None:
        super().__init__(
            model,
            context_set,
            objective,
            num_paths=num_paths,
            num_features=num_features,
            seed=seed,
            context_indices=context_indices,
            posterior_transform=posterior_transform,
            memory_budget=memory_budget,
        )
        if not isinstance(best_value, Tensor):
            best_value = torch.tensor(best_value, dtype=torch.double)
        check_finite(best_value, "best_value")
        self.register_buffer("best_value", check_scalar(best_value, "best_value"))
        self.set_X_pending(X_pending)

    def _prepare(self) -> None:
        """The paths are all that it needs."""

    def _utility(
        self, values: Tensor, shared: Tensor, weights: Tensor, part: slice
    ) -> Tensor:
        robust = self.objective(values, weights)
        return (robust - self.best_value.to(values)).clamp_min(0.0)


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
        posterior_transform: Makes one output of several, or changes the sign; the same
            as that of the acquisition function.
        num_inputs: The columns of ``[x, c]``, for a model that does not tell.
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
    check_objective(objective, check_context_set(context_set))
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
