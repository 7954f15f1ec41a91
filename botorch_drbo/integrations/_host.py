"""What every host needs: its trials as a run, decisions by name, scales."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from threading import Lock
from typing import Any, ClassVar, Literal, final

import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning
from torch import Tensor

from botorch_drbo._validation import did_you_mean
from botorch_drbo.optimizer.configuration import Configuration
from botorch_drbo.optimizer.decisions import next_decisions, recommended
from botorch_drbo.optimizer.events import as_algorithm, check_can_be_modelled
from botorch_drbo.optimizer.ledger import Ledger
from botorch_drbo.optimizer.run import Run
from botorch_drbo.optimizer.trials import Trial
from botorch_drbo.problem import Round
from botorch_drbo.recipes import Recipe
from botorch_drbo.space import (
    Category,
    Integer,
    NamedRecommendation,
    Ordinal,
    Space,
    Variable,
)
from botorch_drbo.space.variables import Cell, finite_numbers

# GPyTorch's settings and torch's default dtype belong to the process, not to a thread.
ONE_AT_A_TIME = Lock()

Outside = Literal["raise", "skip", "clip"]
"""What to do with a trial that cannot be used.

Its context is missing, not a number or outside its range, its outcome is not a finite
number, or its decision is outside the bounds. "raise" raises an error. "skip" warns and
counts it as failed. "clip" does the same, but replaces a context beyond its range by
the nearest bound.
"""

_DIRECTIONS = ("minimize", "minimise", "maximize", "maximise")


@final
@dataclass(frozen=True, eq=False, repr=False)
class RobustDecision:
    r"""The decision to implement now, by its names, and what to expect of it.

    Attributes:
        params: The decision, in your units.
        details: Expected and worst-case value in your sign, and the contexts of the
            worst case, in your units. See ``Recommendation`` for what they are.
    """

    params: Mapping[str, Any]
    details: NamedRecommendation

    @property
    def expected_value(self) -> float:
        """The expectation over the contexts seen, or over the reference."""
        return self.details.expected_value

    @property
    def worst_case_value(self) -> float:
        """The expectation under the worst distribution in the recipe's ambiguity
        set."""
        return self.details.worst_case_value

    @property
    def expected_interval(self) -> tuple[float, float] | None:
        """Of the expected value, of level ``details.level``, in your sign and units."""
        return self.details.expected_interval

    @property
    def worst_case_interval(self) -> tuple[float, float] | None:
        """The same of the worst-case value."""
        return self.details.worst_case_interval

    def __str__(self) -> str:
        """The decision, its values, what hurts it, in about six lines."""
        return str(self.details)

    def __repr__(self) -> str:
        """The decision and its values, on one line."""
        return (
            f"RobustDecision(params={dict(self.params)}, "
            f"expected_value={self.expected_value:.6g}, "
            f"worst_case_value={self.worst_case_value:.6g})"
        )


def recipe(
    algorithm: str | Recipe, options: dict[str, Any], arguments: Sequence[str]
) -> Recipe:
    """A recipe by name and options, or a ready-made one."""
    for name in _DIRECTIONS:
        if name in options:
            raise InputDataError(
                f"`{name}` is no option here: the host's own problem says whether low "
                "or high outcomes are good."
            )
    return as_algorithm(algorithm, options, arguments)


def check_outside(outside: object) -> None:
    """Raise an error unless it is one of the values of ``Outside``."""
    if outside not in ("raise", "skip", "clip"):
        raise InputDataError(
            f"`outside` must be 'raise', 'skip' or 'clip', got {outside!r}."
        )


@final
@dataclass(frozen=True)
class OutsideRule:
    """What to do with a trial that cannot be used.

    The host's trials are read again at each call, so each warning is given only once.
    """

    # The user's choice.
    outside: Outside
    # The warnings that were already given.
    said: set[str] = field(default_factory=set)

    def refuse_or_warn(self, error: InputDataError, instead: str) -> None:
        """Raise the error, or warn and state what is done instead."""
        if self.outside == "raise":
            raise error
        message = f"{error} {instead}"
        if message not in self.said:
            self.said.add(message)
            warnings.warn(message, InputDataWarning, stacklevel=2)

    @property
    def of_decisions(self) -> OutsideRule:
        """The rule for decisions, which are never clipped: the outcome belongs to the
        decision that was executed."""
        return self if self.outside == "raise" else OutsideRule("skip", self.said)


STRICT = OutsideRule("raise")


@final
@dataclass(frozen=True)
class Reader:
    """Reads the trials of a host."""

    # The columns of a decision.
    decisions: Mapping[str, Variable]
    # Those of a context.
    contexts: Mapping[str, Variable]
    # What to do with a trial that cannot be used.
    rule: OutsideRule

    def context(self, values: Mapping[str, object], owner: str) -> Tensor:
        """What is known of a context, ``d_c``; NaN where it is of no use."""
        return encode(values, self.contexts, owner, self.rule)

    def trial(
        self,
        number: int,
        owner: str,
        decision: Mapping[str, object],
        context: Mapping[str, object],
        value: object,
        *,
        remedy: str,
        pending: bool = False,
    ) -> Trial:
        """One trial; without its outcome if that is of no use."""
        x = encode(decision, self.decisions, owner, self.rule.of_decisions)
        c = self.context(context, owner)
        y = None
        if value is not None:
            try:
                y = self._outcome(value, owner, decision, context, remedy)
            except InputDataError as error:
                self.rule.refuse_or_warn(error, FAILED)
        usable, seen = not x.isnan().any(), not c.isnan().any()
        y = y if usable and seen else None
        pending = pending and usable
        return Trial(
            number=number,
            x=x,
            c=c if seen else None,
            y=y,
            status="pending" if pending else "failed" if y is None else "complete",
            known_context=None if seen else known(c),
        )

    def _outcome(
        self,
        value: object,
        owner: str,
        decision: Mapping[str, object],
        context: Mapping[str, object],
        remedy: str,
    ) -> float:
        names = [n for n in self.decisions if n not in decision]
        names += [n for n in self.contexts if n not in context]
        if names:
            raise InputDataError(
                f"The outcome of {owner} has no {names}: an outcome belongs to a "
                f"decision and a context. {remedy}"
            )
        return outcome(value, f"the outcome of {owner}")


FAILED = (
    "As long as this stands the trial counts as failed. With `outside='raise'` it is "
    "an error."
)


def known(context: Tensor) -> Tensor | None:
    """A context that is known in some column, ``d_c``; None if it is in none."""
    return None if context.isnan().all() else context


def run_of(configuration: Configuration, trials: Sequence[Trial], asked: int) -> Run:
    """The run that has had these trials."""
    run = Run(configuration)
    run.ledger = Ledger(configuration.space, trials, num_asked=asked)
    return run


def decisions(run: Run, q: int, this_round: Round) -> Tensor:
    """The next ``q x d_x``."""
    this_round = this_round.within(run.configuration.space)
    x, _ = next_decisions(run, q, None, this_round, choose_context=False)
    return x


def recommendation(
    run: Run, space: Space, this_round: Round
) -> tuple[Tensor, NamedRecommendation]:
    """The decision to implement now: as the model sees it, ``d_x``, and by name."""
    best = recommended(run, None, this_round.within(run.configuration.space))
    return best.x, NamedRecommendation.of(best, space)


def encode(
    values: Mapping[str, object],
    variables: Mapping[str, Variable],
    owner: str,
    rule: OutsideRule = STRICT,
) -> Tensor:
    """What a model sees of named values, ``d``; NaN where there is none of use."""
    numbers = torch.full((len(variables),), torch.nan, dtype=torch.double)
    for j, (name, variable) in enumerate(variables.items()):
        if name not in values:
            continue
        value, cell = values[name], f"{name!r} of {owner}"
        try:
            numbers[j] = variable.encode([value], lambda _, c=cell: c)[0]
        except InputDataError as error:
            end = _end_of_range(value, variable) if rule.outside == "clip" else None
            if end is None:
                rule.refuse_or_warn(error, FAILED)
            else:
                numbers[j] = end
                (taken,) = variable.decode(numbers[j : j + 1])
                rule.refuse_or_warn(error, f"It is taken as {taken:g}.")
    return numbers


def _end_of_range(value: object, variable: Variable) -> float | None:
    """What a model sees of the end that a number lies beyond; None if it does not."""
    if isinstance(variable, Category) or not isinstance(value, Real):
        return None
    number = float(value)
    if isinstance(value, bool) or not math.isfinite(number):
        return None
    low, high = variable.bounds
    lower, upper = variable.decode(torch.tensor([low, high], dtype=torch.double))
    return low if number < lower else high if number > upper else None


def outcome(value: object, what: str) -> float:
    """A finite number that a model can take, or an error that names ``what``."""
    number = finite_numbers([value], lambda _: what)
    check_can_be_modelled(number, number.dtype, name=what)
    return number.item()


def as_plain(value: Any) -> Any:
    """A number of NumPy or torch as one of Python; everything else as it is."""
    return value.item() if hasattr(value, "item") else value


def own_name(value: Any, choices: Mapping[Any, object]) -> Any:
    """What we call a host's choice, ``choices`` being theirs by our names."""
    for own, choice in choices.items():
        if choice == value:  # also 1 for True, 16.0 for 16
            return own
    return value


