"""Recipes: one class per published method, from a history to the next decision."""

from botorch_drbo.algorithms.base import Algorithm
from botorch_drbo.algorithms.baselines import (
    GPUCB,
    EmpiricalRisk,
    RandomSearch,
    StableOpt,
)
from botorch_drbo.algorithms.data import History, Recommendation, SearchSpace
from botorch_drbo.algorithms.kernel_density import SBOKDE
from botorch_drbo.algorithms.model_based import AcquisitionAlgorithm
from botorch_drbo.algorithms.randomness import derive_seed, isolated_rng
from botorch_drbo.algorithms.registry import (
    ALGORITHMS,
    algorithm_from_dict,
    make_algorithm,
)
from botorch_drbo.algorithms.wasserstein import WDRBO

__all__ = [
    "ALGORITHMS",
    "GPUCB",
    "SBOKDE",
    "WDRBO",
    "AcquisitionAlgorithm",
    "Algorithm",
    "EmpiricalRisk",
    "History",
    "RandomSearch",
    "Recommendation",
    "SearchSpace",
    "StableOpt",
    "algorithm_from_dict",
    "derive_seed",
    "isolated_rng",
    "make_algorithm",
]
