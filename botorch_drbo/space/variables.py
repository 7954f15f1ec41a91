"""The kinds of variables: their values, and their encoding for a model."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, final

import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning
from torch import Tensor

from botorch_drbo._validation import did_you_mean, is_finite_number, rounding
from botorch_drbo.codec.objects import storable

if TYPE_CHECKING:
    import pandas as pd

FeatureTable: TypeAlias = "pd.DataFrame | Mapping[str, object] | Sequence[object]"
"""Numbers for each name."""
Cell = Callable[[int], str]
"""Names the place of a value in a column, for error messages."""

_NOISE = 1e-14  # of the bounds: a number as small is a rounding error of 0
_LARGEST = 2**53


@storable
class Variable(ABC):
    r"""A decision or context variable.

    Users see its values; a model sees numbers between ``bounds``.
    """

    logarithmic: ClassVar[bool] = False
    """Whether a model sees the logarithm."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest number that a model sees."""

    @property
    @abstractmethod
    def values(self) -> Sequence[float] | None:
        """The numbers that a model may see, in increasing order; None for all."""

    @abstractmethod
    def encode(self, column: Sequence[object], cell: Cell) -> Tensor:
        r"""From the user's values to those of a model.

        Args:
            column: Values, ``m``.
            cell: Names the place of each in an error message.

        Returns:
            Numbers, ``m``, float64.

        Raises:
            InputDataError: A value that the variable cannot take.
        """

    @abstractmethod
    def decode(self, numbers: Tensor) -> list[Any]:
        r"""From a model's numbers, ``m``, to the user's values; NaN becomes None."""

    def units(self, numbers: Tensor) -> Tensor:
        """A model's numbers in the user's units, differentiable; a category's index."""
        return numbers.exp() if self.logarithmic else numbers


@final
@dataclass(frozen=True)
class Continuous(Variable):
    r"""Any number from ``lower`` to ``upper``; ``(lower, upper)`` is short for it.

    Args:
        lower: The lowest value.
        upper: The highest one.

    Raises:
        InputDataError: Not finite, or not in order.
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        """Check the bounds."""
        _check_order(self.lower, self.upper, "A variable")

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds themselves."""
        return float(self.lower), float(self.upper)

    @property
    def values(self) -> None:
        """All in between."""

    def encode(self, column: Sequence[object], cell: Cell) -> Tensor:
        r"""The numbers themselves."""
        return _inside(finite_numbers(column, cell), self.lower, self.upper, cell)

    def decode(self, numbers: Tensor) -> list[Any]:
        r"""The numbers themselves, and 0 in place of its rounding error."""
        noise = _NOISE * max(abs(self.lower), abs(self.upper))
        return _listed(numbers.masked_fill(numbers.abs() <= noise, 0.0))


