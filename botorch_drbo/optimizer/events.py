"""The events of a run, and the checks of each, whether new or stored."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeAlias, cast

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor

from botorch_drbo._validation import (
    as_numbers,
    check_bounds,
    check_count,
    check_finite,
    check_flag,
    check_inside,
    coarser_eps,
    is_number,
    rounding,
)
from botorch_drbo.codec import decode, encode
from botorch_drbo.codec.objects import make
from botorch_drbo.optimizer.configuration import Configuration
from botorch_drbo.optimizer.trials import OutcomeRange
from botorch_drbo.problem import Round
from botorch_drbo.problem.search_space import check_values
from botorch_drbo.recipes import Recipe, make_recipe
from botorch_drbo.recipes.registry import check_options, default_recipe
from botorch_drbo.recommendation.model_check import DWARFS, FEW_OUTCOMES
from botorch_drbo.search.candidates import check_candidates

_REMEDIES = {"minimize": "maximize=False", "minimise": "maximize=False"}


def as_algorithm(
    algorithm: str | Recipe | None,
    options: Mapping[str, Any],
    arguments: Sequence[str],
) -> Recipe:
    """A recipe by name and options, a ready-made one, or the default of tables."""
    if algorithm is None:
        algorithm, options = default_recipe(options)
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


def as_variances(y_variance: Tensor | float, num: int) -> Tensor:
    """Told variances of the noise, ``m``; one number is that of every trial."""
    if is_number(y_variance):
        y_variance = _numbers(y_variance, "y_variance").expand(num)
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
    values = _numbers(constraints, "constraints")
    if values.ndim < 2 and values.numel() and num in (1, values.numel()):
        values = values.reshape(num, -1)
    if values.ndim != 2 or len(values) != num or not values.shape[-1]:
        raise BotorchTensorDimensionError(
            f"`constraints` must have a row for each of {num} trials and a column for "
            f"each constraint, got shape {tuple(values.shape)}."
        )
    return values


def _numbers(value: Tensor | float, name: str) -> Tensor:
    """Finite numbers in double precision; a number is a tensor without dimensions."""
    if is_number(value):
        value = as_numbers(value, f"`{name}` must be a finite number")
    return check_finite(cast(Tensor, value), name).detach().double()


def _one_for_each(value: Tensor | float, num: int, name: str, what: str) -> Tensor:
    values = _numbers(value, name)
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


@dataclass(frozen=True, eq=False, kw_only=True)
class Ask:
    """Decisions were asked."""

    # The decisions, ``q x d_x``.
    x: Tensor
    # The round's actions, ``m x d_x``, if they bind.
    actions: Tensor | None = None
    # Its reference, radius and context, as far as given.
    this_round: Round = field(default_factory=Round)
    # For a laboratory, ``q x d_c``.
    chosen_contexts: Tensor | None = None

    def within(self, configuration: Configuration) -> Ask:
        """The same as a run keeps it."""
        space = configuration.space
        x = as_rows(self.x, space.bounds, "x", "bounds").to(space.bounds)
        check_values(x, space.bounds, space.values, "x")
        actions = self.actions
        if actions is not None:
            actions = check_candidates(actions, space, len(x))
        chosen = self.chosen_contexts
        if chosen is not None:
            chosen = as_rows(chosen, space.context_bounds, "c", "context_bounds")
            if len(chosen) != len(x):
                raise BotorchTensorDimensionError(
                    f"There are {len(x)} decisions and {len(chosen)} chosen contexts."
                )
            check_values(chosen, space.context_bounds, space.context_values, "c")
            chosen = chosen.to(space.bounds)
        # Copies: later changes of these tensors by the user have no effect.
        return copy.deepcopy(
            Ask(
                x=x,
                actions=actions,
                this_round=self.this_round,
                chosen_contexts=chosen,
            )
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class CheckedTell:
    """What happened was told: contexts, outcomes, or that there will be none."""

    # The executed decisions, ``m x d_x``.
    x: Tensor
    # The contexts, ``m x d_c``; None if the trials failed before one was seen.
    c: Tensor | None
    # The outcomes, ``m``; None if they are still out, or never come.
    y: Tensor | None = None
    # The variances of their noise, ``m``; None if not known.
    y_variance: Tensor | None = None
    # What was measured of the outcome constraints, ``m x k``, or None.
    constraints: Tensor | None = None
    # Whether there will be no outcomes.
    failed: bool = False
    # False for data from elsewhere.
    closes_pending: bool = True
    # Why there will be none, if that is known.
    error: str | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Tell:
    """The arguments of ``RobustOptimizer.tell``, not checked yet."""

    # The executed decisions, ``d_x`` or ``m x d_x``.
    x: Tensor
    # The contexts, ``d_c`` or ``m x d_c``; None if the trials failed before one was
    # seen.
    c: Tensor | None
    # The outcomes, a number, ``m`` or ``m x 1``, or None.
    y: Tensor | float | None = None
    # The variances of their noise, the same, or None.
    y_variance: Tensor | float | None = None
    # Values of the outcome constraints, or None.
    constraints: Tensor | float | None = None
    # Whether there will be no outcomes.
    failed: bool = False
    # False for data from elsewhere.
    closes_pending: bool = True
    # Why there will be no outcomes, if that is known.
    error: str | None = None
    # How the user knows the outcome, for error messages.
    outcome: str = "y"

    def within(
        self, configuration: Configuration, earlier: OutcomeRange | None = None
    ) -> CheckedTell:
        """The same as a run keeps it."""
        self._check_together()
        space, box = configuration.space, configuration.space.context_bounds
        like = space.bounds
        x = as_rows(self.x, space.bounds, "x", "bounds")
        check_values(x, space.bounds, space.values, "x")
        c = None
        if self.c is not None:
            c = as_rows(self.c, configuration.context_bounds, "c", "context_bounds")
            check_values(c, box, space.context_values, "c")
            if len(x) != len(c):
                raise BotorchTensorDimensionError(
                    f"`x` and `c` must have one row per trial, got {len(x)} and "
                    f"{len(c)}."
                )
            c = space.snap_contexts(c.to(like).clamp(*box))
        num = len(x)
        y = None if self.y is None else _one_for_each(self.y, num, "y", "outcome")
        if y is not None and earlier is not None:
            check_can_be_modelled(y, like.dtype, earlier, self.outcome)
        variance = constraints = None
        if self.y_variance is not None:
            variance = as_variances(self.y_variance, num)
            configuration.algorithm.check_uses_contexts("y_variance")
        if self.constraints is not None:
            constraints = as_constraints(self.constraints, num)
            if earlier is not None:
                for column in constraints.T:
                    check_can_be_modelled(column, like.dtype, name="constraints")
            configuration.algorithm.check_takes_constraints()
        return CheckedTell(
            x=space.snap(x.to(like).clamp(*like)),
            c=c,
            y=_copied(y, like),
            y_variance=_copied(variance, like),
            constraints=_copied(constraints, like),
            failed=self.failed,
            closes_pending=self.closes_pending,
            error=self.error,
        )

    def _check_together(self) -> None:
        """Check that the arguments of one ``tell`` fit each other."""
        for name in ("closes_pending", "failed"):
            check_flag(getattr(self, name), name)
        if self.failed and self.y is not None:
            raise InputDataError(
                "Got `y` and `failed=True`: a failed trial has no outcome. Leave one "
                "out."
            )
        if self.error is not None and not (self.failed and isinstance(self.error, str)):
            raise InputDataError(
                "`error` must be a text that says why trials have failed, together "
                f"with `failed=True`, got {self.error!r:.80}."
            )
        if self.c is None and (not self.failed or self.constraints is not None):
            raise InputDataError(
                "Got no `c`: only a trial that failed before its context was seen has "
                "none, and nothing was measured of it. Tell the context, or pass "
                "`failed=True` without `constraints`."
            )
        if self.y is None and self.y_variance is not None:
            raise InputDataError(
                "Got `y_variance` without `y`: it belongs to an outcome. Tell both "
                "together."
            )
        if self.y is None and self.constraints is not None and not self.failed:
            raise InputDataError(
                "Got `constraints` without `y`: they are told when a trial is over. "
                "Tell them together with the outcome, or with `failed=True` if there "
                "will be none."
            )


@dataclass(frozen=True)
class Withdraw:
    """What was told of a trial, or asked, was taken back."""

    # Its number.
    trial: int

    def within(self, configuration: Configuration) -> Withdraw:
        """The same as a run keeps it."""
        return Withdraw(check_count(self.trial, "trial", 0))


def _copied(values: Tensor | None, like: Tensor) -> Tensor | None:
    """The numbers in the dtype of a run; copied, so later changes have no effect."""
    return None if values is None else values.to(like, copy=True)


Event: TypeAlias = Ask | CheckedTell | Withdraw
"""Whatever can happen to a run, checked."""


_KINDS = {"ask": Ask, "tell": Tell, "withdraw": Withdraw}
_NAMES = {Ask: "ask", CheckedTell: "tell", Withdraw: "withdraw"}


def write_event(event: Event, number: int) -> dict[str, Any]:
    """An event that has been checked, with its number from 1, in plain JSON types."""
    given = {
        field.name: value
        for field in fields(event)
        if (value := getattr(event, field.name)) is not field.default
        or field.default is MISSING
    }
    stored = {name: encode(value, name) for name, value in given.items()}
    return {"event": _NAMES[type(event)], **stored, "number": number}


def read_event(record: object, number: int) -> Ask | Tell | Withdraw:
    """The event of a record, not checked yet; ``number`` is what it must have."""
    if not isinstance(record, dict):
        raise InputDataError(f"It must be a JSON object, got {_brief(record)}.")
    kind = record.get("event")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InputDataError(f"There is no event {_brief(kind)}.")
    if type(record.get("number")) is not int or record["number"] != number:
        raise InputDataError(
            f"Its number must be {number}, got {_brief(record.get('number'))}."
        )
    given = {k: v for k, v in record.items() if k not in ("event", "number")}
    arguments = {name: decode(value, object, name) for name, value in given.items()}
    return make(_KINDS[kind], arguments)


def _brief(value: object) -> str:
    """What it is, in few words, however long or deep it is."""
    if value is None or isinstance(value, (str, bool, float)):
        return repr(value)[:80]
    return f"a {type(value).__name__}"
