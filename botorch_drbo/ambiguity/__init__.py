"""Ambiguity sets: which context distributions the adversary may choose from.

They work with numbers only and do not depend on a model.
"""

from botorch_drbo.ambiguity.base import AmbiguitySet, Prices
from botorch_drbo.ambiguity.cvar import ConditionalValueAtRisk, FullSimplex, NoAmbiguity
from botorch_drbo.ambiguity.cvxpy_set import CvxpyAmbiguity
from botorch_drbo.ambiguity.divergences import (
    ChiSquared,
    KullbackLeibler,
    ModifiedChiSquared,
)
from botorch_drbo.ambiguity.finite import FiniteFamily
from botorch_drbo.ambiguity.minimax import MinimaxApproximation
from botorch_drbo.ambiguity.mmd import MaximumMeanDiscrepancy
from botorch_drbo.ambiguity.solution import RobustValue, Solution, SolverStatus
from botorch_drbo.ambiguity.total_variation import TotalVariation
from botorch_drbo.ambiguity.wasserstein import Wasserstein

__all__ = [
    "AmbiguitySet",
    "ChiSquared",
    "ConditionalValueAtRisk",
    "CvxpyAmbiguity",
    "FiniteFamily",
    "FullSimplex",
    "KullbackLeibler",
    "MaximumMeanDiscrepancy",
    "MinimaxApproximation",
    "ModifiedChiSquared",
    "NoAmbiguity",
    "Prices",
    "RobustValue",
    "Solution",
    "SolverStatus",
    "TotalVariation",
    "Wasserstein",
]
