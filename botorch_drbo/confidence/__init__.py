r"""Widths of confidence bounds, and information gains.

The widths of confidence bounds depend on the inputs that were observed, not only on
their number, so they are functions and not schedules. A width multiplies ``sigma``;
``beta`` in this library, as in BoTorch, is its square.
"""

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
    "confidence_width",
    "information_gain",
    "maximum_information_gain",
    "model_confidence_width",
]