@final
@dataclass(frozen=True)
class Integer(Variable):
    r"""A whole number from ``lower`` to ``upper``.

    Args:
        lower: The lowest value.
        upper: The highest one.

    Raises:
        InputDataError: Not whole, or not in order.

    Example:
        >>> from botorch_drbo import Integer
        >>> Integer(0, 10**8).values
        range(0, 100000001)
    """

    lower: int
    upper: int

    def __post_init__(self) -> None:
        """Check the bounds."""
        for bound in (self.lower, self.upper):
            if isinstance(bound, bool) or not isinstance(bound, int):
                raise InputDataError(
                    f"The bounds of an Integer must be whole numbers, got {bound!r}."
                )
            if abs(bound) > _LARGEST:
                raise InputDataError(
                    f"An Integer ends at 2**53, beyond which float64 knows not every "
                    f"whole number, got {bound}. Take a larger unit, or "
                    "`(lower, upper)`."
                )
        _check_order(self.lower, self.upper, "An Integer")

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds themselves."""
        return float(self.lower), float(self.upper)

    @property
    def values(self) -> range:
        """All integers between the bounds, as a range."""
        return range(self.lower, self.upper + 1)

    def encode(self, column: Sequence[object], cell: Cell) -> Tensor:
        r"""The numbers, which must be whole."""
        numbers = finite_numbers(column, cell)
        for i, number in enumerate(numbers.tolist()):
            if abs(number - round(number)) > 1e-6:
                raise InputDataError(f"{cell(i)} must be a whole number, got {number}.")
        return _inside(numbers.round(), self.lower, self.upper, cell, slack=0.0)

    def decode(self, numbers: Tensor) -> list[Any]:
        r"""Whole numbers."""
        return [None if math.isnan(v) else round(v) for v in numbers.tolist()]


@final
@dataclass(frozen=True)
class Ordinal(Variable):
    r"""One of several numbers; their order and distances matter.

    Args:
        choices: The numbers, two at least.

    Raises:
        InputDataError: Fewer than two choices, duplicates, or choices that are not
            finite numbers.

    Example:
        >>> from botorch_drbo import Ordinal
        >>> Ordinal([10, 2.5, 40]).values
        (2.5, 10.0, 40.0)
    """

    choices: Sequence[float]

    def __post_init__(self) -> None:
        """Check the choices."""
        for choice in self.choices:
            if not is_finite_number(choice):
                raise InputDataError(
                    f"An Ordinal takes finite numbers, got {choice!r}. For names there "
                    "is Category."
                )
        _check_choices(self.choices, "An Ordinal")
        object.__setattr__(self, "choices", tuple(sorted(map(float, self.choices))))

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest choice."""
        return self.choices[0], self.choices[-1]

    @property
    def values(self) -> tuple[float, ...]:
        """The choices, in increasing order."""
        return tuple(self.choices)

    def encode(self, column: Sequence[object], cell: Cell) -> Tensor:
        r"""The numbers, which must be choices."""
        numbers = finite_numbers(column, cell)
        choices = torch.tensor(self.values, dtype=torch.double)
        gaps = (numbers.unsqueeze(-1) - choices).abs()
        nearest = gaps.argmin(-1)
        slack = 1e-6 * (choices[1:] - choices[:-1]).min()
        for i, gap in enumerate(gaps.amin(-1).tolist()):
            if gap > slack:
                raise InputDataError(
                    f"{cell(i)} must be one of {list(self.choices)}, got "
                    f"{numbers[i].item():g}."
                )
        return choices[nearest]

    def decode(self, numbers: Tensor) -> list[Any]:
        r"""The numbers themselves."""
        return _listed(numbers)


@final
@dataclass(frozen=True)
class Category(Variable):
    r"""One of several names without an order, perhaps with numbers that describe them.

    Features let a model predict a name that was never tried: descriptors of a ligand,
    size and weight of a product, latitude of a shop. They are standardised over the
    names, and replaced by their principal components where they are more than the
    names. The model weighs them against the names themselves, so that features that
    are of no use do little harm: see the page on surrogates.

    Args:
        choices: The names, two at least.
        features: For each name the same numbers: a DataFrame with the names as index,
            or a mapping from names to numbers; or a row for each of ``choices``. Other
            names in it do not matter.

    Raises:
        InputDataError: Fewer than two choices, duplicates, choices that are not
            strings; features that lack a name, are no finite numbers, or are the same
            for all names.

    Example:
        >>> from botorch_drbo import Category
        >>> Category(["sun", "rain"]).bounds
        (0.0, 1.0)
        >>> ligand = Category(["A", "B", "C"], features={"A": 1.0, "B": 2.0, "C": 9.0})
        >>> ligand.features
        ((1.0,), (2.0,), (9.0,))
    """

    choices: Sequence[str]
    features: FeatureTable | None = None

    def __post_init__(self) -> None:
        """Check the names."""
        if isinstance(self.choices, str):
            raise InputDataError(
                f"A Category takes a list of names, got the string {self.choices!r}."
            )
        for choice in self.choices:
            if not isinstance(choice, str) or not choice:
                raise InputDataError(
                    f"A Category takes names, got {choice!r}. For numbers there are "
                    "Integer and Ordinal; write them as strings if they are names."
                )
        _check_choices(self.choices, "A Category")
        object.__setattr__(self, "choices", tuple(self.choices))
        if self.features is not None:
            rows = feature_rows(self.features, self.choices)
            object.__setattr__(self, "features", rows)

    def constructor_arguments(self) -> dict[str, object]:
        """The arguments of the constructor: the features where there are any."""
        described = {} if self.features is None else {"features": self.features}
        return {"choices": self.choices, **described}

    @cached_property
    def embedding(self) -> Tensor | None:
        r"""The features as a model sees them, ``k x p``, float64.

        Standardised, rotated to principal components where there are more columns than
        names, which leaves all distances as they are, and scaled so that the mean
        squared distance of two names is 2, that of one-hot vectors.
        """
        if self.features is None:
            return None
        table = torch.tensor(self.features, dtype=torch.double)
        table = table - table.mean(0)
        # By a power of two, so that squares of any unit are finite.
        table = torch.ldexp(table, -table.abs().amax(0).frexp().exponent)
        table = table / table.std(0)
        k, p = table.shape
        if p >= k:
            left, sizes, _ = torch.linalg.svd(table, full_matrices=False)
            table = (left * sizes)[:, : k - 1]
        # Of centred rows the mean over pairs is 2 / (k - 1) times the sum of squares.
        return table * ((k - 1) / table.square().sum()).sqrt()

    @property
    def bounds(self) -> tuple[float, float]:
        """The first index and the last one."""
        return 0.0, float(len(self.choices) - 1)

    @property
    def values(self) -> tuple[float, ...]:
        """The indices."""
        return tuple(map(float, range(len(self.choices))))

    def encode(self, column: Sequence[object], cell: Cell) -> Tensor:
        r"""The index of each name."""
        codes = {choice: float(i) for i, choice in enumerate(self.choices)}
        for i, name in enumerate(column):
            if not isinstance(name, str) or name not in codes:
                raise InputDataError(
                    f"{cell(i)} must be one of {list(self.choices)}, got {name!r}."
                    f"{did_you_mean(name, codes)}"
                )
        return torch.tensor([codes[str(name)] for name in column], dtype=torch.double)

    def decode(self, numbers: Tensor) -> list[Any]:
        r"""The names."""
        return [
            None if math.isnan(v) else self.choices[round(v)] for v in numbers.tolist()
        ]


