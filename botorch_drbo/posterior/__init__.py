"""Posterior: marginal means and variances, and sample paths, over decisions x contexts.

Knows models; knows nothing of robustness.
"""

from botorch_drbo.posterior.base import (
    DEFAULT_MEMORY_BUDGET,
    MarginalPosterior,
    MomentSlopes,
)
from botorch_drbo.posterior.exact import ExactPosterior
from botorch_drbo.posterior.factory import Path, marginal_posterior
from botorch_drbo.posterior.generic import GenericPosterior
from botorch_drbo.posterior.greedy_variance import GreedyVariance
from botorch_drbo.posterior.interpolant import ContextInterpolant
from botorch_drbo.posterior.models import only_model
from botorch_drbo.posterior.noise import noise_precision
from botorch_drbo.posterior.path_support import supports_paths
from botorch_drbo.posterior.paths import PosteriorPaths
from botorch_drbo.posterior.prior_variance import prior_variance
from botorch_drbo.posterior.product_kernel import ProductPosterior

__all__ = [
    "DEFAULT_MEMORY_BUDGET",
    "ContextInterpolant",
    "ExactPosterior",
    "GenericPosterior",
    "GreedyVariance",
    "MarginalPosterior",
    "MomentSlopes",
    "Path",
    "PosteriorPaths",
    "ProductPosterior",
    "marginal_posterior",
    "noise_precision",
    "only_model",
    "prior_variance",
    "supports_paths",
]
