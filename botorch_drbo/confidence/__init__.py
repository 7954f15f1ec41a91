r"""Widths of confidence bounds, and information gains.

The widths of confidence bounds depend on the inputs that were observed, not only on
their number, so they are functions and not schedules. A width multiplies ``sigma``;
``beta`` in this library, as in BoTorch, is its square. ``bounds`` has the regret bounds
of the papers.
"""

from botorch_drbo._deprecation import moved_names
from botorch_drbo.confidence import bounds
from botorch_drbo.confidence.information_gain import (
    information_gain,
    maximum_information_gain,
)
from botorch_drbo.confidence.width import (
    abbasi_yadkori_width,
    confidence_width,
    model_confidence_width,
)

__all__ = [
    "abbasi_yadkori_width",
    "bounds",
    "confidence_width",
    "information_gain",
    "maximum_information_gain",
    "model_confidence_width",
]

# Public in version 0.2.0, of use to the library alone: by the module they live in.
_MOVED = {
    "GreedyInformationGain": "botorch_drbo.confidence.information_gain",
    "GreedyVariance": "botorch_drbo.confidence.greedy_variance",
    "model_information_gain": "botorch_drbo.confidence.information_gain",
    "noise_precision": "botorch_drbo.confidence.noise",
    "noise_std": "botorch_drbo.confidence.noise",
    "nonadaptive_confidence_width": "botorch_drbo.confidence.width",
    "with_noise_ratio": "botorch_drbo.confidence.noise",
}
__getattr__ = moved_names(__name__, _MOVED)
