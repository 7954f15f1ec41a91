"""The distributionally robust upper confidence bound of a batch."""

from __future__ import annotations

import math
from typing import Unpack

from botorch.models.model import Model
from torch import Tensor

from botorch_drbo._validation import check_nonnegative, check_scalar
from botorch_drbo.acquisition.monte_carlo import PathwiseBatchAcquisitionFunction
from botorch_drbo.acquisition.options import PathOptions
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import Objective
from botorch_drbo.posterior import marginal_posterior


class qDistributionallyRobustUCB(PathwiseBatchAcquisitionFunction):
    r"""The distributionally robust upper confidence bound of a batch, by Monte Carlo.

    .. math::
        \alpha(x_1, \dots, x_q) &= \frac1S \sum_{s=1}^S \max_{j \le q}
            g\big( a_s(x_j, c_1), \dots, a_s(x_j, c_n);\ w \big) \\
        a_s(x, c) &= \mu(x, c)
            + \sqrt{\beta \pi / 2}\; \lvert f_s(x, c) - \mu(x, c) \rvert

    ``f_s`` are posterior sample paths, ``mu`` is the exact posterior mean and ``g`` the
    objective. The factor makes the mean of ``a_s`` the confidence bound
    ``mu + sqrt(beta) sigma`` at every context. Hence, up to the Monte Carlo error,

    - with one context it is BoTorch's ``qUpperConfidenceBound`` at ``[x, c]``;
    - with q = 1 and the expectation as objective it is ``DistributionallyRobustUCB``;
    - with q = 1 and a concave objective (the worst case over any ambiguity set) it
      is *at most* that: the mean of a minimum is not more than the minimum of the
      mean. It is near, and equal only where the worst distribution is the same on
      every path.

    Applying BoTorch's bound to the robust value ``g(f_s)`` instead would, for the
    expectation, give its ``qUpperConfidenceBound`` of the expected outcome, but not
    ``DistributionallyRobustUCB``, which bounds every context separately.

    Args:
        model: A fitted ``SingleTaskGP`` of the joint input ``[x, c]``.
        beta: The squared width of the confidence bound, BoTorch's convention.
        context_set: The reference distribution, ``n`` contexts of ``d_c`` columns.
        objective: Collapses ``... x n`` scores and the weights to ``...``.
        X_pending: Decisions ``m x d_x`` that are being evaluated.
        options: The options of every average over paths:
            ``botorch_drbo.acquisition.options.PathOptions``.

    Raises:
        InputDataError: A negative beta, a wrong context set or objective, or a
            count below one.
        BotorchTensorDimensionError: Context columns that do not fit the model, or
            an objective for another number of contexts.
        UnsupportedError: A model without sample paths, or a transform that is not
            a ``ScalarizedPosteriorTransform`` of one weight.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo import ContextSet
        >>> from botorch_drbo.acquisition import qDistributionallyRobustUCB
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
        X_pending: Tensor | None = None,
        **options: Unpack[PathOptions],
    ) -> None:
        super().__init__(model, context_set, objective, **options)
        beta = check_scalar(check_nonnegative(beta, "beta"), "beta")
        self.register_buffer("beta", beta)
        self.set_X_pending(X_pending)

    def _prepare(self) -> None:
        posterior = marginal_posterior(
            self.model,
            self.context_indices,
            posterior_transform=self.posterior_transform,
            memory_budget=self.memory_budget,
        )
        self.view = posterior.over(self.context_set.points)

    def _shared(self, X: Tensor, contexts: Tensor) -> Tensor:
        return self.view.at(X).means()  # N x n

    def _utility(
        self, values: Tensor, shared: Tensor, weights: Tensor, part: slice
    ) -> Tensor:
        width = (self.beta.to(values) * math.pi / 2).sqrt()
        return self.objective(shared + width * (values - shared).abs(), weights)
