"""Optuna's distributions as variables of a space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from botorch.exceptions.errors import InputDataError, UnsupportedError
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from torch import Tensor

from botorch_drbo.integrations._logarithmic import Logarithmic
from botorch_drbo.space import Category, Continuous, Integer, Log, Ordinal, Variable


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

    def named(self, values: Mapping[str, object]) -> dict[str, object]:
        """Those of the values that are columns; categories by their names."""
        return {
            name: self._named(name, values[name])
            for name in self.names
            if name in values
        }

    def values(self, x: Tensor) -> dict[str, Any]:
        """What Optuna knows of a model's row, ``d``; nothing where it is NaN."""
        return {
            name: self._value(name, number)
            for name, number in zip(self.names, x, strict=True)
            if not number.isnan()
        }

    def _named(self, name: str, value: object) -> object:
        given, variable = self._given[name], self.variables[name]
        if isinstance(given, CategoricalDistribution) and isinstance(
            variable, Category
        ):
            for choice, own in zip(given.choices, variable.choices, strict=True):
                if choice == value:
                    return own
        return value

    def _value(self, name: str, number: Tensor) -> Any:
        values, variable = self._given[name], self.variables[name]
        if isinstance(values, CategoricalDistribution):
            return values.choices[int(number)]
        (value,) = variable.decode(number.unsqueeze(0))
        return round(value) if isinstance(values, IntDistribution) else value


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
            return Logarithmic(Integer(values.low, values.high))
        if values.step == 1:
            return Integer(values.low, values.high)
        return Ordinal(range(values.low, values.high + 1, values.step))
    if values.log:
        return Log(values.low, values.high)
    if values.step is None:
        return Continuous(values.low, values.high)
    num = round((values.high - values.low) / values.step)
    return Ordinal([values.low + i * values.step for i in range(num + 1)])
