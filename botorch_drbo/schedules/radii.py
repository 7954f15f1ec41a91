"""Radii of ambiguity sets: constant, shrinking, and as users state them.

A field declares its check beside it: ``scale: float = field(metadata=NONNEGATIVE)``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TypeAlias, final

from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo._validation import (
    check_count,
    check_flag,
    check_level,
    did_you_mean,
    nonnegative_number,
)
from botorch_drbo.codec.objects import storable
from botorch_drbo.contexts.sources import effective_size, weighted_variance
from botorch_drbo.problem.round import ColumnRadii, checked

_Check = Callable[[object, str], float]
NONNEGATIVE: dict[str, _Check] = {"check": nonnegative_number}
PROBABILITY: dict[str, _Check] = {"check": check_level}
DIMENSION: dict[str, _Check] = {"check": check_count}


@storable
@dataclass(frozen=True)
class Rule(ABC):  # noqa: B024 (what each is a rule of, its subclasses say)
    r"""How a number follows from what has been seen, compared and stored by value.

    Subclasses are frozen dataclasses whose fields are numbers. A :class:`Schedule`
    looks at the number of observations only, a :class:`ContextRule` at the contexts.
    """


@dataclass(frozen=True)
class ContextRule(Rule):
    r"""A number that follows from the contexts seen, such as a radius."""

    def __post_init__(self) -> None:
        """Turn each field into what the check that is declared beside it returns."""
        for each in fields(self):
            if check := each.metadata.get("check"):
                label = f"`{each.name}` of {type(self).__name__}"
                checked = check(getattr(self, each.name), label)
                object.__setattr__(self, each.name, checked)  # the dataclass is frozen

    @abstractmethod
    def of(self, contexts: Tensor, weights: Tensor | None = None) -> float:
        r"""The number.

        Args:
            contexts: The contexts seen, in units of the context box, ``t x d_c`` with
                ``t >= 1``.
            weights: By how much each counts, ``t``, summing to one, where old contexts
                are forgotten; None for equal weights.

        Returns:
            A finite number that is not negative.
        """


@dataclass(frozen=True)
class Schedule(ContextRule):
    r"""A number for each step ``t >= 1``.

    Subclasses are frozen dataclasses whose fields are numbers; they implement
    :meth:`at` and check their fields in ``__post_init__``. A stored run restores it by
    its module and class name.

    Example:
        >>> from botorch_drbo.schedules import Constant
        >>> schedule = Constant(2.25)
        >>> schedule(9)
        2.25
    """

    @final
    def __call__(self, t: int) -> float:
        """The value at step ``t``."""
        return float(self.at(check_count(t, "t")))

    @final
    def of(self, contexts: Tensor, weights: Tensor | None = None) -> float:
        r"""The value for a number of contexts, whatever their positions.

        Args:
            contexts: The contexts seen, ``t x d_c``.
            weights: By how much each counts, ``t``: the step is then the effective
                sample size, ``1 / sum_i p_i^2``, rounded.

        Returns:
            The value.
        """
        size = len(contexts) if weights is None else round(effective_size(weights))
        return self(size)

    @abstractmethod
    def at(self, t: int) -> float:
        r"""The formula. Users call the schedule itself, which checks ``t``."""


def as_schedule(value: float | Schedule, name: str = "value") -> Schedule:
    """A schedule as it is; a number as a :class:`Constant`."""
    if isinstance(value, Schedule):
        return value
    remedy = " Give a number (of a tensor, `.item()`) or a Schedule."
    return Constant(nonnegative_number(value, name, remedy))


def as_rule(value: float | ContextRule, name: str = "value") -> ContextRule:
    """A rule as it is; a number as a :class:`Constant`."""
    return value if isinstance(value, ContextRule) else as_schedule(value, name)


@final
@dataclass(frozen=True)
class Constant(Schedule):
    r"""The same value at every step.

    Args:
        value: The value, not negative.

    Raises:
        InputDataError: Not a number, not finite or negative.

    Example:
        >>> from botorch_drbo.schedules import Constant
        >>> Constant(2.25)(100)
        2.25
    """

    value: float = field(metadata=NONNEGATIVE)

    def at(self, t: int) -> float:
        r"""The value."""
        return self.value


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


@final
@dataclass(frozen=True)
class SpreadRadius(ContextRule):
    r"""A Wasserstein radius proportional to the spread of the observed contexts.

    .. math:: \epsilon_t = a \sqrt{\frac{\operatorname{tr} \hat\Sigma_t}{t}}

    with :math:`\hat\Sigma_t` the covariance (divisor ``t - 1``) of the ``t`` contexts,
    in units of the context box; ``a`` is ``scale``. Two reasons for ``a = 1.25``:

    - *The distance of the data from their law.* In one dimension
      :math:`\sqrt t \, E W_1(\hat P_t, P) \to
      \sqrt{2 / \pi} \int \sqrt{F (1 - F)}`, which is 1.29 standard deviations for a
      normal law and 1.09 for a uniform one. (In more dimensions :math:`W_1` itself
      shrinks more slowly.)
    - *One function.* For one Lipschitz function of constant ``L``, the variance is at
      most :math:`L^2 \operatorname{tr} \Sigma` in any dimension: by the central limit
      theorem its mean over the data exceeds its true mean by more than
      :math:`\epsilon_t L` with a probability of at most 10.6 %.

    A radius that ignores the spread, such as ``0.3 / sqrt(t)`` in the experiments of
    [Micheli2025wdrbo]_, suits only one spread (about .24 of the box), and depends on
    how wide ``context_bounds`` were chosen; this one does not. It is a rule of thumb,
    not a bound; for a bound see ``WassersteinConfidenceRadius``.

    If old contexts have lower weights, the variance is weighted, and the effective
    sample size :math:`1 / \sum_i p_i^2` replaces ``t``.

    A single context has no spread; the largest possible spread in the box is used,
    :math:`\operatorname{tr} \Sigma = d_c / 4`.

    Args:
        scale: ``a``, not negative.

    Raises:
        InputDataError: Not a number, not finite or negative.

    Example:
        >>> import torch
        >>> from botorch_drbo.schedules import SpreadRadius
        >>> round(SpreadRadius().of(torch.tensor([[0.2], [0.4], [0.6], [0.8]])), 4)
        0.1614
    """

    scale: float = field(default=1.25, metadata=NONNEGATIVE)

    def of(self, contexts: Tensor, weights: Tensor | None = None) -> float:
        r"""The formula of the class.

        Args:
            contexts: The contexts seen, in units of the context box, ``t x d_c``.
            weights: By how much each counts, ``t``, summing to one.

        Returns:
            The radius, in the same units.
        """
        trace, size = _trace_and_size(contexts, weights, 0.25 * contexts.shape[1])
        return self.scale * math.sqrt(trace / size)


def deviations(
    contexts: Tensor, weights: Tensor | None, sizes: Sequence[int]
) -> Tensor:
    r"""The standard deviation of each column of the contexts seen.

    .. math:: r_j = \sqrt{\operatorname{tr} \hat\Sigma_j}

    with :math:`\hat\Sigma_j` the covariance of the entries that stand for the column
    ``j``: one for a number, and as many as there are categories for one of these. Of
    one context alone it counts as the widest, one half.

    Shapes: ``contexts``: ``t x e``.
    """
    parts = contexts.split(list(sizes), dim=-1)
    traces = [_trace_and_size(part, weights, 0.25)[0] for part in parts]
    return contexts.new_tensor(traces).sqrt()


def _trace_and_size(
    contexts: Tensor, weights: Tensor | None, unknown: float
) -> tuple[float, float]:
    """The trace of the covariance, and the effective number of contexts."""
    t = len(contexts)
    if weights is None:
        return (contexts.double().var(0).sum().item() if t > 1 else unknown), t
    size = effective_size(weights)
    known = size > 1.0 + 1e-9  # else one context has all the weight
    trace = weighted_variance(contexts, weights).sum().item()
    return (trace if known else unknown), size


RADII: dict[str, ContextRule] = {"spread": SpreadRadius(), "sd": Constant(1.0)}
"""Radii by name, of sets that measure how far contexts move.

