"""Ax's parameters as the columns that recipes see: numbers, or their logarithms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from ax.core.parameter import (
    ChoiceParameter,
    FixedParameter,
    Parameter,
    ParameterType,
    RangeParameter,
)
from ax.core.search_space import SearchSpace
from ax.core.types import TParameterization, TParamValue
from botorch.exceptions.errors import InputDataError, UnsupportedError
from torch import Tensor

from botorch_drbo._validation import check_inside, did_you_mean
from botorch_drbo.contexts import ContextSet

_MOST_CANDIDATES = 10_000


@dataclass(frozen=True)
class Column:
    """A parameter as a number between two bounds.

    Attributes:
        name: Of the parameter.
        lower: The lowest value, in the user's units.
        upper: The highest one.
        logarithmic: Whether recipes see the logarithm: Ax says so.
        values: All values that it can take; None for all in between.
    """

    name: str
    lower: float
    upper: float
    logarithmic: bool
    values: tuple[TParamValue, ...] | None

    @classmethod
    def of(cls, parameter: Parameter) -> Column:
        """Read a parameter, or say why it is none that recipes can see."""
        name = parameter.name
        if parameter.is_fidelity or parameter.is_hierarchical:
            kind = "a fidelity" if parameter.is_fidelity else "hierarchical"
            raise _refused(name, f"is {kind}")
        if isinstance(parameter, RangeParameter):
            if parameter.logit_scale:
                raise _refused(name, "is on a logit scale")
            lower, upper = parameter.lower, parameter.upper
            values = None
            if parameter.parameter_type is ParameterType.INT:
                values = tuple(range(int(lower), int(upper) + 1))
            return cls(
                name, float(lower), float(upper), bool(parameter.log_scale), values
            )
        if not isinstance(parameter, ChoiceParameter):
            raise _refused(name, f"is a {type(parameter).__name__}")
        if parameter.is_task:
            raise _refused(name, "is a task")
        numbers: list[float] = [
            value
            for value in parameter.values
            if isinstance(value, (int, float)) and not isinstance(value, bool)
        ]
        if len(numbers) < len(parameter.values) or not parameter.is_ordered:
            raise _refused(
                name,
                f"is a choice among {parameter.values}, which have no order: as "
                "numbers they would be given one in silence",
            )
        return cls(
            name,
            float(min(numbers)),
            float(max(numbers)),
            bool(parameter.log_scale),
            tuple(numbers),
        )

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest number that recipes see."""
        return self.encode(self.lower), self.encode(self.upper)

    def encode(self, value: Any) -> float:
        """From the user's value to the number that recipes see."""
        return math.log(value) if self.logarithmic else float(value)

    def decode(self, number: float) -> TParamValue:
        """The inverse; the nearest value that the parameter can take."""
        if self.values is not None:
            return min(self.values, key=lambda v: abs(self.encode(v) - number))
        value = math.exp(number) if self.logarithmic else number
        return min(max(value, self.lower), self.upper)


