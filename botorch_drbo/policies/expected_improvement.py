"""Expected improvement of the robust objective, over sample paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from botorch.acquisition import AcquisitionFunction
from torch import Tensor

from botorch_drbo._validation import check_count, option
from botorch_drbo.acquisition import qLogDistributionallyRobustNoisyExpectedImprovement
from botorch_drbo.adversaries.base import Adversary, FittedRound
from botorch_drbo.policies.objective import ObjectivePolicy


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ExpectedImprovement(ObjectivePolicy):
    r"""The decision whose objective is expected to improve most on those tried.

    .. math:: \max_x E_f\Big[ \Big( g_f(x) - \max_{s \le t} g_f(x_s) \Big)_+ \Big],
        \qquad g_f(x) = g\big( f(x, c_1), \dots, f(x, c_n) \big)

    over posterior sample paths ``f``.

    *Why not a confidence bound.* Far from data a Gaussian process is flat in the
    context, and so is ``mu + w sigma``. A decision that was never tried therefore
    loses almost nothing in the worst case, while one that is known to be good loses the
    full amount, so the penalty of ``wdrbo`` and the ball of ``wdrbo_exact`` act as a
    second exploration bonus. Sample paths are as steep far from data as near them, and
    their expected improvement has no such bonus.

    Args:
        num_paths: The sample paths over which the improvement is averaged.
        num_features: Random Fourier features of each path.

    Raises:
        InputDataError: An option outside its range.
    """

    num_paths: int = option(64, check_count)
    num_features: int = option(128, check_count)

    def exploring(
        self, state: FittedRound, adversary: Adversary, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        r"""The expected improvement on the decisions tried and those pending."""
        history, problem = state.history, adversary.search_problem(state)
        return qLogDistributionallyRobustNoisyExpectedImprovement(
            state.model,
            history.X if history.baseline is None else history.baseline,
            problem.listed(),
            self.objective_over(problem),
            num_paths=self.num_paths,
            num_features=self.num_features,
            seed=state.seed,
            X_pending=X_pending,
        )
