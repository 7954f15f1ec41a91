"""The best robust value of the decisions tried, under the posterior mean."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo._validation import check_points
from botorch_drbo.acquisition.inputs import (
    check_context_set,
    check_objective,
    context_columns,
    count_inputs,
)
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import Objective
from botorch_drbo.posterior import marginal_posterior
from botorch_drbo.posterior.blocks import DEFAULT_MEMORY_BUDGET


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