@dataclass(frozen=True)
class Columns:
    """The decisions, the contexts, and what stays as it is.

    Attributes:
        decisions: What is chosen.
        contexts: What the world shows.
        fixed: Parameters that Ax holds at one value.
    """

    decisions: tuple[Column, ...]
    contexts: tuple[Column, ...]
    fixed: TParameterization

    @classmethod
    def of(cls, space: SearchSpace, context_names: Sequence[str]) -> Columns:
        """Read Ax's search space, or say what recipes cannot do with it.

        Args:
            space: The search space.
            context_names: Which of its parameters are contexts, in their order.

        Raises:
            InputDataError: There is no such parameter, or no decision is left.
            UnsupportedError: A parameter of another kind, or a constraint.
        """
        parameters = dict(space.parameters)
        for name in context_names:
            if name not in parameters:
                raise InputDataError(
                    f"There is no parameter {name!r} for the context."
                    f"{did_you_mean(name, parameters)} The experiment has "
                    f"{list(parameters)}: a context is a parameter of the experiment, "
                    "with bounds."
                )
        if space.parameter_constraints:
            raise UnsupportedError(
                f"The experiment has parameter constraints "
                f"({[str(c) for c in space.parameter_constraints]}), which the recipes "
                "here would not keep. Leave them out, or choose other bounds."
            )
        contexts = tuple(Column.of(parameters.pop(name)) for name in context_names)
        fixed: TParameterization = {
            name: p.value
            for name, p in parameters.items()
            if isinstance(p, FixedParameter)
        }
        decisions = tuple(
            Column.of(p) for name, p in parameters.items() if name not in fixed
        )
        if not decisions:
            raise InputDataError(
                f"Every parameter of the experiment is a context or fixed "
                f"({list(context_names)}, {list(fixed)}): none is left to decide."
            )
        return cls(decisions, contexts, fixed)

    def candidates(self) -> Tensor | None:
        """All decisions, ``m x d_x``, if they can be counted; None for a box."""
        kinds = [column.values for column in self.decisions]
        if all(values is None for values in kinds):
            return None
        whole = [c.name for c in self.decisions if c.values is not None]
        if len(whole) < len(kinds):
            others = [c.name for c in self.decisions if c.values is None]
            raise UnsupportedError(
                f"The decisions {whole} take some values only and {others} take all in "
                "between. The recipes choose from a box, or from a list of decisions: "
                f"make {others} ordered choices, or let {whole} take all values."
            )
        num = math.prod(len(values) for values in kinds if values is not None)
        if num > _MOST_CANDIDATES:
            raise UnsupportedError(
                f"There are {num} decisions to choose from, more than "
                f"{_MOST_CANDIDATES}. Let {whole} take fewer values, or all in between."
            )
        numbers = [[c.encode(v) for v in c.values or ()] for c in self.decisions]
        return torch.tensor(list(product(*numbers)), dtype=torch.double)

    def reference(self, given: ContextSet) -> ContextSet:
        """A distribution in the user's units, as recipes see it."""
        sides = [(column.lower, column.upper) for column in self.contexts]
        box = torch.tensor(sides, dtype=torch.double).mT
        points = check_inside(given.points, box, "reference", "bounds of the context")
        columns = [
            points[:, j].clamp(column.lower, column.upper).log()
            if column.logarithmic
            else points[:, j]
            for j, column in enumerate(self.contexts)
        ]
        return ContextSet(torch.stack(columns, dim=-1), given.weights)

    def known(self, values: Mapping[str, Any]) -> Tensor | None:
        """What is known of the context, ``d_c``, NaN where it is not."""
        for name in values:
            if name not in [column.name for column in self.contexts]:
                raise UnsupportedError(
                    f"{name!r} cannot be held fixed: it is no context, and a recipe "
                    "chooses all of the decision. Only contexts can be known before: "
                    f"{[column.name for column in self.contexts]}."
                )
        if not values:
            return None
        row = encode(self.contexts, values)
        numbers = [math.nan if number is None else number for number in row]
        return torch.tensor(numbers, dtype=torch.double)


def bounds_of(columns: Sequence[Column]) -> Tensor:
    """Their bounds as recipes see them, ``2 x d``."""
    sides = [column.bounds for column in columns]
    return torch.tensor(sides, dtype=torch.double).mT.contiguous()


def encode(columns: Sequence[Column], values: Mapping[str, Any]) -> list[float | None]:
    """The user's values as recipes see them; None where there is none."""
    given = [values.get(column.name) for column in columns]
    pairs = zip(columns, given, strict=True)
    return [None if value is None else column.encode(value) for column, value in pairs]


def decode(columns: Sequence[Column], numbers: Tensor) -> TParameterization:
    """A row of ``d`` numbers in the user's values."""
    pairs = zip(columns, numbers.tolist(), strict=True)
    return {column.name: column.decode(number) for column, number in pairs}


def _refused(name: str, why: str) -> UnsupportedError:
    return UnsupportedError(
        f"The parameter {name!r} {why}. Recipes see numbers between bounds, on a "
        "linear or logarithmic scale: a RangeParameterConfig, or a "
        "ChoiceParameterConfig of ordered numbers."
    )
