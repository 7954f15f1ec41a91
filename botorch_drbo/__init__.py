"""Distributionally robust Bayesian optimisation for BoTorch.

Choose a decision whose outcome also depends on something nobody controls.
"""

from botorch_drbo.contexts import ContextSet

__version__ = "0.1.0"

__all__ = ["ContextSet", "__version__"]
