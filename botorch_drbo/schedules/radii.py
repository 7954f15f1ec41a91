"""Radii of ambiguity sets that shrink with the number of observed contexts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import final

from botorch_drbo._validation import check_flag
from botorch_drbo.schedules._fields import DIMENSION, NONNEGATIVE, PROBABILITY
from botorch_drbo.schedules.base import Schedule


@final
@dataclass(frozen=True)
class InverseSquareRoot(Schedule):
    r"""The radius ``initial / sqrt(t)`` of data-driven WDRBO [Micheli2025wdrbo]_.

    The rate at which a confidence radius for one Lipschitz function shrinks, with a
    free constant. The experiments of the paper use 0.3.

    Args:
        initial: The value at ``t = 1``, not negative, in the units of the radius.

    Raises:
        InputDataError: Not a number, not finite or negative.

    Example:
        >>> from botorch_drbo.schedules import InverseSquareRoot
        >>> InverseSquareRoot(0.3)(4)
        0.15
    """

    initial: float = field(metadata=NONNEGATIVE)

    def at(self, t: int) -> float:
        r"""The formula of the class."""
        return self.initial / math.sqrt(t)


@final
@dataclass(frozen=True)
class KernelDensityRadius(Schedule):
    r"""The radius ``scale * t^(-2 / (4 + d_c))`` of DRBO-KDE [Huang2024sbokde]_.

    The rate at which a kernel density estimate with Silverman's bandwidth approaches
    a smooth density in total variation.

    Args:
        d_c: The number of context dimensions.
        scale: The value at ``t = 1``, not negative. The radius bounds the full L1
            distance, which is at most 2.

    Raises:
        InputDataError: ``d_c`` not an integer of at least 1, or a bad ``scale``.

    Example:
        >>> from botorch_drbo.schedules import KernelDensityRadius
        >>> KernelDensityRadius(d_c=4)(16)
        0.5
    """

    d_c: int = field(metadata=DIMENSION)
    scale: float = field(default=1.0, metadata=NONNEGATIVE)

    def at(self, t: int) -> float:
        r"""The formula of the class."""
        return self.scale * t ** (-2.0 / (4.0 + self.d_c))


@final
@dataclass(frozen=True)
class MMDRadius(Schedule):
    r"""The radius of DRBO-MMD in the data-driven setting [Kirschner2020drbo]_.

    .. math:: \epsilon_t = \frac{2 + \sqrt{2 \log(1 / \delta)}}{\sqrt t}

    With probability ``1 - delta`` at a given ``t`` it covers the maximum mean
    discrepancy between ``t`` independent contexts and their law, if the kernel is at
    most 1.

    Args:
        delta: The probability of failure, between 0 and 1.

    Raises:
        InputDataError: ``delta`` not strictly between 0 and 1.

    Example:
        >>> from botorch_drbo.schedules import MMDRadius
        >>> round(MMDRadius(0.1)(100), 4)
        0.4146
    """

    delta: float = field(default=0.1, metadata=PROBABILITY)

    def at(self, t: int) -> float:
        r"""The formula of the class."""
        return (2.0 + math.sqrt(2.0 * math.log(1.0 / self.delta))) / math.sqrt(t)


@final
@dataclass(frozen=True)
class WassersteinConfidenceRadius(Schedule):
    r"""A type-1 Wasserstein radius with a proven coverage after ``t`` contexts.

    It has the rate of Lemma 7 of [Micheli2025wdrbo]_, but not its constants: the
    constants below are proved here. For ``t`` independent contexts in a box of diameter
    ``D``, with :math:`P` their law and :math:`\hat P_t` the empirical distribution,

    .. math:: \epsilon_t = \min\Big(D, \; D \sqrt{\frac{\log(1 / \delta)}{2 t}}
        + [\mathrm{uniform}] \, m_t\Big).

    ``uniform=False``: for *one* function ``f`` with Lipschitz constant ``L``, chosen
    before the contexts are seen, :math:`E_P f \ge E_{\hat P_t} f - \epsilon_t L` with
    probability ``1 - delta`` (Hoeffding: ``f`` has a range of at most ``L D``). The
    dimension does not matter.

    ``uniform=True``: :math:`W_1(\hat P_t, P) \le \epsilon_t` with probability
    ``1 - delta``, so the bound holds for all Lipschitz functions at once, also for one
    chosen after the contexts are seen (bounded differences: one context moves
    :math:`W_1` by at most ``D / t``). Here :math:`m_t \ge E W_1(\hat P_t, P)` is

    .. math:: m_t = \frac{D}{2 \sqrt t} \ (d_c = 1), \qquad m_t = D \min_{k^* \ge 0}
        \Big[2^{-k^*} + \sum_{k=1}^{k^*} 2^{-(k-1)} \sqrt{2^{k d_c} / t}\Big]
        \ (d_c \ge 2),

    the second by halving every side of the box ``k*`` times [WeedBach2019]_. It shrinks
    as ``t^(-1 / d_c)`` for ``d_c >= 3`` and is conservative.

    Both statements are one-sided, for a given ``t``, and not for all ``t`` at once.

    Args:
        d_c: The number of context dimensions; without effect unless ``uniform``.
        diameter: The diameter ``D`` of the box in the ground metric of the ambiguity
            set: ``sqrt(d_c)`` for contexts normalised to the unit cube.
        delta: The probability of failure, between 0 and 1.
        uniform: Whether to cover all Lipschitz functions at once.

    Raises:
        InputDataError: A field out of its range.

    Example:
        >>> from botorch_drbo.schedules import WassersteinConfidenceRadius
        >>> round(WassersteinConfidenceRadius(d_c=1, diameter=1.0)(100), 4)
        0.1073
        >>> round(WassersteinConfidenceRadius(1, 1.0, uniform=True)(100), 4)
        0.1573
    """

    d_c: int = field(metadata=DIMENSION)
    diameter: float = field(metadata=NONNEGATIVE)
    delta: float = field(default=0.1, metadata=PROBABILITY)
    uniform: bool = False

    def __post_init__(self) -> None:
        """The numbers, and the flag."""
        super().__post_init__()
        check_flag(self.uniform, "uniform")

    def at(self, t: int) -> float:
        r"""The formula of the class."""
        relative = math.sqrt(math.log(1.0 / self.delta) / (2.0 * t))
        if self.uniform:
            relative += _mean_wasserstein_bound(self.d_c, t)
        # No two distributions on the box are further apart than its diameter.
        return self.diameter * min(1.0, relative)


def _mean_wasserstein_bound(d_c: int, t: int) -> float:
    """Return the bound on ``E W1(P_hat_t, P)`` in diameters."""
    if d_c == 1:
        return 0.5 / math.sqrt(t)
    # Going from k - 1 to k halvings gains 2^-k and costs 2^-(k-1) sqrt(2^(k d_c) / t).
    # That pays while 2^(k d_c) < t / 4, and never again after: the minimum is global.
    bound, k = 1.0, 1
    while 4 * 2 ** (k * d_c) < t:
        bound += 2.0 ** -(k - 1) * math.sqrt(2 ** (k * d_c) / t) - 2.0**-k
        k += 1
    return bound
