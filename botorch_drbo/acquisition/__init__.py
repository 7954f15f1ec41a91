"""Acquisition functions: scores over contexts, combined into one number per decision.

Drop-in ``AcquisitionFunction`` subclasses for ``botorch.optim.optimize_acqf``.
"""

from botorch_drbo.acquisition.base import RobustAcquisitionFunction
from botorch_drbo.acquisition.batch_upper_confidence_bound import (
    qDistributionallyRobustUCB,
)
from botorch_drbo.acquisition.best_robust_value import best_robust_value
from botorch_drbo.acquisition.disagreement_penalized import DisagreementPenalizedUCB
from botorch_drbo.acquisition.enlarged_confidence import EnlargedConfidenceUCB
from botorch_drbo.acquisition.expectation_improvement import (
    LogExpectedImprovementOfExpectation,
)
from botorch_drbo.acquisition.feasibility import RobustFeasibility
from botorch_drbo.acquisition.feasibility_weighted import FeasibilityWeighted
from botorch_drbo.acquisition.finite_difference import FiniteDifferenceUCB
from botorch_drbo.acquisition.joint_inputs import OverJointInputs
from botorch_drbo.acquisition.lipschitz_penalized import LipschitzPenalizedUCB
from botorch_drbo.acquisition.log_expected_improvement import (
    qLogDistributionallyRobustNoisyExpectedImprovement,
)
from botorch_drbo.acquisition.robust_balls import (
    KernelDensityRobustUCB,
    MaximumMeanDiscrepancyRobustUCB,
)
from botorch_drbo.acquisition.thompson_sampling import RobustThompsonSampling
from botorch_drbo.acquisition.upper_confidence_bound import DistributionallyRobustUCB

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
    "best_robust_value",
    "qDistributionallyRobustUCB",
    "qLogDistributionallyRobustNoisyExpectedImprovement",
]
