"""Checks of user input: what was wrong, what was got, what to do instead."""

from __future__ import annotations

import math
import os
from collections import UserDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, fields
from decimal import Decimal
from difflib import get_close_matches
from numbers import Integral, Real
from pathlib import Path
from typing import Self, TypeGuard, TypeVar

import numpy as np
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

_Entry = TypeVar("_Entry")


def check_points(
    points: Tensor, name: str, *, num_columns: int | None = None
) -> Tensor:
    """Return ``points`` if it is a finite ``n x d`` float tensor, ``n >= 1``."""
    check_finite(points, name)
    if points.ndim != 2 or points.shape[0] == 0 or points.shape[1] == 0:
        raise BotorchTensorDimensionError(
            f"`{name}` must be an `n x d` tensor with at least one row, got shape "
            f"{tuple(points.shape)}. Reshape a single column with `.unsqueeze(-1)`."
        )
    if num_columns is not None and points.shape[1] != num_columns:
        raise BotorchTensorDimensionError(
            f"`{name}` must have {num_columns} columns, got shape "
            f"{tuple(points.shape)}."
        )
    return points


def check_finite(values: Tensor, name: str) -> Tensor:
    """Return ``values`` if it is a floating point tensor without NaN or infinity."""
    if not isinstance(values, Tensor):
        raise InputDataError(
            f"`{name}` must be a torch.Tensor, got {type(values).__name__}. "
            "Convert it with `torch.as_tensor(..., dtype=torch.double)`."
        )
    if not values.is_floating_point():
        raise InputDataError(
            f"`{name}` must be a floating point tensor, got {values.dtype}. "
            "Convert it with `.double()`."
        )
    if not torch.isfinite(values).all():
        raise InputDataError(
            f"`{name}` has {int((~torch.isfinite(values)).sum())} NaN or infinite "
            "entries. Remove or repair them first."
        )
    return values


def check_bounds(
    bounds: Tensor, name: str, *, num_columns: int | None = None
) -> Tensor:
    """Return ``bounds`` if it is ``2 x d``, lower bounds below upper bounds."""
    check_points(bounds, name, num_columns=num_columns)
    if bounds.shape[0] != 2:
        raise BotorchTensorDimensionError(
            f"`{name}` must be a `2 x d` tensor (lower bounds, then upper bounds), got "
            f"shape {tuple(bounds.shape)}."
        )
    wrong = (bounds[0] >= bounds[1]).nonzero().flatten().tolist()
    if wrong:
        raise InputDataError(
            f"`{name}` must have its lower bounds below its upper bounds; columns "
            f"{wrong} do not: {bounds[:, wrong].tolist()}."
        )
    return bounds


def rounding(bounds: Tensor, eps: float | Tensor) -> Tensor:
    """How far apart numbers in a box may be and still be equal.

    A billionth of a side, or what numbers of the box's size lose by rounding.

    Shapes: ``bounds``: ``2 x d``, ``eps``: ``p x 1``, returns ``p x d``.
    """
    size = bounds.abs().amax(0)
    return torch.maximum(1e-9 * (bounds[1] - bounds[0]), 4 * eps * size)


def coarser_eps(*tensors: Tensor) -> float:
    """The ``eps`` of the coarsest of the tensors' dtypes."""
    return max(torch.finfo(tensor.dtype).eps for tensor in tensors)


def check_inside(points: Tensor, bounds: Tensor, name: str, bounds_name: str) -> Tensor:
    """Return ``points`` if each row lies in ``bounds``, up to rounding.

    Rounding is that of the coarser of the two dtypes.
    """
    check_points(points, name, num_columns=bounds.shape[-1])
    slack = rounding(bounds, coarser_eps(points, bounds))
    outside = ((points < bounds[0] - slack) | (points > bounds[1] + slack)).any(-1)
    if outside.any():
        rows = outside.nonzero().flatten().tolist()
        raise InputDataError(
            f"`{name}` has rows outside `{bounds_name}` {bounds.tolist()}: rows "
            f"{rows[:5]}, the first is {points[rows[0]].tolist()}. Widen the bounds, "
            "or clip the points if that is what you mean."
        )
    return points


