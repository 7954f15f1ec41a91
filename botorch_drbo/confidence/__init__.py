r"""Confidence: how wide a bound has to be, and what observations tell.

The widths of confidence bounds depend on the inputs that were observed, not only on
their number, so they are functions and not schedules. A width multiplies ``sigma``;
``beta`` in this library, as in BoTorch, is its square. ``bounds`` has the regret that
the papers promise.
"""

from botorch_drbo.confidence import bounds
from botorch_drbo.confidence.greedy_variance import GreedyVariance
from botorch_drbo.confidence.information_gain import (
    GreedyInformationGain,
    information_gain,
    maximum_information_gain,
    model_information_gain,
)
from botorch_drbo.confidence.noise import noise_precision, noise_std, with_noise_ratio
from botorch_drbo.confidence.width import (
    abbasi_yadkori_width,
    confidence_width,
    model_confidence_width,
    nonadaptive_confidence_width,
)

__all__ = [
    "GreedyInformationGain",
    "GreedyVariance",
    "abbasi_yadkori_width",
    "bounds",
    "confidence_width",
    "information_gain",
    "maximum_information_gain",
    "model_confidence_width",
    "model_information_gain",
    "noise_precision",
    "noise_std",
    "nonadaptive_confidence_width",
    "with_noise_ratio",
]
