"""Decisions ranked by a model of few inducing points, where there are many outcomes."""

from __future__ import annotations

from dataclasses import replace

from botorch.acquisition import AcquisitionFunction

from botorch_drbo.acquisition import FeasibilityWeighted
from botorch_drbo.adversaries import FittedRound
from botorch_drbo.posterior.inducing_points import with_inducing_points
from botorch_drbo.recommendation.chance_constraint import ChanceConstraint

FEW_POINTS = 256
"""Inducing points by which decisions are ranked ..."""
MANY_ROWS = 512
"""... where there are so many outcomes."""


def with_few_points(state: FittedRound) -> FittedRound | None:
    """The round with a model that is far cheaper to search; None if there is none."""
    if state.history.t < MANY_ROWS:
        return None
    few = with_inducing_points(state.model, FEW_POINTS)
    return None if few is state.model else replace(state, model=few)


def weighted(
    acqf: AcquisitionFunction, chance: ChanceConstraint | None, reference: float | None
) -> AcquisitionFunction:
    """The objective, weighted by the probability of meeting constraints, if any."""
    if chance is None:
        return acqf
    return FeasibilityWeighted(
        acqf,
        chance.feasibility,
        reference=None if acqf._log else reference,
        level=chance.aim,
    )
