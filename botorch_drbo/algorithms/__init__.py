"""Recipes: one class per published method, from a history to the next decision."""

from botorch_drbo.algorithms.acquisition_algorithm import AcquisitionAlgorithm
from botorch_drbo.algorithms.base import Algorithm
from botorch_drbo.algorithms.baselines import (
    GPUCB,
    EmpiricalRisk,
    RandomSearch,
    StableOpt,
)
from botorch_drbo.algorithms.bocu import (
    UCBBOCU1,
    UCBBOCU2,
    UCBRO,
    UCBSO,
    ThompsonSampling,
    UncertaintyObjectiveOptions,
)
from botorch_drbo.algorithms.data import (
    ConstraintData,
    History,
    Recommendation,
    SearchSpace,
)
from botorch_drbo.algorithms.distributionally_robust import DistributionallyRobust
from botorch_drbo.algorithms.exploration import ConfidenceWidth
from botorch_drbo.algorithms.given_model import ModelMaker
from botorch_drbo.algorithms.hyperparameters import FixedHyperparameters
from botorch_drbo.algorithms.kernel_density import DRBOKDE, SBOKDE
from botorch_drbo.algorithms.misspecified import ECGPUCB, ECWDRBO
from botorch_drbo.algorithms.mmd import DRBOMMD, DRBOMMDMinimax
from botorch_drbo.algorithms.model_based import ModelBasedAlgorithm
from botorch_drbo.algorithms.path_recipes import (
    ImprovementDRBOKDE,
    ImprovementERBO,
    ImprovementWDRBO,
    ThompsonDRBOKDE,
    ThompsonDRBOMMD,
    ThompsonERBO,
    ThompsonWDRBO,
)
from botorch_drbo.algorithms.phased import PhasedState, PhasedUncertaintySampling
from botorch_drbo.algorithms.randomness import (
    derive_seed,
    isolated_rng,
    standard_dtype,
)
from botorch_drbo.algorithms.registry import (
    ALGORITHMS,
    algorithm_from_dict,
    make_algorithm,
)
from botorch_drbo.algorithms.regret_balancing import BalancingState, RegretBalancing
from botorch_drbo.algorithms.robust_set import RobustSetAlgorithm
from botorch_drbo.algorithms.round import Round
from botorch_drbo.algorithms.wasserstein import WDRBO, WDRBOExact

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
    "ConstraintData",
    "DistributionallyRobust",
    "EmpiricalRisk",
    "FixedHyperparameters",
    "History",
    "ImprovementDRBOKDE",
    "ImprovementERBO",
    "ImprovementWDRBO",
    "ModelBasedAlgorithm",
    "ModelMaker",
    "PhasedState",
    "PhasedUncertaintySampling",
    "RandomSearch",
    "Recommendation",
    "RegretBalancing",
    "RobustSetAlgorithm",
    "Round",
    "SearchSpace",
    "StableOpt",
    "ThompsonDRBOKDE",
    "ThompsonDRBOMMD",
    "ThompsonERBO",
    "ThompsonSampling",
    "ThompsonWDRBO",
    "UncertaintyObjectiveOptions",
    "algorithm_from_dict",
    "derive_seed",
    "isolated_rng",
    "make_algorithm",
    "standard_dtype",
]
