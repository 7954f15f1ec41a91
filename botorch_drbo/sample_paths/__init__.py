"""Sample paths of the posterior: functions of decision and context.

Knows models; knows nothing of robustness.
"""

from botorch_drbo.sample_paths.posterior_paths import PosteriorPaths
from botorch_drbo.sample_paths.support import supports_paths

__all__ = ["PosteriorPaths", "supports_paths"]
