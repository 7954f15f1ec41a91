"""Search with sample paths of the posterior in place of a confidence bound."""

from __future__ import annotations

from dataclasses import dataclass

from botorch.acquisition import AcquisitionFunction

from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.adversaries.base import Adversary, FittedRound
from botorch_drbo.policies.objective import ObjectivePolicy


@dataclass(frozen=True, kw_only=True, eq=False)
class PathPolicy(ObjectivePolicy):
    r"""Search with sample paths of the posterior: there is no ``beta`` to choose.

    The recommendation is best for the objective of the posterior mean.
    """

    def exploiting(
        self, state: FittedRound, adversary: Adversary
    ) -> AcquisitionFunction:
        r"""The objective of the posterior mean."""
        problem = adversary.search_problem(state)
        return DistributionallyRobustUCB(
            state.model, 0.0, problem.listed(), self.objective_over(problem)
        )
