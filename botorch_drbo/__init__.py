"""Distributionally robust Bayesian optimisation for BoTorch.

Choose a decision whose outcome also depends on something nobody controls.
"""

from botorch_drbo.contexts import ContextSet
from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.space import Category, Integer, LinearConstraint, Log, Ordinal, Space

__version__ = "0.2.0"

__all__ = [
    "Category",
    "ContextSet",
    "Integer",
    "LinearConstraint",
    "Log",
    "Ordinal",
    "RobustOptimizer",
    "Space",
    "__version__",
]