def check_weights(weights: Tensor, num_points: int, name: str = "weights") -> Tensor:
    """Return ``weights`` (``... x n``) scaled to sum to one."""
    check_finite(weights, name)
    if weights.ndim == 0 or weights.shape[-1] != num_points:
        raise BotorchTensorDimensionError(
            f"`{name}` must have {num_points} entries, one per point, got shape "
            f"{tuple(weights.shape)}."
        )
    if (weights < 0).any():
        raise InputDataError(
            f"`{name}` must not be negative, got a minimum of {weights.min().item()}."
        )
    total = weights.sum(-1, keepdim=True)
    if not torch.isfinite(total).all():
        raise InputDataError(f"`{name}` is too large to be summed, scale it down.")
    if (total <= 0).any():
        raise InputDataError(
            f"`{name}` must have a positive sum, got {total.min().item()}."
        )
    return weights / total


def is_number(value: object) -> TypeGuard[float]:
    """Whether this is one real number, and no flag."""
    # NumPy calls a duration a whole number.
    return isinstance(value, Real) and not isinstance(value, bool | np.timedelta64)


def is_finite_number(value: object) -> TypeGuard[float]:
    """Whether this is one real number, no flag, neither infinite nor NaN."""
    try:
        return is_number(value) and math.isfinite(value)
    except OverflowError:  # a whole number or a fraction beyond float64
        return False


def as_numbers(value: object, failure: str) -> Tensor:
    """Real numbers of any kind as a tensor of their shape, float32 or float64."""
    try:
        masked = np.ma.asarray(value)  # of a list as well
    except ValueError as error:  # lists of different lengths
        raise InputDataError(f"{failure}, got {value!r:.200}.") from error
    array = masked.data
    is_object = array.dtype.kind == "O"  # of which Decimal and Fraction are numbers
    if np.ma.is_masked(masked) or not (
        all(is_number(v) or isinstance(v, Decimal) for v in array.flat)
        if is_object
        else array.dtype.kind in "iuf"
    ):
        raise InputDataError(f"{failure}, got {value!r:.200}.")
    known = array.dtype in (np.float32, np.float64)
    try:
        return torch.from_numpy(array.copy() if known else array.astype(np.float64))
    except OverflowError as error:
        raise InputDataError(f"{failure}, got {value!r:.200}.") from error


def quoted(name: str) -> str:
    """The name of an argument in backticks; a label that has some is as it was."""
    return name if "`" in name else f"`{name}`"


def finite_number(value: object, name: str, remedy: str = "") -> float:
    """Return ``value`` as a float if it is one finite number."""
    if not is_number(value):
        if isinstance(value, Tensor):
            remedy = remedy or " Convert a tensor with `.item()`."
        kind = type(value).__name__
        raise InputDataError(
            f"{quoted(name)} must be a number, got {kind} {value!r:.200}.{remedy}"
        )
    if not is_finite_number(value):
        raise InputDataError(
            f"{quoted(name)} must be a finite number, got {value!r:.200}."
        )
    return float(value)


def nonnegative_number(value: object, name: str, remedy: str = "") -> float:
    """The same for a number that is not negative."""
    number = finite_number(value, name, remedy)
    if number < 0.0:
        raise InputDataError(f"{quoted(name)} must not be negative, got {value!r}.")
    return number


def check_nonnegative(value: float | Tensor, name: str) -> Tensor:
    """Return ``value`` as a tensor if it is finite and not negative."""
    if not isinstance(value, Tensor):
        return torch.tensor(nonnegative_number(value, name), dtype=torch.double)
    check_finite(value, name)
    if (value < 0).any():
        raise InputDataError(f"`{name}` must not be negative, got {value}.")
    return value


def check_positive(value: float, name: str) -> float:
    """Return ``value`` as a float if it is a positive finite number."""
    if not is_finite_number(value) or not float(value) > 0.0:
        raise InputDataError(
            f"{quoted(name)} must be a positive finite number, got {value!r:.200}."
        )
    return float(value)


def check_level(level: object, name: str = "level") -> float:
    """Return a probability that is neither 0 nor 1."""
    wanted = f"{quoted(name)} must be a number between 0 and 1, both excluded"
    if not is_finite_number(level):
        raise InputDataError(f"{wanted}, got {level!r:.200}.")
    if not 0.0 < float(level) < 1.0:
        percent = f": for {level:g}% give {level / 100:g}" if 1 < level < 100 else ""
        raise InputDataError(f"{wanted}, got {level!r}{percent}.")
    return float(level)


