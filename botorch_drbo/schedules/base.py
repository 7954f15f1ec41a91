"""What rules and schedules are, how they are stored, and the one that never changes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, TypeVar, final

from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo.contexts.forgetting import effective_size
from botorch_drbo.schedules._fields import nonnegative_number, set_nonnegative


@dataclass(frozen=True)
class Rule(ABC):  # noqa: B024 (what each is a rule of, its subclasses say)
    r"""How a number follows from what has been seen, compared and stored by value.

    Subclasses are frozen dataclasses whose fields are numbers, registered by
    :func:`register_schedule`. A :class:`Schedule` looks at the number of observations
    only, a :class:`ContextRule` at the contexts.
    """

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


@dataclass(frozen=True)
class ContextRule(Rule):
    r"""A number that follows from the contexts seen, such as a radius."""

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
    :meth:`at`, check their fields in ``__post_init__``, and are registered by
    :func:`register_schedule` so that stored runs can be read.

    Example:
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
        r"""The value at the step of so many contexts, wherever they lie.

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


_REGISTRY: dict[str, type[Rule]] = {}

_R = TypeVar("_R", bound=Rule)


def register_schedule(schedule_class: type[_R]) -> type[_R]:
    r"""Make a rule's class known to :func:`schedule_from_dict`; a class decorator.

    Args:
        schedule_class: A frozen dataclass below :class:`Rule`.

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


def schedule_from_dict(data: Mapping[str, Any]) -> Rule:
    r"""The inverse of :meth:`Rule.to_dict`.

    Args:
        data: What ``to_dict`` returned, also after a trip through JSON.

    Returns:
        A rule equal to the one that was stored.

    Raises:
        InputDataError: An unknown schedule, or fields that do not fit it.

    Example:
        >>> schedule_from_dict({"schedule": "Constant", "value": 0.3})
        Constant(value=0.3)
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
        set_nonnegative(self, "value")

    def at(self, t: int) -> float:
        r"""The value."""
        return self.value