def check_names(
    given: Mapping[str, object], names: Sequence[str], what: str, *, all_of_them: bool
) -> None:
    """Refuse unknown names, and missing ones if ``all_of_them`` are needed."""
    if not isinstance(given, Mapping):
        raise InputDataError(
            f"The {what}s must be a dictionary with the names {list(names)}, got "
            f"{given!r}."
        )
    for name in given:
        if name not in names:
            raise InputDataError(
                f"There is no {what} {name!r}.{did_you_mean(name, names)} They are "
                f"{list(names)}."
            )
    missing = [name for name in names if name not in given]
    if all_of_them and missing:
        raise InputDataError(f"The {what}s {missing} are missing. Give each a value.")


_MOST = 1000  # values that are searched one by one


@final
@dataclass(frozen=True)
class Logarithmic(Variable):
    r"""Positive numbers, of which a model sees the logarithm.

    Of more than a thousand whole numbers the search goes over all numbers between, and
    what it finds is rounded.

    Args:
        plain: The numbers themselves.

    Example:
        >>> sizes = Logarithmic(Ordinal([1, 10, 100]))
        >>> sizes.encode([100], str) / sizes.encode([10], str)
        tensor([2.], dtype=torch.float64)
    """

    logarithmic: ClassVar[bool] = True

    plain: Integer | Ordinal

    @property
    def bounds(self) -> tuple[float, float]:
        """The logarithms of the bounds."""
        lower, upper = self.plain.bounds
        return math.log(lower), math.log(upper)

    @property
    def values(self) -> tuple[float, ...] | None:
        """The logarithm of each number; None where there are very many."""
        plain = self.plain
        if isinstance(plain, Integer) and plain.upper - plain.lower >= _MOST:
            return None
        return tuple(map(math.log, plain.values))

    def encode(self, column: Sequence[object], cell: Cell) -> Tensor:
        """The logarithms."""
        numbers = self.plain.encode(column, cell).tolist()
        return torch.tensor([math.log(n) for n in numbers], dtype=torch.double)

    def decode(self, numbers: Tensor) -> list[Any]:
        """The numbers nearest to what a model has found."""
        lower, upper = self.plain.bounds
        found = numbers.exp().clamp(lower, upper)
        if isinstance(self.plain, Integer):
            return self.plain.decode(found)
        choices = found.new_tensor(self.plain.choices)
        nearest = choices[(found.unsqueeze(-1) - choices).abs().argmin(-1)]
        return self.plain.decode(torch.where(found.isnan(), found, nearest))
