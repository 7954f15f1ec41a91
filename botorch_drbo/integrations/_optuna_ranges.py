"""Named ranges of Optuna, and the numbers that a model sees in their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from torch import Tensor

from botorch_drbo._validation import check_inside
from botorch_drbo.contexts import ContextSet
from botorch_drbo.integrations._host import number_within, row


@final
class Ranges:
    r"""The columns of a decision or of a context; logarithms where ``log=True``.

    Args:
        given: For each name its distribution.
        what: What the user calls them, "search_space" or "contexts".

    Raises:
        InputDataError: No dictionary, or an empty one.
        UnsupportedError: Categories.
    """

    def __init__(self, given: Mapping[str, BaseDistribution], what: str) -> None:
        if not isinstance(given, Mapping) or not given:
            raise InputDataError(
                f"`{what}` must be a dictionary from names to Optuna distributions, "
                f"with at least one entry, got {given!r}."
            )
        self.by_name: dict[str, FloatDistribution | IntDistribution] = {}
        for name, values in given.items():
            if not isinstance(values, FloatDistribution | IntDistribution):
                raise UnsupportedError(
                    f"`{what}` has {name!r}, a {type(values).__name__}: only numbers "
                    "are modelled (FloatDistribution and IntDistribution). The index "
                    "of a category would claim an order that there is not. Make a "
                    "study for each category, or give a number that it stands for."
                )
            self.by_name[name] = values
        self.names = list(self.by_name)
        self._log = torch.tensor([values.log for values in self.by_name.values()])
        ends = [[values.low, values.high] for values in self.by_name.values()]
        self._ends = torch.tensor(ends, dtype=torch.double).mT  # 2 x d
        self.bounds = self._logs(self._ends)

    @property
    def is_rounded(self) -> bool:
        """Whether some values are whole numbers or steps."""
        return any(values.step is not None for values in self.by_name.values())

    def row(self, values: Mapping[str, Any], owner: str) -> Tensor:
        """Checked numbers as the model sees them, ``d``; NaN where there is none."""
        for name, value in values.items():
            ends = self.by_name[name]
            number_within(value, ends.low, ends.high, f"{name!r} of {owner}")
        return self._logs(row(values, self.names))

    def context_set(self, given: ContextSet, name: str) -> ContextSet:
        """A distribution of contexts in the user's units, as the model sees it."""
        if given.dim != len(self.names):
            raise InputDataError(
                f"`{name}` has {given.dim} columns, and the contexts are {self.names}: "
                "one column for each, in this order."
            )
        points = check_inside(given.points, self._ends, name, "contexts").double()
        return ContextSet(self._logs(points.clamp(*self._ends)), given.weights.double())

    def raw(self, points: Tensor) -> Tensor:
        """In the user's units again, ``n x d``."""
        return torch.where(self._log, points.exp(), points)

    def nearest(self, x: Tensor) -> dict[str, float | int]:
        """The nearest values that parameters can take, ``d``."""
        params: dict[str, float | int] = {}
        for name, value in zip(self.names, self.raw(x).tolist(), strict=True):
            values = self.by_name[name]
            if values.step is not None:
                steps = round((value - values.low) / values.step)
                value = values.low + steps * values.step
            value = min(max(value, values.low), values.high)
            is_int = isinstance(values, IntDistribution)
            params[name] = round(value) if is_int else value
        return params

    def _logs(self, points: Tensor) -> Tensor:
        return torch.where(self._log, points.log(), points)
