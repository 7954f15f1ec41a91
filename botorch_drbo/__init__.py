"""Distributionally robust Bayesian optimisation for BoTorch.

Choose a decision whose outcome also depends on something nobody controls.
"""

from botorch_drbo.contexts import ContextSet
from botorch_drbo.optimizer import RobustOptimizer

__version__ = "0.2.0"

__all__ = ["ContextSet", "RobustOptimizer", "__version__"]