def check_scalar(value: Tensor, name: str) -> Tensor:
    """Return a single number as a tensor of its own without dimensions."""
    if value.numel() != 1:
        raise BotorchTensorDimensionError(
            f"`{name}` must be a scalar, got shape {tuple(value.shape)}."
        )
    return value.detach().clone().reshape(())


def check_count(value: object, name: str, minimum: int = 1) -> int:
    """Return ``value`` if it is an integer of at least ``minimum``."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < minimum:
        raise InputDataError(
            f"{quoted(name)} must be an integer of at least {minimum}, got {value!r}."
        )
    return int(value)


def check_choice(value: object, name: str, choices: Iterable[str]) -> None:
    """Raise unless ``value`` is one of the choices."""
    known = list(choices)
    if value not in known:
        raise InputDataError(
            f"`{name}` must be one of {known}, got {value!r}."
            f"{did_you_mean(value, known)}"
        )


def check_flag(value: object, name: str) -> None:
    """Raise unless ``value`` is True or False."""
    if not isinstance(value, bool):
        raise InputDataError(f"`{name}` must be True or False, got {value!r}.")


_CHECK = "check"


def option(default: _Entry, check: Callable[[_Entry, str], object]) -> _Entry:
    """A field of a dataclass with its default, and the check that it has to pass."""
    return field(default=default, metadata={_CHECK: check})


def check_options(options: object) -> None:
    """Check the fields of a dataclass that are declared with ``option``."""
    for each in fields(options):  # pyright: ignore[reportArgumentType]
        if _CHECK in each.metadata:
            each.metadata[_CHECK](getattr(options, each.name), each.name)


def check_new_file(path: Path, name: str) -> None:
    """Raise where no file can be written; before the work whose result it is."""
    folder = path.absolute().parent
    wrong = (
        "is a folder"
        if path.is_dir()
        else f"is in a folder that does not exist: {folder}"
        if not folder.is_dir()
        else "cannot be written"
        if not os.access(path if path.exists() else folder, os.W_OK)
        else ""
    )
    if wrong:
        raise InputDataError(f"`{name}` {path} {wrong}. Give another path.")


def shown(value: object, digits: int = 4, *, sign: bool = False) -> str:
    """A float with some significant digits, and all of those before the point."""
    if not isinstance(value, float):
        return str(value)
    plus, whole = "+" if sign else "", 10.0**digits - 0.5 <= abs(value) < 1e15
    return f"{value:{plus}.0f}" if whole else f"{value:{plus}.{digits}g}"


def counted(number: float, noun: str) -> str:
    """How many of what: ``1 well``, ``2 wells``."""
    return f"{number:g} {noun}" if number == 1 else f"{shown(number)} {noun}s"


def did_you_mean(name: object, choices: Iterable[object]) -> str:
    """A sentence with the choice that is nearest to a misspelt name, if one is near."""
    names = [str(choice) for choice in choices]
    near = get_close_matches(name, names, n=1) if isinstance(name, str) else []
    return f" Did you mean `{near[0]}`?" if near else ""


class Registry(UserDict[str, _Entry]):
    """Objects by name; an object of another class is an error."""

    def __init__(self, kind: type[_Entry], entries: Mapping[str, _Entry]) -> None:
        self._kind = kind
        super().__init__(entries)

    def __setitem__(self, name: str, entry: _Entry) -> None:
        """Register it, if it is one."""
        kind = self._kind.__name__
        if not isinstance(name, str):
            raise InputDataError(f"A {kind} is registered by a string, got {name!r}.")
        if isinstance(entry, type):
            raise InputDataError(
                f"The class {entry.__name__} was registered as {name!r}. Register an "
                f"object of it, with its defaults: `{entry.__name__}()`."
            )
        if not isinstance(entry, self._kind):
            raise InputDataError(
                f"{name!r} must be registered with an object of a subclass of {kind}, "
                f"got a {type(entry).__name__}."
            )
        super().__setitem__(name, entry)

    def __ior__(self, other: Mapping[str, _Entry]) -> Self:
        """Register several."""
        self.update(other)
        return self
