"""The confidence bound of an ensemble, minus a penalty for disagreement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from botorch.acquisition import AcquisitionFunction
from torch import Tensor

from botorch_drbo._validation import option
from botorch_drbo.acquisition import DisagreementPenalizedUCB
from botorch_drbo.acquisition.disagreement_penalized import PenaltyOver, check_penalty
from botorch_drbo.adversaries.base import Adversary, FittedRound
from botorch_drbo.policies.exploration import (
    ConfidenceWidth,
    check_beta,
    current_bound,
)
from botorch_drbo.policies.objective import ObjectivePolicy
from botorch_drbo.schedules import Schedule


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class DisagreementPenalty(ObjectivePolicy):
    r"""Maximise the worst case of an optimistic outcome where the models agree.

    .. math:: \frac1S \sum_m g\big( u_m(x, c_1), \dots, u_m(x, c_n) \big)
        - \kappa\, \epsilon(x), \qquad
        \epsilon(x) = \max_m \sqrt{ (\bar\mu_m - \bar\mu)^2
            + (\bar\sigma_m - \bar\sigma)^2 }

    over the ``S`` models of an ensemble, with :math:`\bar\mu_m(x)` and
    :math:`\bar\sigma_m(x)` the averages over the contexts of mean and deviation of one
    model, in the units of the outcome, and :math:`\bar\mu`, :math:`\bar\sigma` their
    means over the models. See ``DisagreementPenalizedUCB``. The recommendation
    maximises the objective of the posterior mean, without a penalty.

    Args:
        beta: Exploration in BoTorch's convention, ``mu + sqrt(beta) * sigma``: a
            number, a schedule in the number of outcomes, or the ``ConfidenceWidth``
            of the data.
        penalty: :math:`\kappa`, the weight of the disagreement.
        penalty_over: "decision" for one penalty per decision; "batch" for the largest
            among all decisions that the optimiser evaluates together, an error in the
            public code.

    Raises:
        InputDataError: An option outside its range.

    [Ramazyan2026edrbo]_.
    """

    needs_ensemble: ClassVar[bool] = True
    default_surrogate: ClassVar[str | None] = "kernels"

    beta: Schedule | ConfidenceWidth | float = option(2.25, check_beta)
    penalty: float = 1.41
    penalty_over: PenaltyOver = "decision"

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        check_penalty(self.penalty, self.penalty_over)
        object.__setattr__(self, "penalty", float(self.penalty))

    def exploring(
        self, state: FittedRound, adversary: Adversary, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        r"""The penalised objective of the confidence bound."""
        model, beta = current_bound(self.beta, state.model, state.history)
        problem = adversary.search_problem(state)
        return DisagreementPenalizedUCB(
            model,
            beta,
            problem.listed(),
            self.objective_over(problem),
            penalty=self.penalty,
            penalty_over=self.penalty_over,
            X_pending=X_pending,
        )
