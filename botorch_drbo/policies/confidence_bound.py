"""The worst case of an upper confidence bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from botorch.acquisition import AcquisitionFunction
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo._validation import option
from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.adversaries.base import Adversary, FittedRound
from botorch_drbo.policies.exploration import (
    ConfidenceWidth,
    check_beta,
    check_misspecification,
    current_bound,
)
from botorch_drbo.policies.objective import ObjectivePolicy
from botorch_drbo.schedules import Schedule


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ConfidenceBound(ObjectivePolicy):
    r"""Maximise the worst case of an optimistic outcome.

    .. math:: \max_x\, g\big( u(x, c_1), \dots, u(x, c_n) \big), \qquad
        u = \mu + \Big(\sqrt{\beta} + \frac{\epsilon \sqrt t}{\sqrt\lambda}\Big) \sigma

    The recommendation is best for the same objective of the posterior mean.

    Args:
        beta: Exploration in BoTorch's convention, ``mu + sqrt(beta) * sigma``: a
            number, a schedule in the number of outcomes, or the ``ConfidenceWidth``
            of the data.
        misspecification: The largest difference between the outcome and a function that
            the model can represent, in the units of y: :math:`\epsilon` of
            [Bogunovic2021misspecified]_, eq. 14. 0 for the plain bound.

    Raises:
        InputDataError: An option outside its range.
    """

    beta: Schedule | ConfidenceWidth | float = option(2.25, check_beta)
    misspecification: float = option(0.0, check_misspecification)

    def exploring(
        self, state: FittedRound, adversary: Adversary, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        r"""The objective of the confidence bound."""
        model, beta = current_bound(self.beta, state.model, state.history)
        misspecification = self.misspecification
        return self._bound(model, beta, misspecification, state, adversary, X_pending)

    def exploiting(
        self, state: FittedRound, adversary: Adversary
    ) -> AcquisitionFunction:
        r"""The objective of the posterior mean."""
        return self._bound(state.model, 0.0, 0.0, state, adversary, None)

    def _bound(
        self,
        model: Model,
        beta: float,
        misspecification: float,
        state: FittedRound,
        adversary: Adversary,
        X_pending: Tensor | None,
    ) -> DistributionallyRobustUCB:
        problem = adversary.search_problem(state)
        return DistributionallyRobustUCB(
            model,
            beta,
            problem.contexts,
            self.objective_over(problem),
            outside_contexts=problem.outside,
            misspecification=misspecification,
            X_pending=X_pending,
        )
