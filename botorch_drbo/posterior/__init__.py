"""Posterior: marginal means and variances over decisions x contexts.

Knows models; knows nothing of robustness.
"""

from botorch_drbo.posterior.base import DEFAULT_MEMORY_BUDGET, MarginalPosterior
from botorch_drbo.posterior.exact import ExactPosterior
from botorch_drbo.posterior.factory import Path, marginal_posterior
from botorch_drbo.posterior.generic import GenericPosterior

__all__ = [
    "DEFAULT_MEMORY_BUDGET",
    "ExactPosterior",
    "GenericPosterior",
    "MarginalPosterior",
    "Path",
    "marginal_posterior",
]
