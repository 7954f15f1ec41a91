r"""Numbers that change as data come in: radii and betas.

A schedule maps the step ``t = 1, 2, ...`` to a number. Schedules are frozen
dataclasses: they compare by value and go through JSON (:meth:`Schedule.to_dict`,
:func:`schedule_from_dict`), so that a run can be resumed exactly.
"""

from botorch_drbo.schedules.base import (
    Constant,
    Schedule,
    as_schedule,
    register_schedule,
    schedule_from_dict,
)
from botorch_drbo.schedules.radii import (
    InverseSquareRoot,
    KernelDensityRadius,
    MMDRadius,
    WassersteinConfidenceRadius,
)

__all__ = [
    "Constant",
    "InverseSquareRoot",
    "KernelDensityRadius",
    "MMDRadius",
    "Schedule",
    "WassersteinConfidenceRadius",
    "as_schedule",
    "register_schedule",
    "schedule_from_dict",
]
