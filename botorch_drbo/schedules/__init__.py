r"""Numbers that change as data come in: radii, betas, information and widths.

A schedule maps the step ``t = 1, 2, ...`` to a number. Schedules are frozen
dataclasses: they compare by value and go through JSON (:meth:`Schedule.to_dict`,
:func:`schedule_from_dict`), so that a run can be resumed exactly.

The widths of confidence bounds depend on the inputs that were observed, not only on
their number, so they are functions and not schedules. A width multiplies ``sigma``;
``beta`` in this library, as in BoTorch, is its square.
"""

from botorch_drbo.schedules.base import (
    Constant,
    Schedule,
    as_schedule,
    register_schedule,
    schedule_from_dict,
)
from botorch_drbo.schedules.confidence_width import (
    abbasi_yadkori_width,
    confidence_width,
    model_confidence_width,
    nonadaptive_confidence_width,
)
from botorch_drbo.schedules.information_gain import (
    GreedyInformationGain,
    information_gain,
    maximum_information_gain,
    model_information_gain,
)
from botorch_drbo.schedules.radii import (
    InverseSquareRoot,
    KernelDensityRadius,
    MMDRadius,
    WassersteinConfidenceRadius,
)

__all__ = [
    "Constant",
    "GreedyInformationGain",
    "InverseSquareRoot",
    "KernelDensityRadius",
    "MMDRadius",
    "Schedule",
    "WassersteinConfidenceRadius",
    "abbasi_yadkori_width",
    "as_schedule",
    "confidence_width",
    "information_gain",
    "maximum_information_gain",
    "model_confidence_width",
    "model_information_gain",
    "nonadaptive_confidence_width",
    "register_schedule",
    "schedule_from_dict",
]