@final
@dataclass(frozen=True)
class Log(Variable):
    r"""A positive number on a logarithmic scale, such as a dose or a rate.

    A model sees its logarithm.

    Args:
        lower: The lowest value, positive.
        upper: The highest one.

    Raises:
        InputDataError: Not finite, not positive, or not in order.
    """

    logarithmic: ClassVar[bool] = True

    lower: float
    upper: float

    def __post_init__(self) -> None:
        """Check the bounds."""
        _check_order(self.lower, self.upper, "A Log")
        if self.lower <= 0:
            raise InputDataError(
                f"A Log must have positive bounds, got {self.lower}: zero has no "
                "logarithm. Take the smallest value that matters, or `(lower, upper)`."
            )

    @property
    def bounds(self) -> tuple[float, float]:
        """The logarithms of the bounds."""
        return math.log(self.lower), math.log(self.upper)

    @property
    def values(self) -> None:
        """All in between."""

    def encode(self, column: Sequence[object], cell: Cell) -> Tensor:
        r"""The logarithms."""
        return _inside(finite_numbers(column, cell), self.lower, self.upper, cell).log()

    def decode(self, numbers: Tensor) -> list[Any]:
        r"""The numbers as they were told, never outside the bounds by rounding."""
        return [
            # The logarithm of 20 gives 19.999999999999996 back.
            None if v is None else min(max(float(f"{v:.14g}"), self.lower), self.upper)
            for v in _listed(self.units(numbers))
        ]


