"""Expected improvement of the expectation over the contexts, in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    LogExpectedImprovementOfExpectation,
)
from botorch_drbo.adversaries.base import Adversary, FittedRound
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.policies.base import Policy


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class IntegralImprovement(Policy):
    r"""The decision whose expectation is expected to improve most, without samples.

    .. math:: \max_x E\Big[ \Big( g(x) - \max_{s \le t} E[g(x_s)] \Big)_+ \Big],
        \qquad g(x) = \sum_i p_i f(x, c_i)

    ``g`` is Gaussian, so its expected improvement is a formula; its variance is that of
    the joint posterior over the contexts. Unlike ``expected_improvement`` it takes no
    worst case, which is not Gaussian: its adversary believes the reference. The bar is
    one number, the largest posterior mean of ``g`` among the decisions tried.

    The recommendation has the largest posterior mean of ``g``.

    Raises:
        UnsupportedError: An adversary that may choose among distributions.

    [Williams2000integrated]_, as ``LogExpectedImprovementOfExpectation``.
    """

    def check(self, adversary: Adversary) -> None:
        r"""The worst case over a set is no integral."""
        if not adversary.believes_reference:
            raise UnsupportedError(
                "The policy `ei_integral` improves the expectation under one "
                f"distribution, got the adversary {type(adversary).__name__}. Take the "
                "adversary `empirical` or `kernel_density`, or the policy "
                "`expected_improvement`, which takes any."
            )

    @property
    def maximises_worst_case(self) -> bool:
        """The worst case of one distribution is its expectation."""
        return True

    def exploring(
        self, state: FittedRound, adversary: Adversary, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        r"""The expected improvement on the decisions tried."""
        self.check(adversary)
        history = state.history
        return LogExpectedImprovementOfExpectation(
            state.model,
            history.X if history.baseline is None else history.baseline,
            adversary.search_problem(state).contexts,
            X_pending=X_pending,
        )

    def exploiting(
        self, state: FittedRound, adversary: Adversary
    ) -> AcquisitionFunction:
        r"""The expectation of the posterior mean."""
        self.check(adversary)
        return DistributionallyRobustUCB(
            state.model,
            0.0,
            adversary.search_problem(state).contexts,
            UncertaintyObjective.so(),
        )
