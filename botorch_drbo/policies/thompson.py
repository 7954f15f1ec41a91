"""Thompson sampling of the robust objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from botorch.acquisition import AcquisitionFunction
from torch import Tensor

from botorch_drbo._validation import check_count, option
from botorch_drbo.acquisition import RobustThompsonSampling
from botorch_drbo.adversaries.base import Adversary, FittedRound
from botorch_drbo.policies.objective import ObjectivePolicy
from botorch_drbo.randomness import derive_seed


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Thompson(ObjectivePolicy):
    r"""The decision whose objective is best on one posterior sample path.

    .. math:: x = \arg\max_x g\big( f(x, c_1), \dots, f(x, c_n) \big), \qquad
        f \sim \text{posterior}

    Each decision has a path of its own: a batch of ``q``, or one asked while others are
    pending, follows independent guesses.

    Args:
        num_features: Random Fourier features of a path.

    Raises:
        InputDataError: An option outside its range.

    [Tay2024bocu]_, Algorithm 1.
    """

    num_features: int = option(1024, check_count)

    def exploring(
        self, state: FittedRound, adversary: Adversary, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        r"""The objective of a path that no other decision of the seed has."""
        problem = adversary.search_problem(state)
        # Within a batch each decision sees those before it as pending.
        number = 0 if X_pending is None else len(X_pending)
        return RobustThompsonSampling(
            state.model,
            problem.listed(),
            self.objective_over(problem),
            num_features=self.num_features,
            seed=derive_seed(state.seed, number),
        )
