"""Posterior: marginal means and variances over decisions x contexts.

This package depends on models, but not on robustness, scores or beta. Other packages
use only ``view.py``.
"""

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
