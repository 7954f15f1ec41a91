"""Acquisition functions: scores over contexts, combined into one number per decision.

Drop-in ``AcquisitionFunction`` subclasses for ``botorch.optim.optimize_acqf``.
"""

from botorch_drbo.acquisition.analytic import RobustAcquisitionFunction
from botorch_drbo.acquisition.decisions import OverJointInputs
from botorch_drbo.acquisition.expected_improvement import (
    LogExpectedImprovementOfExpectation,
    best_robust_value,
    qLogDistributionallyRobustNoisyExpectedImprovement,
)
from botorch_drbo.acquisition.feasibility import FeasibilityWeighted, RobustFeasibility
from botorch_drbo.acquisition.monte_carlo import (
    qDistributionallyRobustUCB,
)
from botorch_drbo.acquisition.penalized import (
    DisagreementPenalizedUCB,
    LipschitzPenalizedUCB,
)
from botorch_drbo.acquisition.robust_balls import (
    KernelDensityRobustUCB,
    MaximumMeanDiscrepancyRobustUCB,
)
from botorch_drbo.acquisition.thompson_sampling import RobustThompsonSampling
from botorch_drbo.acquisition.upper_confidence_bound import (
    DistributionallyRobustUCB,
    EnlargedConfidenceUCB,
    FiniteDifferenceUCB,
    ShareAboveUCB,
)

__all__ = [
    "DisagreementPenalizedUCB",
    "DistributionallyRobustUCB",
    "EnlargedConfidenceUCB",
    "FeasibilityWeighted",
    "FiniteDifferenceUCB",
    "KernelDensityRobustUCB",
    "LipschitzPenalizedUCB",
    "LogExpectedImprovementOfExpectation",
    "MaximumMeanDiscrepancyRobustUCB",
    "OverJointInputs",
    "RobustAcquisitionFunction",
    "RobustFeasibility",
    "RobustThompsonSampling",
    "ShareAboveUCB",
    "best_robust_value",
    "qDistributionallyRobustUCB",
    "qLogDistributionallyRobustNoisyExpectedImprovement",
]
