"""Posterior: marginal means and variances over decisions x contexts.

Knows models; knows nothing of robustness, of scores, or of beta. Outside this folder
only ``view.py`` is spoken to.
"""

from botorch_drbo.posterior.blocks import DEFAULT_MEMORY_BUDGET, in_blocks
from botorch_drbo.posterior.exact import ExactPosterior
from botorch_drbo.posterior.expectation import (
    posterior_of_expectation,
    posterior_of_sums,
)
from botorch_drbo.posterior.factory import Method, marginal_posterior
from botorch_drbo.posterior.generic import GenericPosterior
from botorch_drbo.posterior.joint import joint_moments
from botorch_drbo.posterior.known_columns import KnownColumns, with_known_columns
from botorch_drbo.posterior.mixture import GaussianMixture, check_level
from botorch_drbo.posterior.models import only_model
from botorch_drbo.posterior.perturbation import AddedPerturbation, with_perturbation
from botorch_drbo.posterior.prior_variance import prior_variance
from botorch_drbo.posterior.product import ProductPosterior
from botorch_drbo.posterior.view import (
    LocalMoments,
    MarginalPosterior,
    MomentSlopes,
    View,
)

__all__ = [
    "DEFAULT_MEMORY_BUDGET",
    "AddedPerturbation",
    "ExactPosterior",
    "GaussianMixture",
    "GenericPosterior",
    "KnownColumns",
    "LocalMoments",
    "MarginalPosterior",
    "Method",
    "MomentSlopes",
    "ProductPosterior",
    "View",
    "check_level",
    "in_blocks",
    "joint_moments",
    "marginal_posterior",
    "only_model",
    "posterior_of_expectation",
    "posterior_of_sums",
    "prior_variance",
    "with_known_columns",
    "with_perturbation",
]
