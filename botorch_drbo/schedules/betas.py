"""The betas of the theorems that depend on the number of outcomes alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from botorch_drbo.schedules._fields import set_dimension, set_nonnegative
from botorch_drbo.schedules.base import Schedule

# Of f drawn from a Gaussian process on a box that is scaled to a cube:
# P(sup |df/dx_i| > J) <= a exp(-(J / b)^2) for each coordinate.


@final
@dataclass(frozen=True)
class SBOKDEBeta(Schedule):
    r"""The ``beta`` of Theorems 1 and 2 of [Huang2024sbokde]_.

    .. math:: \beta = 2 \ln \frac{s^2}{\sqrt{2 \pi}}
        + 2 d_x \ln \frac{s^2 d_x a b r \sqrt\pi}{2}, \qquad s = t + 1

    for decisions in :math:`[0, r]^{d_x}` and a function whose slopes are bounded in
    probability, :math:`P(\sup |\partial f / \partial x_i| > J) \le a e^{-(J/b)^2}`.
    ``s`` is the round after ``t`` outcomes. A grid of less than one decision counts as
    one. The paper's experiments use 2.25.

    Args:
        d_x: The number of decision variables.
        a: A constant of the bound on the slopes.
        b: A constant of the bound on the slopes.
        side: ``r``.

    Raises:
        InputDataError: A field out of its range.

    Example:
        >>> from botorch_drbo.schedules import SBOKDEBeta
        >>> round(SBOKDEBeta(d_x=1, a=1.0, b=1.0)(9), 3)
        16.341
    """

    d_x: int
    a: float
    b: float
    side: float = 1.0

    def __post_init__(self) -> None:
        """Check the fields."""
        set_dimension(self, "d_x")
        for name in ("a", "b", "side"):
            set_nonnegative(self, name)

    def at(self, t: int) -> float:
        r"""The formula of the class."""
        square = (t + 1) ** 2
        slopes = self.a * self.b * self.side * math.sqrt(math.pi) / 2
        grid = max(1.0, square * self.d_x * slopes)
        return 2 * math.log(square / math.sqrt(2 * math.pi) * grid**self.d_x)


@final
@dataclass(frozen=True)
class BOCUBeta(Schedule):
    r"""The ``beta`` of the theorems of [Tay2024bocu]_.

    .. math:: \beta = 2 \ln \frac{(s^2 + 1) \, \tau^{d_x} \, |C|}{\sqrt{2 \pi}},
        \qquad \tau = s^2 d_x a b \sqrt\pi, \qquad s = t + 1

    for decisions in the unit cube, finitely many contexts, and a function whose slopes
    are bounded in probability, :math:`P(\sup |\partial f / \partial x_i| > J)
    \le a e^{-(J/b)^2}`. ``s`` is the round that follows ``t`` outcomes. The theorem
    prints :math:`\tau` without :math:`\sqrt\pi`; its proof needs it. A grid of less
    than one decision counts as one. The experiments take 2.

    Args:
        d_x: The number of decision variables.
        num_contexts: ``|C|``.
        a: A constant of the bound on the slopes.
        b: A constant of the bound on the slopes.

    Raises:
        InputDataError: A field out of its range.

    Example:
        >>> from botorch_drbo.schedules import BOCUBeta
        >>> round(BOCUBeta(d_x=1, num_contexts=64, a=1.0, b=1.0)(9), 3)
        26.065
    """

    d_x: int
    num_contexts: int
    a: float
    b: float

    def __post_init__(self) -> None:
        """Check the fields."""
        set_dimension(self, "d_x")
        set_dimension(self, "num_contexts")
        set_nonnegative(self, "a")
        set_nonnegative(self, "b")

    def at(self, t: int) -> float:
        r"""The formula of the class."""
        square = (t + 1) ** 2
        tau = max(1.0, square * self.d_x * self.a * self.b * math.sqrt(math.pi))
        count = tau**self.d_x * self.num_contexts
        return 2 * math.log((square + 1) * count / math.sqrt(2 * math.pi))
