"""What the public code of the papers does in place of what the papers say.

Each recipe here is one of the library's with one known fault of that code put in, to
see which ranking it changes (``configs/ablations.toml``). ``enter_ablations`` makes
them known by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models import SingleTaskGP
from botorch_drbo.recipes.acquisition_algorithm import AcquisitionAlgorithm
from botorch_drbo.recipes.robust_set import RobustSetAlgorithm
from torch import Tensor

from botorch_drbo.acquisition import DistributionallyRobustUCB, LipschitzPenalizedUCB
from botorch_drbo.adversaries.mmd import context_kernel
from botorch_drbo.ambiguity import (
    AmbiguitySet,
    FullSimplex,
    MaximumMeanDiscrepancy,
    NoAmbiguity,
)
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.sampling import sobol
from botorch_drbo.schedules import (
    InverseSquareRoot,
    MMDRadius,
    Schedule,
    as_schedule,
)

_NUM_DIAGONAL = 10  # of their 100, where there are two columns or more
_NUM_CONTEXTS = 1024  # of their Sobol set


class DetachedPenalty(AcquisitionFunction):
    """The values of WDRBO with the gradient of ERBO.

    Args:
        plain: The expectation.
        penalised: The same, less the penalty.
    """

    def __init__(
        self, plain: AcquisitionFunction, penalised: AcquisitionFunction
    ) -> None:
        super().__init__(model=plain.model)
        self.plain, self.penalised = plain, penalised

    def forward(self, X: Tensor) -> Tensor:
        """Values of ``b x 1 x d_x`` decisions, ``b``."""
        plain = self.plain(X)
        with torch.no_grad():
            penalty = plain - self.penalised(X)
        return plain - penalty


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class WDRBODetached(AcquisitionAlgorithm):
    """``wdrbo_detached``: ``L(x)`` computed without a graph."""

    name: ClassVar[str] = "wdrbo_detached"

    radius: Schedule | float = InverseSquareRoot(0.3)

    def acquisition(
        self,
        model: SingleTaskGP,
        history: History,
        space: SearchSpace,
        *,
        beta: float,
        X_pending: Tensor | None,
        seed: int,
    ) -> AcquisitionFunction:
        """WDRBO's values, ERBO's gradient."""
        contexts = self.data_contexts(history, space)
        radius = as_schedule(self.radius)(len(history.contexts))
        return DetachedPenalty(
            DistributionallyRobustUCB(
                model,
                beta,
                contexts,
                UncertaintyObjective(NoAmbiguity()),
                X_pending=X_pending,
            ),
            LipschitzPenalizedUCB(
                model,
                beta,
                contexts,
                radius,
                space.context_bounds,
                X_pending=X_pending,
            ),
        )

    def robust_set(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> tuple[ContextSet, AmbiguitySet]:
        """The contexts seen: what a recommendation expects."""
        return self.data_contexts(history, space), NoAmbiguity()


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class StableOptShifted(RobustSetAlgorithm):
    """``stable_opt_shifted``: the worst context in ``[m - 3 s, m - s]``."""

    name: ClassVar[str] = "stable_opt_shifted"

    def robust_set(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> tuple[ContextSet, AmbiguitySet]:
        """``low + u (low - high)`` for Sobol points ``u``, inside the box or not."""
        data = self.data_contexts(history, space)
        low, high = data.mean - data.std, data.mean + data.std
        unit = sobol(_NUM_CONTEXTS, space.d_c, seed).to(low)
        return ContextSet(low + unit * (low - high)), FullSimplex()


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class DRBOMMDDiagonal(RobustSetAlgorithm):
    """``drbo_mmd_diagonal``: the diagonal of the grid of contexts, not the grid."""

    name: ClassVar[str] = "drbo_mmd_diagonal"

    radius: Schedule | float = MMDRadius()

    def robust_set(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> tuple[ContextSet, AmbiguitySet]:
        """The contexts, each at the nearest point of the diagonal, and the ball."""
        low, high = space.context_bounds
        count = _NUM_DIAGONAL if space.d_c > 1 else _NUM_DIAGONAL**2
        along = torch.linspace(0, 1, count, dtype=low.dtype).unsqueeze(-1)
        points = low + along * (high - low)  # count x d_c
        data = self.data_contexts(history, space)
        nearest = torch.cdist(data.points, points).argmin(-1)
        weights = torch.zeros(count, dtype=low.dtype)
        weights = weights.scatter_add(0, nearest, data.weights)
        matrix = context_kernel(model, space, points)(points, points)
        radius = as_schedule(self.radius)(len(history.contexts))
        ball = MaximumMeanDiscrepancy(radius, 0.5 * (matrix + matrix.mT))
        return ContextSet(points, weights), ball
