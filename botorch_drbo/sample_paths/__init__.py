"""Sample paths of the posterior: functions of decision and context.

This package depends on models, but not on robustness.
"""

from botorch_drbo._deprecation import moved_names
from botorch_drbo.sample_paths.mixture import sample_paths
from botorch_drbo.sample_paths.posterior_paths import PosteriorPaths

__all__ = ["PosteriorPaths", "sample_paths"]

# Public in version 0.2.0, of use to the library alone: by the module they live in.
_MOVED = {
    "supports_paths": "botorch_drbo.sample_paths.support",
}
__getattr__ = moved_names(__name__, _MOVED)
