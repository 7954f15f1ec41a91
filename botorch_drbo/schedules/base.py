"""The base classes of rules and schedules, how they are stored, and the constant."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from numbers import Integral
from typing import final

from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo.codec.tags import storable
from botorch_drbo.contexts.forgetting import effective_size
from botorch_drbo.schedules._fields import NONNEGATIVE, nonnegative_number


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
    r"""A schedule as it is; a number as a :class:`Constant`.

    Args:
        value: A schedule, or a number that is not negative.
        name: How the user knows the number; it opens the error message.

    Returns:
        A schedule.

    Raises:
        InputDataError: Anything else.

    Example:
        >>> as_schedule(2.25)
        Constant(value=2.25)
    """
    if isinstance(value, Schedule):
        return value
    remedy = "Give a number (of a tensor, `.item()`) or a Schedule."
    return Constant(nonnegative_number(value, f"`{name}`", remedy))


def as_rule(value: float | ContextRule, name: str = "value") -> ContextRule:
    r"""A rule as it is; a number as a :class:`Constant`.

    Args:
        value: A rule, or a number that is not negative.
        name: How the user knows the number; it opens the error message.

    Returns:
        A rule.

    Raises:
        InputDataError: Anything else.

    Example:
        >>> as_rule(2.25)
        Constant(value=2.25)
    """
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