``"sd"`` is a radius by column, the standard deviation of the contexts seen in each."""

Radius: TypeAlias = ContextRule | float | str | ColumnRadii
"""What the radius of a Wasserstein ball may be."""

# A test compares it with the registry.
TAKE_COLUMNS = ("wdrbo", "wdrbo_exact", "ec_wdrbo", "ts_wdrbo", "ei_wdrbo")
"""The recipes whose radius is a distance between contexts."""


def as_radius(value: Radius, name: str = "radius") -> ContextRule:
    """The rule of a radius that is a distance between contexts."""
    if isinstance(value, Mapping):
        checked(value, name)
        return Constant(1.0)
    if isinstance(value, str):
        if value not in RADII:
            raise InputDataError(
                f"`{name}` must be a number, one of {sorted(RADII)}, or a radius for "
                "each column in its own units, such as {'temp': 6}, got "
                f"{value!r}.{did_you_mean(value, RADII)}"
            )
        return RADII[value]
    return as_rule(value, name)


def as_size(
    value: Schedule | float | str | ColumnRadii, name: str = "radius"
) -> Schedule:
    """The schedule of a radius that is no distance between contexts."""
    if isinstance(value, (str, Mapping)):
        raise InputDataError(
            f"`{name}` must be a number or a Schedule here, got {value!r}: the radius "
            "of this ambiguity set is no distance between contexts, and has not their "
            "units. Recipes that take a radius by column or by name are "
            f"{', '.join(f'`{recipe}`' for recipe in TAKE_COLUMNS)}; by column also "
            "`dro` with `ambiguity_set=Wasserstein(0.0)`."
        )
    return as_schedule(value, name)
