r"""Numbers that change as data come in: radii and betas.

A schedule maps the step ``t = 1, 2, ...`` to a number. Schedules are frozen
dataclasses: they compare by value and go through JSON, so that a run can be resumed
exactly. A :class:`ContextRule` looks at the contexts themselves, not only at their
number.
"""

from botorch_drbo.schedules.base import (
    Constant,
    ContextRule,
    Rule,
    Schedule,
    as_rule,
    as_schedule,
)
from botorch_drbo.schedules.betas import BOCUBeta, SBOKDEBeta
from botorch_drbo.schedules.covering import WassersteinCoveringRadius
from botorch_drbo.schedules.radii import (
    InverseSquareRoot,
    KernelDensityRadius,
    MMDRadius,
    WassersteinConfidenceRadius,
)
from botorch_drbo.schedules.radius import RADII, Radius, as_radius, as_size
from botorch_drbo.schedules.spread import SpreadRadius, deviations

__all__ = [
    "RADII",
    "BOCUBeta",
    "Constant",
    "ContextRule",
    "InverseSquareRoot",
    "KernelDensityRadius",
    "MMDRadius",
    "Radius",
    "Rule",
    "SBOKDEBeta",
    "Schedule",
    "SpreadRadius",
    "WassersteinConfidenceRadius",
    "WassersteinCoveringRadius",
    "as_radius",
    "as_rule",
    "as_schedule",
    "as_size",
    "deviations",
]
