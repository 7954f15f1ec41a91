"""Sample paths of the posterior: functions of decision and context.

Knows models; knows nothing of robustness.
"""

from botorch_drbo.sample_paths.mixture import MixturePaths, SamplePaths, sample_paths
from botorch_drbo.sample_paths.posterior_paths import PosteriorPaths
from botorch_drbo.sample_paths.support import supports_paths

__all__ = [
    "MixturePaths",
    "PosteriorPaths",
    "SamplePaths",
    "sample_paths",
    "supports_paths",
]
