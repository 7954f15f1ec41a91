"""How the next decision is found: one acquisition function for any adversary."""

from botorch_drbo._validation import Registry
from botorch_drbo.policies.base import Policy
from botorch_drbo.policies.confidence_bound import ConfidenceBound
from botorch_drbo.policies.decision_bound import DecisionBound
from botorch_drbo.policies.disagreement_penalty import DisagreementPenalty
from botorch_drbo.policies.expected_improvement import ExpectedImprovement
from botorch_drbo.policies.exploration import ConfidenceWidth
from botorch_drbo.policies.finite_difference import FiniteDifference
from botorch_drbo.policies.integral_improvement import IntegralImprovement
from botorch_drbo.policies.lipschitz_penalty import LipschitzPenalty
from botorch_drbo.policies.thompson import Thompson

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
