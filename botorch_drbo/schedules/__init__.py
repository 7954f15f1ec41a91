r"""Numbers that change with the amount of data: radii.

A schedule maps the step ``t = 1, 2, ...`` to a number. Schedules are frozen
dataclasses: they compare by value and go through JSON, so that a run can be resumed
exactly. A :class:`ContextRule` depends on the contexts themselves, not only on their
number.
"""

from botorch_drbo.schedules.radii import (
    Constant,
    InverseSquareRoot,
    KernelDensityRadius,
    MMDRadius,
    Schedule,
    SpreadRadius,
    WassersteinConfidenceRadius,
)

__all__ = [
    "Constant",
    "InverseSquareRoot",
    "KernelDensityRadius",
    "MMDRadius",
    "Schedule",
    "SpreadRadius",
    "WassersteinConfidenceRadius",
]
