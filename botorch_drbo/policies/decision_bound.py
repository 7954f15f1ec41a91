"""A confidence bound of a model of the decision alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from botorch.acquisition import AcquisitionFunction
from torch import Tensor

from botorch_drbo._validation import option
from botorch_drbo.acquisition import EnlargedConfidenceUCB
from botorch_drbo.adversaries.base import Adversary, FittedRound
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
class DecisionBound(Policy):
    r"""The upper confidence bound of a model of ``x``, which treats the context as
    noise.

    .. math:: \mu(x) + \Big(\sqrt{\beta} + \frac{\epsilon \sqrt t}{\sqrt\lambda}\Big)
        \sigma(x)

    Pending decisions are hallucinated [Desautels2014bucb]_: the model is conditioned on
    its own mean there, which leaves the mean as it is and shrinks the variance.
    ``t`` and :math:`\lambda` are the model's; see ``EnlargedConfidenceUCB``.

    The values of a recommendation come from a second model, of ``[x, c]``, under the
    recipe's adversary, so that they compare with those of the other recipes.

    Args:
        beta: Exploration in BoTorch's convention, ``mu + sqrt(beta) * sigma``: a
            number, a schedule in the number of outcomes, or the ``ConfidenceWidth``
            of the data.
        misspecification: The largest difference between the outcome and a function that
            the model can represent, in the units of y: :math:`\epsilon` of
            [Bogunovic2021misspecified]_, eq. 14. 0 for the plain bound. If the model's
            noise is small, the bound is wide.

    Raises:
        InputDataError: An option outside its range.

    [Srinivas2010gpucb]_, [Bogunovic2021misspecified]_.
    """

    uses_contexts: ClassVar[bool] = False

    beta: Schedule | ConfidenceWidth | float = option(2.25, check_beta)
    misspecification: float = option(0.0, check_misspecification)

    def exploring(
        self, state: FittedRound, adversary: Adversary, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        r"""The confidence bound of the model of ``x``."""
        model, beta = current_bound(self.beta, state.model, state.history)
        # Not BoTorch's class, which raises variances to 1e-12 in units of y.
        return EnlargedConfidenceUCB(
            model, beta, self.misspecification, X_pending=X_pending
        )

    def exploiting(
        self, state: FittedRound, adversary: Adversary
    ) -> AcquisitionFunction:
        r"""The posterior mean of the model of ``x``."""
        return EnlargedConfidenceUCB(state.model, 0.0, 0.0)
