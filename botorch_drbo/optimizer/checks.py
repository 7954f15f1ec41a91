"""Checks of an optimizer's arguments."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor

from botorch_drbo._validation import (
    check_bounds,
    check_finite,
    check_inside,
    coarser_eps,
    is_number,
    rounding,
)
from botorch_drbo.optimizer.standing import OutcomeRange
from botorch_drbo.recipes import Recipe, make_recipe
from botorch_drbo.recipes.registry import check_options
from botorch_drbo.recommendation.model_check import DWARFS, FEW_OUTCOMES

_REMEDIES = {"minimize": "maximize=False", "minimise": "maximize=False"}


def as_algorithm(
    algorithm: str | Recipe, options: Mapping[str, Any], arguments: Sequence[str]
) -> Recipe:
    """A recipe by name and options, or a ready-made one.

    Args:
        algorithm: A name or a recipe.
        options: Those of a named recipe.
        arguments: What the optimizer itself takes, for the error message.
    """
    if isinstance(algorithm, str):
        parts = {k: options[k] for k in ("adversary", "policy") if k in options}
        check_options(
            algorithm,
            options.keys() - parts.keys(),
            changes=parts,
            arguments=arguments,
            remedies=_REMEDIES,
        )
        return make_recipe(algorithm, **options)
    if not isinstance(algorithm, Recipe):
        raise InputDataError(
            f"`algorithm` must be a name or a Recipe, got {type(algorithm).__name__}."
        )
    if options:
        raise InputDataError(
            f"Got the options {sorted(options)} beside a ready-made algorithm. Give "
            "them to the algorithm, or name the algorithm by a string."
        )
    return algorithm


def as_rows(values: Tensor, bounds: Tensor, name: str, bounds_name: str) -> Tensor:
    """Told rows, ``m x d`` in their own dtype; a vector of ``d`` numbers is one row."""
    rows = check_finite(values, name).detach().to(bounds.device)
    if rows.ndim == 1 and len(rows) != (d := bounds.shape[-1]):
        raise BotorchTensorDimensionError(
            f"`{name}` must have {d} columns, got shape {tuple(rows.shape)}: a vector "
            f"is one row, of {d} numbers. Reshape a single column with "
            "`.unsqueeze(-1)`."
        )
    rows = rows.unsqueeze(0) if rows.ndim == 1 else rows
    return check_inside(rows, bounds, name, bounds_name)


def as_outcomes(y: Tensor | float, num: int) -> Tensor:
    """Told outcomes, ``m``."""
    return _one_for_each(y, num, "y", "outcome")


def as_variances(y_variance: Tensor | float, num: int) -> Tensor:
    """Told variances of the noise, ``m``; one number is that of every trial."""
    if is_number(y_variance):
        y_variance = torch.full((num,), float(y_variance), dtype=torch.double)
    variances = _one_for_each(y_variance, num, "y_variance", "variance")
    if (variances < 0).any():
        raise InputDataError(
            f"`y_variance` must not be negative, got {variances.min().item()}. It is "
            "the square of the standard error of an outcome."
        )
    return variances


def as_constraints(constraints: Tensor | float, num: int) -> Tensor:
    """Told values of the outcome constraints, ``m x k``.

    A vector of ``m`` numbers is one constraint of ``m`` trials; of one trial it is all
    of its constraints.
    """
    if is_number(constraints):
        constraints = torch.tensor(float(constraints), dtype=torch.double)
    values = check_finite(cast(Tensor, constraints), "constraints").detach().double()
    if values.ndim < 2 and values.numel() and num in (1, values.numel()):
        values = values.reshape(num, -1)
    if values.ndim != 2 or len(values) != num or not values.shape[-1]:
        raise BotorchTensorDimensionError(
            f"`constraints` must have a row for each of {num} trials and a column for "
            f"each constraint, got shape {tuple(values.shape)}."
        )
    return values


def _one_for_each(value: Tensor | float, num: int, name: str, what: str) -> Tensor:
    if is_number(value):
        value = torch.tensor(float(value), dtype=torch.double)
    values = check_finite(cast(Tensor, value), name).detach().double()
    if values.shape not in {(num,), (num, 1)} and (num, values.shape) != (1, ()):
        raise BotorchTensorDimensionError(
            f"`{name}` must have one {what} for each of {num} trials, shape ({num},) "
            f"or ({num}, 1), got shape {tuple(values.shape)}."
        )
    return values.reshape(num)


def check_can_be_modelled(
    y: Tensor,
    dtype: torch.dtype,
    earlier: OutcomeRange | None = None,
    name: str = "y",
) -> None:
    """Refuse outcomes that no model can take; warn of those that dwarf all others.

    A model works with the variance of the outcomes: their squares, and what is smaller
    by the precision, have to be numbers of the dtype.

    Args:
        y: New outcomes, ``m``.
        dtype: That of the run.
        earlier: The outcomes so far; None if none matters.
        name: What they were told as.
    """
    info = torch.finfo(dtype)
    limit = 0.1 * (info.max * info.eps) ** 0.5
    if (y.abs() > limit).any():
        worst = y[y.abs().argmax()].item()
        raise InputDataError(
            f"`{name}` has the value {worst}, which cannot be modelled: squares of "
            f"outcomes beyond {limit:.0e} are too large for {dtype}. Correct "
            "it, tell outcomes in other units, or pass `failed=True` if the trial has "
            "no outcome."
        )
    if earlier is None or (spread := earlier.highest - earlier.lowest) <= 0.0:
        return
    far = (y - earlier.lowest).abs()
    if (far * info.eps > spread).any():
        warnings.warn(
            f"The outcome {y[far.argmax()].item()} is so far from the {earlier.num} "
            f"earlier ones, between {earlier.lowest} and {earlier.highest}, "
            "that the model can no longer tell those apart. If it is a mistake, "
            "correct or withdraw it.",
            BotorchWarning,
            stacklevel=3,
        )
        return
    gap = torch.maximum(y - earlier.highest, earlier.lowest - y)
    if earlier.num >= FEW_OUTCOMES and (gap > DWARFS * spread).any():
        warnings.warn(
            f"The outcome {y[gap.argmax()].item():g} dwarfs the {earlier.num} earlier "
            f"ones, between {earlier.lowest:g} and {earlier.highest:g}: the model and "
            "its intervals will follow it. If it is a mistake, correct or withdraw it.",
            BotorchWarning,
            stacklevel=3,
        )


def compare_bounds(
    given: Tensor | None, stored: Tensor, name: str, source: str
) -> None:
    """Refuse the journal of another problem."""
    if given is None:
        return
    check_bounds(given, name)
    own = given.detach().to(stored)
    slack = rounding(stored, coarser_eps(given, stored))
    if own.shape != stored.shape or not ((own - stored).abs() <= slack).all():
        raise InputDataError(
            f"In {source} the problem has `{name}` {stored.tolist()}, not "
            f"{given.tolist()}: it is the journal of another problem."
        )
