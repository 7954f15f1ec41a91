"""How the next decision is found: one acquisition function for any adversary."""

from botorch_drbo._validation import Registry
from botorch_drbo.policies.base import ConfidenceWidth, Policy
from botorch_drbo.policies.bounds import (
    ConfidenceBound,
    DecisionBound,
    DisagreementPenalty,
    FiniteDifference,
    LipschitzPenalty,
)
from botorch_drbo.policies.sampled import (
    ExpectedImprovement,
    IntegralImprovement,
    Thompson,
)

POLICIES: Registry[Policy] = Registry(
    Policy,
    {
        "confidence_bound": ConfidenceBound(),
        "lipschitz_penalty": LipschitzPenalty(),
        "finite_difference": FiniteDifference(),
        "thompson": Thompson(),
        "expected_improvement": ExpectedImprovement(),
        "ei_integral": IntegralImprovement(),
        "disagreement_penalty": DisagreementPenalty(),
        "decision_bound": DecisionBound(),
    },
)
"""Policies by name, with their defaults. Add your own under a name."""

__all__ = [
    "POLICIES",
    "ConfidenceWidth",
    "Policy",
]
