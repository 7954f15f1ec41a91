"""The expectation minus a Lipschitz penalty for a shifted distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo._validation import option
from botorch_drbo.acquisition import LipschitzPenalizedUCB
from botorch_drbo.adversaries.base import Adversary, FittedRound
from botorch_drbo.adversaries.wasserstein import WassersteinBall
from botorch_drbo.policies.base import Policy
from botorch_drbo.policies.exploration import (
    ConfidenceWidth,
    check_beta,
    check_misspecification,
    current_bound,
)
from botorch_drbo.schedules import Schedule


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class LipschitzPenalty(Policy):
    r"""The expectation of an optimistic outcome, less a Lipschitz penalty.

    .. math:: \sum_i p_i \, u(x, c_i) - \epsilon_s L(x), \qquad
        L(x) = \max_c \| \partial_c\, u(x, c) \|_2, \qquad
        u = \mu + \Big(\sqrt{\beta} + \frac{\epsilon \sqrt t}{\sqrt\lambda}\Big) \sigma

    A lower bound of the worst case over the Wasserstein ball of radius
    :math:`\epsilon_s`, which is its adversary, in units of the context box scaled to
    ``[0, 1]^d_c``, or in a radius by column. A recommendation maximises the penalised
    expectation of the posterior mean, and is judged by the ball itself.

    Args:
        beta: Exploration in BoTorch's convention, ``mu + sqrt(beta) * sigma``: a
            number, a schedule in the number of outcomes, or the ``ConfidenceWidth``
            of the data.
        misspecification: The largest difference between the outcome and a function that
            the model can represent, in the units of y: :math:`\epsilon` of
            [Bogunovic2021misspecified]_, eq. 14. 0 for the plain bound. The penalty is
            taken of the enlarged bound, which is steeper.

    Raises:
        InputDataError: An option outside its range.
        UnsupportedError: Another adversary than a Wasserstein ball.

    [Micheli2025wdrbo]_, eq. 13.
    """

    context_order: ClassVar[str | None] = "it penalises the slope in the context"

    beta: Schedule | ConfidenceWidth | float = option(2.25, check_beta)
    misspecification: float = option(0.0, check_misspecification)

    def check(self, adversary: Adversary) -> None:
        r"""The penalty bounds the worst case over one kind of ball."""
        if not isinstance(adversary, WassersteinBall):
            raise UnsupportedError(
                "The policy `lipschitz_penalty` bounds the worst case over a "
                f"Wasserstein ball, got the adversary {type(adversary).__name__}. Take "
                "the adversary `wasserstein`, or the policy `confidence_bound`, which "
                "takes any."
            )
        if adversary.num_candidates:
            raise InputDataError(
                "`num_candidates` is no use to the policy `lipschitz_penalty`, which "
                f"moves no mass, got {adversary.num_candidates}. Leave it out, or take "
                "the policy `confidence_bound`."
            )

    def exploring(
        self, state: FittedRound, adversary: Adversary, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        r"""The penalised expectation of the confidence bound."""
        model, beta = current_bound(self.beta, state.model, state.history)
        misspecification = self.misspecification
        return self._bound(model, beta, misspecification, state, adversary, X_pending)

    def exploiting(
        self, state: FittedRound, adversary: Adversary
    ) -> AcquisitionFunction:
        r"""The penalised expectation of the posterior mean."""
        return self._bound(state.model, 0.0, 0.0, state, adversary, None)

    def _bound(
        self,
        model: Model,
        beta: float,
        misspecification: float,
        state: FittedRound,
        adversary: Adversary,
        X_pending: Tensor | None,
    ) -> LipschitzPenalizedUCB:
        self.check(adversary)
        assert isinstance(adversary, WassersteinBall)
        return LipschitzPenalizedUCB(
            model,
            beta,
            state.contexts(),
            state.radius(adversary.radius),
            state.space.context_bounds,
            context_radii=state.column_radii(adversary.radius),
            misspecification=misspecification,
            X_pending=X_pending,
        )
