"""An upper bound of the general objective, by a finite difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo._validation import check_positive, option
from botorch_drbo.acquisition import FiniteDifferenceUCB
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
class FiniteDifference(ObjectivePolicy):
    r"""Maximise an upper bound of the general objective.

    .. math:: a\, v(u; \epsilon) + b\, \frac{v(u; \epsilon + h) - v(l; \epsilon)}{h}

    with ``u`` and ``l`` the upper and lower confidence bounds at each context and a
    small ``h``; see ``FiniteDifferenceUCB``.

    Args:
        beta: Exploration in BoTorch's convention, ``mu + sqrt(beta) * sigma``: a
            number, a schedule in the number of outcomes, or the ``ConfidenceWidth``
            of the data.
        step: ``h``, in units of the radius.

    Raises:
        InputDataError: An option outside its range.

    [Tay2024bocu]_, Appendix C.2, version 1.
    """

    beta: Schedule | ConfidenceWidth | float = option(2.0, check_beta)
    step: float = option(1e-3, check_positive)

    def __post_init__(self) -> None:
        """Check beta, the step, and that there is no objective."""
        super().__post_init__()
        if self.objective is not None:
            raise InputDataError(
                "The finite difference is one of the general objective and takes no "
                "`objective`. Take another policy, for example `confidence_bound`."
            )

    def exploring(
        self, state: FittedRound, adversary: Adversary, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        r"""The value of the upper bound, and the difference of both bounds."""
        model, beta = current_bound(self.beta, state.model, state.history)
        return self._bound(model, beta, state, adversary, X_pending)

    def exploiting(
        self, state: FittedRound, adversary: Adversary
    ) -> AcquisitionFunction:
        r"""The same of the posterior mean."""
        return self._bound(state.model, 0.0, state, adversary, None)

    def _bound(
        self,
        model: Model,
        beta: float,
        state: FittedRound,
        adversary: Adversary,
        X_pending: Tensor | None,
    ) -> FiniteDifferenceUCB:
        problem = adversary.search_problem(state)
        return FiniteDifferenceUCB(
            model,
            beta,
            problem.listed(),
            self.general_objective(problem),
            step=self.step,
            X_pending=X_pending,
        )
