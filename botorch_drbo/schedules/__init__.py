r"""Numbers that change with the amount of data: radii and betas.

A schedule maps the step ``t = 1, 2, ...`` to a number. Schedules are frozen
dataclasses: they compare by value and go through JSON, so that a run can be resumed
exactly. A :class:`ContextRule` depends on the contexts themselves, not only on their
number.
"""

from botorch_drbo._deprecation import moved_names
from botorch_drbo.schedules.base import Constant, Schedule
from botorch_drbo.schedules.betas import BOCUBeta, SBOKDEBeta
from botorch_drbo.schedules.covering import WassersteinCoveringRadius
from botorch_drbo.schedules.radii import (
    InverseSquareRoot,
    KernelDensityRadius,
    MMDRadius,
    WassersteinConfidenceRadius,
)
from botorch_drbo.schedules.spread import SpreadRadius

__all__ = [
    "BOCUBeta",
    "Constant",
    "InverseSquareRoot",
    "KernelDensityRadius",
    "MMDRadius",
    "SBOKDEBeta",
    "Schedule",
    "SpreadRadius",
    "WassersteinConfidenceRadius",
    "WassersteinCoveringRadius",
]

# Public in version 0.2.0, of use to the library alone: by the module they live in.
_MOVED = {
    "ContextRule": "botorch_drbo.schedules.base",
    "Rule": "botorch_drbo.schedules.base",
    "as_rule": "botorch_drbo.schedules.base",
    "as_schedule": "botorch_drbo.schedules.base",
}
__getattr__ = moved_names(__name__, _MOVED)
