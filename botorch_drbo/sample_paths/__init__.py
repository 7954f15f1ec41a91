"""Sample paths of the posterior: functions of decision and context.

This package depends on models, but not on robustness.
"""

from botorch_drbo.sample_paths.mixture import sample_paths
from botorch_drbo.sample_paths.posterior_paths import PosteriorPaths

__all__ = ["PosteriorPaths", "sample_paths"]
