"""The plain expected improvement of a batch: against one bar, without a logarithm."""

from __future__ import annotations

from typing import Unpack

import torch
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo.acquisition.inputs import PathOptions
from botorch_drbo.acquisition.monte_carlo import PathwiseBatchAcquisitionFunction
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import Objective


class PlainExpectedImprovement(PathwiseBatchAcquisitionFunction):
    r"""By how much the best of a batch is expected to improve the robust value.

    .. math::
        \alpha(x_1, \dots, x_q) = \frac1S \sum_{s=1}^S \max_{j \le q}
        \Big( g\big( f_s(x_j, c_1), \dots, f_s(x_j, c_n);\ w \big)
        - g^\star \Big)_+

    The library's is better, ``qLogDistributionallyRobustNoisyExpectedImprovement``: it
    has a bar for each path, and a slope where no path improves. This one is BoTorch's
    ``qExpectedImprovement`` of ``g`` but for the Monte Carlo error, so that tests can
    compare the two, and the batches were measured with it.

    Args:
        model: A fitted ``SingleTaskGP`` of the joint input ``[x, c]``.
        best_value: ``g*``, the robust value to improve on.
        context_set: The reference distribution, ``n`` contexts of ``d_c`` columns.
        objective: Collapses ``... x n`` values and the weights to ``...``.
        X_pending: Decisions ``m x d_x`` whose outcomes are on the way.
        options: Those of every average over paths; see ``PathOptions``.
    """

    best_value: Tensor

    def __init__(
        self,
        model: Model,
        best_value: float | Tensor,
        context_set: ContextSet,
        objective: Objective,
        *,
        X_pending: Tensor | None = None,
        **options: Unpack[PathOptions],
    ) -> None:
        super().__init__(model, context_set, objective, **options)
        best = torch.as_tensor(best_value, dtype=torch.double)
        self.register_buffer("best_value", best.detach().clone())
        self.set_X_pending(X_pending)

    def _prepare(self) -> None:
        """The paths are all that it needs."""

    def _utility(
        self, values: Tensor, shared: Tensor, weights: Tensor, part: slice
    ) -> Tensor:
        robust = self.objective(values, weights)
        return (robust - self.best_value.to(values)).clamp_min(0.0)
