"""Recipes: one class per published method, from a history to the next decision."""

from botorch_drbo.algorithms.base import Algorithm
from botorch_drbo.algorithms.baselines import (
    GPUCB,
    EmpiricalRisk,
    RandomSearch,
    StableOpt,
)
from botorch_drbo.algorithms.data import History, Recommendation, SearchSpace
from botorch_drbo.algorithms.distributionally_robust import DistributionallyRobust
from botorch_drbo.algorithms.kernel_density import DRBOKDE, SBOKDE
from botorch_drbo.algorithms.mmd import DRBOMMD, DRBOMMDMinimax
from botorch_drbo.algorithms.model_based import (
    AcquisitionAlgorithm,
    RobustSetAlgorithm,
)
from botorch_drbo.algorithms.randomness import derive_seed, isolated_rng
from botorch_drbo.algorithms.registry import (
    ALGORITHMS,
    algorithm_from_dict,
    make_algorithm,
)
from botorch_drbo.algorithms.wasserstein import WDRBO, WDRBOExact

__all__ = [
    "ALGORITHMS",
    "DRBOKDE",
    "DRBOMMD",
    "DRBOMMDMinimax",
    "GPUCB",
    "SBOKDE",
    "WDRBO",
    "WDRBOExact",
    "AcquisitionAlgorithm",
    "Algorithm",
    "DistributionallyRobust",
    "EmpiricalRisk",
    "History",
    "RandomSearch",
    "RobustSetAlgorithm",
    "Recommendation",
    "SearchSpace",
    "StableOpt",
    "algorithm_from_dict",
    "derive_seed",
    "isolated_rng",
    "make_algorithm",
]
