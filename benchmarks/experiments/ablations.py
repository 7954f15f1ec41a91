"""What the public code of the papers does in place of what the papers say.

Each recipe here is one of the library's with one known fault of that code put in, to
see which ranking it changes (``configs/ablations.toml``). ``enter_ablations`` makes
them known by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from botorch.acquisition import AcquisitionFunction
from torch import Tensor

from botorch_drbo.acquisition import DistributionallyRobustUCB, LipschitzPenalizedUCB
from botorch_drbo.adversaries import (
    Adversary,
    FittedRound,
    SearchProblem,
    WorstCaseProblem,
)
from botorch_drbo.adversaries.kernels import context_kernel
from botorch_drbo.ambiguity import (
    FullSimplex,
    MaximumMeanDiscrepancy,
    NoAmbiguity,
)
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.policies import Policy
from botorch_drbo.recipes import RobustRecipe
from botorch_drbo.sampling import sobol
from botorch_drbo.schedules import InverseSquareRoot, MMDRadius, Schedule
from botorch_drbo.schedules.radii import as_schedule

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
class DetachedLipschitzPenalty(Policy):
    """``L(x)`` computed without a graph: WDRBO's values, ERBO's gradient."""

    beta: Schedule | float = 2.25

    @property
    def maximises_worst_case(self) -> bool:
        """It maximises a bound below it."""
        return False

    def check(self, adversary: Adversary) -> None:
        """It takes any adversary that has a radius."""

    def exploring(
        self, state: FittedRound, adversary: Adversary, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        """With the ``beta`` of this round."""
        beta = as_schedule(self.beta)(state.history.t)
        return self._penalised(state, adversary, beta, X_pending)

    def exploiting(
        self, state: FittedRound, adversary: Adversary
    ) -> AcquisitionFunction:
        """Of the posterior mean."""
        return self._penalised(state, adversary, 0.0, None)

    def _penalised(
        self,
        state: FittedRound,
        adversary: Adversary,
        beta: float,
        X_pending: Tensor | None,
    ) -> DetachedPenalty:
        assert isinstance(adversary, NamedRadius)
        contexts = state.contexts()
        return DetachedPenalty(
            DistributionallyRobustUCB(
                state.model,
                beta,
                contexts,
                UncertaintyObjective(NoAmbiguity()),
                X_pending=X_pending,
            ),
            LipschitzPenalizedUCB(
                state.model,
                beta,
                contexts,
                as_schedule(adversary.radius)(len(state.history.contexts)),
                state.space.context_bounds,
                X_pending=X_pending,
            ),
        )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class NamedRadius(Adversary):
    """The contexts seen, and a radius for the penalty."""

    radius: Schedule | float = InverseSquareRoot(0.3)

    def search_problem(self, state: FittedRound) -> SearchProblem:
        """The contexts seen: what a recommendation expects."""
        return SearchProblem(contexts=state.contexts(), ambiguity_set=NoAmbiguity())

    def worst_case_problem(self, state: FittedRound) -> WorstCaseProblem:
        """The same."""
        return WorstCaseProblem.of(state.contexts(), NoAmbiguity(), state.space)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ShiftedBox(Adversary):
    """The worst context in ``[m - 3 s, m - s]``."""

    def search_problem(self, state: FittedRound) -> SearchProblem:
        """``low + u (low - high)`` for Sobol points ``u``, inside the box or not."""
        data = state.contexts()
        low, high = data.mean - data.std, data.mean + data.std
        unit = sobol(_NUM_CONTEXTS, state.space.d_c, state.seed).to(low)
        contexts = ContextSet(low + unit * (low - high))
        return SearchProblem(contexts=contexts, ambiguity_set=FullSimplex())

    def worst_case_problem(self, state: FittedRound) -> WorstCaseProblem:
        """The same."""
        problem = self.search_problem(state)
        return WorstCaseProblem.of(problem.contexts, problem.ambiguity_set, state.space)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class DiagonalMMDBall(Adversary):
    """The diagonal of the grid of contexts, not the grid."""

    radius: Schedule | float = MMDRadius()

    def search_problem(self, state: FittedRound) -> SearchProblem:
        """The contexts, each at the nearest point of the diagonal, and the ball."""
        low, high = state.space.context_bounds
        count = _NUM_DIAGONAL if state.space.d_c > 1 else _NUM_DIAGONAL**2
        along = torch.linspace(0, 1, count, dtype=low.dtype).unsqueeze(-1)
        points = low + along * (high - low)  # count x d_c
        data = state.contexts()
        nearest = torch.cdist(data.points, points).argmin(-1)
        weights = torch.zeros(count, dtype=low.dtype)
        weights = weights.scatter_add(0, nearest, data.weights)
        matrix = context_kernel(state.model, state.space, points)(points, points)
        radius = as_schedule(self.radius)(len(state.history.contexts))
        ball = MaximumMeanDiscrepancy(radius, 0.5 * (matrix + matrix.mT))
        return SearchProblem(contexts=ContextSet(points, weights), ambiguity_set=ball)

    def worst_case_problem(self, state: FittedRound) -> WorstCaseProblem:
        """The same."""
        problem = self.search_problem(state)
        return WorstCaseProblem.of(problem.contexts, problem.ambiguity_set, state.space)


WDRBO_DETACHED = RobustRecipe(
    name="wdrbo_detached", adversary=NamedRadius(), policy=DetachedLipschitzPenalty()
)
STABLE_OPT_SHIFTED = RobustRecipe(name="stable_opt_shifted", adversary=ShiftedBox())
DRBO_MMD_DIAGONAL = RobustRecipe(name="drbo_mmd_diagonal", adversary=DiagonalMMDBall())
