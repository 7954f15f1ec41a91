r"""Numbers that change with the number of observed contexts: radii and betas.

A schedule maps the step ``t = 1, 2, ...`` to a number. Schedules are frozen
dataclasses: they compare by value and go through JSON (:meth:`Schedule.to_dict`,
:func:`schedule_from_dict`), so that a run can be resumed exactly.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any, TypeVar, final

from botorch.exceptions.errors import InputDataError

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


@dataclass(frozen=True)
class Schedule(ABC):
    r"""A number for each step ``t >= 1``.

    Subclasses are frozen dataclasses whose fields are numbers; they implement
    :meth:`at`, check their fields in ``__post_init__``, and are registered by
    :func:`register_schedule` so that stored runs can be read.

    Example:
        >>> schedule = InverseSquareRoot(0.3)
        >>> schedule(9)
        0.09999999999999999
    """

    @final
    def __call__(self, t: int) -> float:
        r"""The value at step ``t``.

        Args:
            t: The step: the number of contexts observed so far, at least 1.

        Returns:
            The value, a finite number that is not negative.

        Raises:
            InputDataError: ``t`` is not an integer of at least 1.
        """
        if isinstance(t, bool) or not isinstance(t, Integral) or int(t) < 1:
            raise InputDataError(
                f"`t` must be an integer of at least 1, got {t!r}. Schedules start at "
                "the first observed context."
            )
        return float(self.at(int(t)))

    @abstractmethod
    def at(self, t: int) -> float:
        r"""The formula. Users call the schedule itself, which checks ``t``."""

    @final
    def to_dict(self) -> dict[str, Any]:
        r"""The class name under ``schedule`` and the fields, ready for JSON.

        Returns:
            A dictionary that :func:`schedule_from_dict` reads.

        Example:
            >>> Constant(2.25).to_dict()
            {'schedule': 'Constant', 'value': 2.25}
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"schedule": type(self).__name__, **values}


_REGISTRY: dict[str, type[Schedule]] = {}

_S = TypeVar("_S", bound=Schedule)


def register_schedule(schedule_class: type[_S]) -> type[_S]:
    r"""Make a schedule class known to :func:`schedule_from_dict`; a class decorator.

    Args:
        schedule_class: A frozen dataclass below :class:`Schedule`.

    Returns:
        The same class.

    Raises:
        InputDataError: Another class has that name.

    Example:
        >>> @register_schedule
        ... @dataclass(frozen=True)
        ... class Halving(Schedule):
        ...     initial: float
        ...
        ...     def at(self, t: int) -> float:
        ...         return self.initial * 0.5 ** (t - 1)
        >>> schedule_from_dict(Halving(4.0).to_dict())(3)
        1.0
    """
    name = schedule_class.__name__
    known = _REGISTRY.get(name, schedule_class)
    # A notebook cell that is run twice defines its class twice: let it.
    if (known.__module__, known.__qualname__) != (
        schedule_class.__module__,
        schedule_class.__qualname__,
    ):
        raise InputDataError(
            f"A schedule named {name!r} is registered already: "
            f"{known.__module__}.{known.__qualname__}. Choose another name."
        )
    _REGISTRY[name] = schedule_class
    return schedule_class


def schedule_from_dict(data: Mapping[str, Any]) -> Schedule:
    r"""The inverse of :meth:`Schedule.to_dict`.

    Args:
        data: What ``to_dict`` returned, also after a trip through JSON.

    Returns:
        A schedule equal to the one that was stored.

    Raises:
        InputDataError: An unknown schedule, or fields that do not fit it.

    Example:
        >>> schedule_from_dict({"schedule": "InverseSquareRoot", "initial": 0.3})
        InverseSquareRoot(initial=0.3)
    """
    arguments = dict(data)
    name = arguments.pop("schedule", None)
    schedule_class = _REGISTRY.get(name) if isinstance(name, str) else None
    if schedule_class is None:
        raise InputDataError(
            f"Unknown schedule {name!r} in {dict(data)}; known are "
            f"{sorted(_REGISTRY)}. Register your own with `register_schedule`."
        )
    expected = {field.name for field in fields(schedule_class)}
    if set(arguments) != expected:
        raise InputDataError(
            f"A stored {name} needs the entries {sorted(expected)}, got "
            f"{sorted(arguments)}."
        )
    return schedule_class(**arguments)


def as_schedule(value: float | Schedule) -> Schedule:
    r"""A schedule as it is; a number as a :class:`Constant`.

    Args:
        value: A schedule, or a number that is not negative.

    Returns:
        A schedule.

    Raises:
        InputDataError: Anything else.

    Example:
        >>> as_schedule(2.25)
        Constant(value=2.25)
    """
    return value if isinstance(value, Schedule) else Constant(value)