def feature_rows(
    features: FeatureTable, choices: Sequence[str]
) -> tuple[tuple[float, ...], ...]:
    """A row of numbers for each name, in the order of the names."""
    given: Any = features
    names: list[str] = []
    if hasattr(given, "columns"):
        names = [str(name) for name in given.columns]
        if not given.index.is_unique:
            twice = given.index[given.index.duplicated()].tolist()
            raise InputDataError(
                f"`features` has more than one row for {twice}. Leave one."
            )
        given = {level: list(row) for level, *row in given.itertuples(name=None)}
    if isinstance(given, Mapping):
        missing = [level for level in choices if level not in given]
        if missing:
            raise InputDataError(
                f"`features` has no row for {missing}: every level needs its numbers. "
                f"Its rows are {list(given)[:20]}."
            )
        others = [level for level in given if level not in choices]
        if others:
            warnings.warn(
                f"`features` has rows for {others[:10]}, {len(others)} in all, which "
                f"are not among the levels {list(choices)[:10]}: they are ignored. "
                "List them as levels to have them learnt of and suggested.",
                InputDataWarning,
                stacklevel=4,
            )
        given = [given[level] for level in choices]
        if isinstance(given[0], Mapping):
            names = [str(name) for name in given[0]]
            given = [
                [row.get(name) for name in names] if isinstance(row, Mapping) else row
                for row in given
            ]
        given = [row if isinstance(row, Sequence) else [row] for row in given]
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InputDataError(
            "`features` must be a DataFrame, a mapping or rows of numbers, got "
            f"{given!r:.80}."
        )
    rows = [list(row) for row in given if not isinstance(row, str)]
    lengths = {len(row) for row in rows}
    if len(rows) != len(choices) or len(lengths) != 1 or lengths == {0}:
        raise InputDataError(
            f"`features` must have the same numbers for each of {list(choices)}, one "
            f"at least, got {len(rows)} rows of {sorted(lengths)} numbers."
        )
    names = names or [f"column {j}" for j in range(lengths.pop())]
    for level, row in zip(choices, rows, strict=True):
        for name, value in zip(names, row, strict=True):
            if not is_finite_number(value):
                raise InputDataError(
                    f"`features` must be finite numbers, got {value!r} in {name} of "
                    f"{level!r}. Write texts as columns of 0 and 1, and leave out what "
                    "is not known of every level."
                )
    numbers = torch.tensor(rows, dtype=torch.double)
    for j in (numbers == numbers[0]).all(0).nonzero().flatten().tolist():
        raise InputDataError(
            f"`features` has {numbers[0, j].item():g} in {names[j]} of every level, "
            "which tells none from another. Leave that column out."
        )
    return tuple(tuple(map(float, row)) for row in rows)


def as_variable(given: object, name: str) -> Variable:
    """A variable, or the pair of numbers that is short for a continuous one."""
    if isinstance(given, Variable):
        return given
    try:
        if isinstance(given, (tuple, list)) and len(given) == 2:
            return Continuous(*given)
    except InputDataError as error:
        raise InputDataError(f"`{name}`: {error}") from error
    raise InputDataError(
        f"`{name}` must be a pair (lower, upper), an Integer, Ordinal, Category or "
        f"Log, got {given!r}."
    )


def _check_order(lower: object, upper: object, what: str) -> None:
    for bound in (lower, upper):
        if not is_finite_number(bound):
            raise InputDataError(f"{what} must have finite bounds, got {bound!r}.")
    if not float(lower) < float(upper):  # pyright: ignore[reportArgumentType]
        raise InputDataError(
            f"{what} must have a lower bound below its upper one, got {lower} and "
            f"{upper}. "
            + (
                "Leave out what is constant."
                if lower == upper
                else f"Write the lower one first: {upper} and {lower}."
            )
        )


def _check_choices(choices: Sequence[object], what: str) -> None:
    if len(choices) < 2 or len(set(choices)) < len(choices):
        raise InputDataError(
            f"{what} needs at least two different choices, got {list(choices)}."
        )


def finite_numbers(column: Sequence[object], cell: Cell) -> Tensor:
    """A column of finite numbers, ``m``, float64; others are refused."""
    for i, value in enumerate(column):
        if value is None:
            raise InputDataError(f"{cell(i)} is empty. It must be a finite number.")
        if not is_finite_number(value):
            raise InputDataError(f"{cell(i)} must be a finite number, got {value!r}.")
    return torch.tensor([float(v) for v in column], dtype=torch.double)  # pyright: ignore[reportArgumentType]


def _inside(
    numbers: Tensor,
    lower: float,
    upper: float,
    cell: Cell,
    slack: float | None = None,
) -> Tensor:
    """Numbers in their bounds, where they are moved if rounding took them out."""
    if slack is None:
        box = torch.tensor([[lower], [upper]], dtype=torch.double)
        slack = rounding(box, torch.finfo(torch.float32).eps).item()
    for i, number in enumerate(numbers.tolist()):
        if not lower - slack <= number <= upper + slack:
            raise InputDataError(
                f"{cell(i)} must lie between {lower:.15g} and {upper:.15g}, got "
                f"{number:.15g}. "
                "Correct it, or widen the bounds."
            )
    return numbers.clamp(lower, upper)


def _listed(numbers: Tensor) -> list[Any]:
    return [None if math.isnan(v) else v for v in numbers.tolist()]
