"""Integers and listed numbers on a logarithmic scale, as some hosts have them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from torch import Tensor

from botorch_drbo.space import Integer, Ordinal, Variable
from botorch_drbo.space.variables import Cell

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
