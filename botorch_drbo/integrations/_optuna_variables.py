"""Optuna's distributions as variables of a space."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from torch import Tensor

from botorch_drbo.integrations._host import encode
from botorch_drbo.space import Category, Continuous, Integer, Log, Ordinal, Variable
from botorch_drbo.space.variables import Cell


@final
class Columns:
    r"""A decision or a context of a study: its distributions, and their variables.

    Args:
        given: For each name its distribution.
        what: What the user calls them, "search_space" or "contexts".

    Raises:
        InputDataError: No dictionary, an empty one, or a distribution of one value.
        UnsupportedError: Something else than Optuna's distributions.
    """

    def __init__(self, given: Mapping[str, BaseDistribution], what: str) -> None:
        if not isinstance(given, Mapping) or not given:
            raise InputDataError(
                f"`{what}` must be a dictionary from names to Optuna distributions, "
                f"with at least one entry, got {given!r}."
            )
        self.names = list(given)
        self._given = dict(given)
        self.variables = {
            name: _variable(values, f"`{what}` has {name!r}")
            for name, values in given.items()
        }

    def row(self, values: Mapping[str, Any], owner: str) -> Tensor:
        """Checked values as a model sees them, ``d``; NaN where there is none."""
        named: dict[str, object] = {}
        for name, value in values.items():
            values_of, variable = self._given[name], self.variables[name]
            if isinstance(values_of, CategoricalDistribution) and isinstance(
                variable, Category
            ):
                known = dict(zip(values_of.choices, variable.choices, strict=True))
                value = known.get(value, value)
            named[name] = value
        return encode(named, self.variables, owner)

    def values(self, x: Tensor) -> dict[str, Any]:
        """What Optuna knows of a model's row, ``d``; nothing where it is NaN."""
        return {
            name: self._value(name, number)
            for name, number in zip(self.names, x, strict=True)
            if not number.isnan()
        }

    def _value(self, name: str, number: Tensor) -> Any:
        values, variable = self._given[name], self.variables[name]
        if isinstance(values, CategoricalDistribution):
            return values.choices[int(number)]
        (value,) = variable.decode(number.unsqueeze(0))
        return round(value) if isinstance(values, IntDistribution) else value


@final
@dataclass(frozen=True)
class LogInteger(Variable):
    r"""A positive whole number of which factors count.

    Args:
        lower: The lowest value.
        upper: The highest one.
    """

    logarithmic: ClassVar[bool] = True

    lower: int
    upper: int

    @property
    def bounds(self) -> tuple[float, float]:
        """The logarithms of the bounds."""
        return math.log(self.lower), math.log(self.upper)

    @property
    def values(self) -> tuple[float, ...]:
        """The logarithm of each whole number."""
        return tuple(map(math.log, range(self.lower, self.upper + 1)))

    def encode(self, column: Sequence[object], cell: Cell) -> Tensor:
        """The logarithms."""
        numbers = Integer(self.lower, self.upper).encode(column, cell).tolist()
        return torch.tensor([math.log(n) for n in numbers], dtype=torch.double)

    def decode(self, numbers: Tensor) -> list[Any]:
        """Whole numbers."""
        return Integer(self.lower, self.upper).decode(numbers.exp())


def _variable(values: BaseDistribution, what: str) -> Variable:
    if not isinstance(
        values, FloatDistribution | IntDistribution | CategoricalDistribution
    ):
        raise UnsupportedError(
            f"{what}, a {type(values).__name__}: give a FloatDistribution, an "
            "IntDistribution or a CategoricalDistribution."
        )
    if values.single():
        raise InputDataError(f"{what} with one value only, {values}. Leave it out.")
    if isinstance(values, CategoricalDistribution):
        names = [str(choice) for choice in values.choices]
        if len(set(names)) < len(names):
            names = [repr(choice) for choice in values.choices]
        return Category(names)
    if isinstance(values, IntDistribution):
        if values.log:
            return LogInteger(values.low, values.high)
        if values.step == 1:
            return Integer(values.low, values.high)
        return Ordinal(range(values.low, values.high + 1, values.step))
    if values.log:
        return Log(values.low, values.high)
    if values.step is None:
        return Continuous(values.low, values.high)
    num = round((values.high - values.low) / values.step)
    return Ordinal([values.low + i * values.step for i in range(num + 1)])