@final
@register_schedule
@dataclass(frozen=True)
class Constant(Schedule):
    r"""The same value at every step.

    Args:
        value: The value, not negative.

    Raises:
        InputDataError: Not a number, not finite or negative.

    Example:
        >>> Constant(2.25)(100)
        2.25
    """

    value: float

    def __post_init__(self) -> None:
        """Check the fields."""
        _set_nonnegative(self, "value")

    def at(self, t: int) -> float:
        r"""The value."""
        return self.value


@final
@register_schedule
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
        >>> InverseSquareRoot(0.3)(4)
        0.15
    """

    initial: float

    def __post_init__(self) -> None:
        """Check the fields."""
        _set_nonnegative(self, "initial")

    def at(self, t: int) -> float:
        r"""The formula of the class."""
        return self.initial / math.sqrt(t)


@final
@register_schedule
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
        >>> KernelDensityRadius(d_c=4)(16)
        0.5
    """

    d_c: int
    scale: float = 1.0

    def __post_init__(self) -> None:
        """Check the fields."""
        _set_dimension(self, "d_c")
        _set_nonnegative(self, "scale")

    def at(self, t: int) -> float:
        r"""The formula of the class."""
        return self.scale * t ** (-2.0 / (4.0 + self.d_c))


@final
@register_schedule
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
        >>> round(MMDRadius(0.1)(100), 4)
        0.4146
    """

    delta: float = 0.1

    def __post_init__(self) -> None:
        """Check the fields."""
        _set_probability(self, "delta")

    def at(self, t: int) -> float:
        r"""The formula of the class."""
        return (2.0 + math.sqrt(2.0 * math.log(1.0 / self.delta))) / math.sqrt(t)


@final
@register_schedule
@dataclass(frozen=True)
class WassersteinConfidenceRadius(Schedule):
    r"""A type-1 Wasserstein radius with a proven coverage after ``t`` contexts.

    It plays the role of Lemma 7 of [Micheli2025wdrbo]_ and has its rate, but not its
    constants: those below are the ones that we can prove. For ``t`` independent
    contexts in a box of diameter ``D``, with :math:`P` their law and :math:`\hat P_t`
    the empirical distribution,

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
        >>> round(WassersteinConfidenceRadius(d_c=1, diameter=1.0)(100), 4)
        0.1073
        >>> round(WassersteinConfidenceRadius(1, 1.0, uniform=True)(100), 4)
        0.1573
    """

    d_c: int
    diameter: float
    delta: float = 0.1
    uniform: bool = False

    def __post_init__(self) -> None:
        """Check the fields."""
        _set_dimension(self, "d_c")
        _set_nonnegative(self, "diameter")
        _set_probability(self, "delta")
        if not isinstance(self.uniform, bool):
            raise InputDataError(
                f"`uniform` must be True or False, got {self.uniform!r}."
            )

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


def _set_number(schedule: Schedule, name: str) -> float:
    """Turn a field into a plain finite float, so that JSON can write it."""
    value = getattr(schedule, name)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputDataError(
            f"`{name}` of {type(schedule).__name__} must be a number, got "
            f"{type(value).__name__} {value!r}. Convert a tensor with `.item()`."
        )
    if not math.isfinite(value):
        raise InputDataError(
            f"`{name}` of {type(schedule).__name__} must be finite, got {value!r}."
        )
    number = float(value)
    object.__setattr__(schedule, name, number)  # the dataclass is frozen
    return number


def _set_nonnegative(schedule: Schedule, name: str) -> None:
    """Check that a field is a finite number that is not negative."""
    number = _set_number(schedule, name)
    if number < 0.0:
        raise InputDataError(
            f"`{name}` of {type(schedule).__name__} must not be negative, got {number}."
        )


def _set_probability(schedule: Schedule, name: str) -> None:
    """Check that a field is strictly between 0 and 1."""
    number = _set_number(schedule, name)
    if not 0.0 < number < 1.0:
        raise InputDataError(
            f"`{name}` of {type(schedule).__name__} must be strictly between 0 and 1, "
            f"got {number}."
        )


def _set_dimension(schedule: Schedule, name: str) -> None:
    """Check that a field is an integer of at least one."""
    value = getattr(schedule, name)
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise InputDataError(
            f"`{name}` of {type(schedule).__name__} must be an integer of at least 1, "
            f"got {value!r}."
        )
    object.__setattr__(schedule, name, int(value))
