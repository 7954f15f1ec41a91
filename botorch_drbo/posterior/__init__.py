"""Posterior: marginal means and variances over decisions x contexts.

This package depends on models, but not on robustness, scores or beta. Other packages
use only ``view.py``.
"""

from botorch_drbo._deprecation import moved_names
from botorch_drbo.posterior.factory import marginal_posterior
from botorch_drbo.posterior.view import (
    LocalMoments,
    MarginalPosterior,
    MomentSlopes,
    View,
)

__all__ = [
    "LocalMoments",
    "MarginalPosterior",
    "MomentSlopes",
    "View",
    "marginal_posterior",
]

# Public in version 0.2.0, of use to the library alone: by the module they live in.
_MOVED = {
    "AddedPerturbation": "botorch_drbo.posterior.perturbation",
    "DEFAULT_MEMORY_BUDGET": "botorch_drbo.posterior.blocks",
    "ExactPosterior": "botorch_drbo.posterior.exact",
    "GenericPosterior": "botorch_drbo.posterior.generic",
    "KnownColumns": "botorch_drbo.posterior.known_columns",
    "Method": "botorch_drbo.posterior.factory",
    "ProductPosterior": "botorch_drbo.posterior.product",
    "in_blocks": "botorch_drbo.posterior.blocks",
    "joint_moments": "botorch_drbo.posterior.joint",
    "only_model": "botorch_drbo.posterior.models",
    "prior_variance": "botorch_drbo.posterior.prior",
    "with_known_columns": "botorch_drbo.posterior.known_columns",
    "with_perturbation": "botorch_drbo.posterior.perturbation",
}
__getattr__ = moved_names(__name__, _MOVED)
