"""Recipes: one class per published method, from a history to the next decision."""

from botorch_drbo.recipes.acquisition_algorithm import AcquisitionAlgorithm
from botorch_drbo.recipes.base import Algorithm
from botorch_drbo.recipes.baselines import GPUCB, EmpiricalRisk, RandomSearch, StableOpt
from botorch_drbo.recipes.bocu import (
    UCBBOCU1,
    UCBBOCU2,
    UCBRO,
    UCBSO,
    ThompsonSampling,
    UncertaintyObjectiveOptions,
)
from botorch_drbo.recipes.distributionally_robust import DistributionallyRobust
from botorch_drbo.recipes.exploration import ConfidenceWidth
from botorch_drbo.recipes.kernel_density import DRBOKDE, SBOKDE
from botorch_drbo.recipes.misspecified import ECGPUCB, ECWDRBO
from botorch_drbo.recipes.mmd import DRBOMMD, DRBOMMDMinimax
from botorch_drbo.recipes.model_based import ModelBasedAlgorithm
from botorch_drbo.recipes.path_recipes import (
    ImprovementDRBOKDE,
    ImprovementERBO,
    ImprovementWDRBO,
    ThompsonDRBOKDE,
    ThompsonDRBOMMD,
    ThompsonERBO,
    ThompsonWDRBO,
)
from botorch_drbo.recipes.phased import PhasedState, PhasedUncertaintySampling
from botorch_drbo.recipes.registry import (
    ALGORITHMS,
    algorithm_from_dict,
    make_algorithm,
)
from botorch_drbo.recipes.regret_balancing import BalancingState, RegretBalancing
from botorch_drbo.recipes.robust_set import RobustSetAlgorithm
from botorch_drbo.recipes.wasserstein import WDRBO, WDRBOExact

__all__ = [
    "ALGORITHMS",
    "DRBOKDE",
    "DRBOMMD",
    "DRBOMMDMinimax",
    "ECGPUCB",
    "ECWDRBO",
    "GPUCB",
    "SBOKDE",
    "UCBBOCU1",
    "UCBBOCU2",
    "UCBRO",
    "UCBSO",
    "WDRBO",
    "WDRBOExact",
    "AcquisitionAlgorithm",
    "Algorithm",
    "BalancingState",
    "ConfidenceWidth",
    "DistributionallyRobust",
    "EmpiricalRisk",
    "ImprovementDRBOKDE",
    "ImprovementERBO",
    "ImprovementWDRBO",
    "ModelBasedAlgorithm",
    "PhasedState",
    "PhasedUncertaintySampling",
    "RandomSearch",
    "RegretBalancing",
    "RobustSetAlgorithm",
    "StableOpt",
    "ThompsonDRBOKDE",
    "ThompsonDRBOMMD",
    "ThompsonERBO",
    "ThompsonSampling",
    "ThompsonWDRBO",
    "UncertaintyObjectiveOptions",
    "algorithm_from_dict",
    "make_algorithm",
]
