"""The radius of WDRBO's Lemma 7, with its unknown constant as an argument."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from botorch_drbo.schedules._fields import (
    set_dimension,
    set_nonnegative,
    set_probability,
)
from botorch_drbo.schedules.base import Schedule


@final
@dataclass(frozen=True)
class WassersteinCoveringRadius(Schedule):
    r"""The data-driven radius of Lemma 7 of [Micheli2025wdrbo]_.

    .. math:: \epsilon_t = D_C \sqrt{\frac{2}{t} \Big( \ln\frac1\delta
        + d_x \ln(1 + 2 t D_X) + \kappa (1 + \ln(t \bar B))^{1 + d}
        + \kappa (1 + \ln t)^{1 + 2 d} \Big)}, \qquad d = d_x + d_c

    After ``t`` independent contexts of one law, with probability ``1 - 2 delta``, no
    upper confidence bound of the model, at any decision, has a mean over the data
    that is off by more than :math:`\epsilon_t` times its Lipschitz constant in the
    context, plus ``slack(t)``. The statement is for one ``t``; for all of them at once
    (Theorem 8) give each :math:`6 \delta / (\pi^2 t^2)`. The last two terms bound the
    covering number of the confidence bounds of a squared exponential kernel, for a
    regulariser of less than one (Lemma 23); **their constant** ``kappa`` **is not given
    in the paper**.

    It is of theoretical interest only. With ``kappa = 1``, one decision, one context,
    unit diameters, ``delta = .1`` and a norm bound of 3 it is 9.8 at t = 10, 8.0 at
    1,000, 2.5 at 1e5, 1.2 at 1e6 and .54 at 1e7: for about the first two million
    contexts it exceeds the diameter, and the ball contains every distribution. Even
    without the covering number (``kappa = 0``) it is 1.03 at t = 10. The paper's
    experiments use only its rate: ``InverseSquareRoot``.

    Args:
        d_x: The number of decision variables.
        d_c: The number of context variables.
        decision_diameter: :math:`D_X`, Euclidean.
        context_diameter: :math:`D_C`, Euclidean: ``sqrt(d_c)`` for the unit cube.
        norm_bound: :math:`\bar B`, which bounds norm and width (Lemma 3): the
            ``confidence_width`` at the horizon. It may be below one over ``t``, but
            not zero.
        delta: The probability of failure, between 0 and 1.
        kappa: The constant of the covering number.

    Raises:
        InputDataError: A field out of its range.

    Example:
        >>> from botorch_drbo.schedules import WassersteinCoveringRadius
        >>> radius = WassersteinCoveringRadius(1, 1, 1.0, 1.0, norm_bound=3.0)
        >>> [round(radius(t), 1) for t in (10, 1_000, 1_000_000)]
        [9.8, 8.0, 1.2]
    """

    d_x: int
    d_c: int
    decision_diameter: float
    context_diameter: float
    norm_bound: float
    delta: float = 0.1
    kappa: float = 1.0

    def __post_init__(self) -> None:
        """Check the fields."""
        set_dimension(self, "d_x")
        set_dimension(self, "d_c")
        for name in ("decision_diameter", "context_diameter", "norm_bound", "kappa"):
            set_nonnegative(self, name)
        set_probability(self, "delta")

    def at(self, t: int) -> float:
        r"""The formula of the class."""
        d = self.d_x + self.d_c
        # ln N counts at least one function, however coarse: no term is negative.
        norm = max(t * self.norm_bound, math.exp(-1.0))
        entropy = (1 + math.log(norm)) ** (1 + d) + (1 + math.log(t)) ** (1 + 2 * d)
        decisions = self.d_x * math.log(1 + 2 * t * self.decision_diameter)
        total = math.log(1 / self.delta) + decisions + self.kappa * entropy
        return self.context_diameter * math.sqrt(2 * total / t)

    def slack(self, t: int, lipschitz: float) -> float:
        r"""The slack of Lemma 7, ``(1 + 2 L B) / t``.

        It does not depend on the decision, so it changes no choice.

        Args:
            t: The number of contexts.
            lipschitz: ``L``, the Lipschitz constant of the kernel's own metric:
                one over the lengthscale for a squared exponential kernel.

        Returns:
            :math:`\rho_t`, in the units of the outcome.
        """
        return (1 + 2 * lipschitz * self.norm_bound) / t
