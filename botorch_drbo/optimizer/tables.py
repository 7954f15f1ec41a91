"""All trials as a table, and tables of trials as events."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor

from botorch_drbo._validation import counted, did_you_mean, is_finite_number
from botorch_drbo.optimizer.events import Ask, Tell
from botorch_drbo.optimizer.trials import Trial
from botorch_drbo.problem import SearchSpace
from botorch_drbo.space import Space
from botorch_drbo.space.table import cell, row_names, to_outcomes, to_tensor

if TYPE_CHECKING:
    import pandas as pd


def numbered_table(trials: Sequence[Trial], box: SearchSpace) -> pd.DataFrame:
    """All trials of variables without names, as ``x1, ..., c1, ..., outcome``."""
    columns = partial(numbered, "x"), partial(numbered, "c")
    return with_details(outcome_table(trials, box, *columns), trials)


def outcome_table(
    trials: Sequence[Trial],
    box: SearchSpace,
    decisions: Callable[[Tensor], pd.DataFrame],
    contexts: Callable[[Tensor], pd.DataFrame],
    outcome: str = "outcome",
) -> pd.DataFrame:
    """Decision, context (NaN where none was told) and outcome of each trial."""
    import pandas as pd

    unknown = torch.full_like(box.context_bounds[0], torch.nan)
    x = torch.stack([t.x for t in trials]) if trials else box.bounds[:0]
    c = [unknown if t.c is None else t.c for t in trials]
    rows = torch.stack(c) if c else box.context_bounds[:0]
    table = pd.concat([decisions(x), contexts(rows)], axis=1)
    table[outcome] = pd.Series([_number(t.y) for t in trials], dtype="float64")
    table.index = pd.Index([t.number for t in trials], name="trial")
    return table


def with_details(
    table: pd.DataFrame, trials: Sequence[Trial], outcome: str = "outcome"
) -> pd.DataFrame:
    """Variances and constraints, if there are any, and the status."""
    further: dict[str, list[object]] = {}
    if any(t.y_variance is not None for t in trials):
        further[f"{outcome}_variance"] = [_number(t.y_variance) for t in trials]
    measured = [t.constraints for t in trials if t.constraints is not None]
    for j in range(len(measured[0]) if measured else 0):
        further[f"constraint{j + 1}"] = [
            _number(None if t.constraints is None else t.constraints[j]) for t in trials
        ]
    further["status"] = [t.status for t in trials]
    for name, column in further.items():
        add_column(table, name, column)
    return table


def add_column(table: pd.DataFrame, name: str, column: Sequence[object]) -> None:
    """Add a column on the right, under a name that no variable has."""
    while name in table.columns:
        name += "_"
    table[name] = column


def numbered(letter: str, values: Tensor) -> pd.DataFrame:
    """Columns without names, ``m x d``, as ``x1, x2, ...``."""
    import pandas as pd

    names = [f"{letter}{j + 1}" for j in range(values.shape[-1])]
    return pd.DataFrame(values.cpu().numpy(), columns=names)


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


Limits: TypeAlias = Mapping[str, tuple[float | None, float | None]]
"""Measured columns by name, with a lower and an upper limit, one of them or both."""
_WITHOUT_OUTCOME = ("pending", "failed", "withdrawn")


@dataclass(frozen=True)
class _Kind:
    """What is known of a row; neighbours with the same kind are told together."""

    # Whether its context was observed.
    has_contexts: bool
    # Whether it has one.
    has_outcome: bool
    # Whether its limits were measured.
    is_measured: bool
    # Whether it will never have an outcome.
    failed: bool
    # Whether it does not count.
    withdrawn: bool


def read_events(
    df: Any,
    space: Space,
    limits: Limits | None = None,
    status: str | None = None,
) -> list[Ask | Tell]:
    """The trials of a table in its order, which is the order of their contexts."""
    limits = check_limits(limits or {}, space)
    _check_columns(df, space, [*limits, *([] if status is None else [status])])
    words = _statuses(df, space, status)
    _check_failed(df, space, limits, words)
    kept = [i for i, word in enumerate(words) if word != "withdrawn"]
    _check_contexts(df, space, kept)
    kinds = _kinds(df, space, limits, words)
    events: list[Ask | Tell] = []
    for kind, positions in groupby(range(len(df)), key=kinds.__getitem__):
        if not kind.withdrawn:
            events += _events(df.iloc[list(positions)], space, limits, kind)
    return events


def check_limits(limits: Limits, space: Space) -> Limits:
    """Return the limits of measured columns, if they are some."""
    name = "outcome_constraints"
    if not isinstance(limits, Mapping):
        raise InputDataError(
            f"`{name}` must be a dictionary such as {{'runoff': (None, 9)}}, got "
            f"{limits!r}."
        )
    for column, pair in limits.items():
        place = f"`{name}` of `{column}`"
        if column in space.decisions or column in space.contexts:
            raise InputDataError(
                f"{place}: it is no column that is measured. Of decisions there are "
                "`constraints`; a context is met, and not limited."
            )
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputDataError(
                f"{place} must be a pair (lower, upper), None for the end that is "
                f"open, got {pair!r}."
            )
        lower, upper = pair
        ends = [end for end in pair if end is not None]
        if not ends or not all(map(is_finite_number, ends)):
            raise InputDataError(
                f"{place} must have a number as lower or upper limit, or both, and "
                f"None for the end that is open, got {pair!r}."
            )
        if lower is not None and upper is not None and not lower < upper:
            raise InputDataError(
                f"{place} must have its lower limit below its upper one, got {pair!r}."
            )
    return limits


def _check_columns(df: Any, space: Space, further: Sequence[str]) -> None:
    if not hasattr(df, "columns") or not hasattr(df, "loc"):
        raise InputDataError(f"`df` must be a DataFrame, got {type(df).__name__}.")
    for name in (*space.decisions, *space.contexts, space.outcome, *further):
        if name not in df.columns:
            columns = list(map(str, df.columns))
            raise InputDataError(
                f"`df` has no column `{name}`. It has {list(df.columns)}."
                f"{did_you_mean(name, columns)}"
            )
        if list(df.columns).count(name) > 1:
            raise InputDataError(f"`df` has the column `{name}` more than once.")


def _statuses(df: pd.DataFrame, space: Space, column: str | None) -> list[str]:
    """The status of each row in small letters; empty where nothing is said."""
    if column is None:
        return [""] * len(df)
    words = [
        str(word).strip().lower() if filled else ""
        for word, filled in zip(df[column], _filled(df, [column])[column], strict=True)
    ]
    filled = _filled(df, [space.outcome])
    for i, (word, told) in enumerate(zip(words, filled[space.outcome], strict=True)):
        place = cell("df", row_names(df), i, column)
        if told and word in ("pending", "failed"):
            raise InputDataError(
                f"{place} is {word!r}, but the row has an outcome in the column "
                f"`{space.outcome}`. Empty one of the two cells."
            )
        if not told and word and word not in _WITHOUT_OUTCOME:
            near = did_you_mean(word, _WITHOUT_OUTCOME)
            raise InputDataError(
                f"{place} is {word!r}, and the row has no outcome. Then it is empty or "
                f"one of {list(_WITHOUT_OUTCOME)}.{near}"
            )
    return words


def _check_failed(
    df: pd.DataFrame, space: Space, limits: Limits, words: Sequence[str]
) -> None:
    """Check that measured limits of a failed row have a context."""
    filled = _filled(df, [*space.contexts, *limits])
    for i, word in enumerate(words):
        empty = next((name for name in space.contexts if not filled[name][i]), None)
        measured = any(filled[name][i] for name in limits)
        if word == "failed" and empty is not None and measured:
            raise InputDataError(
                f"{cell('df', row_names(df), i, empty)} is empty, but limits of the "
                "row were measured before it failed. Fill in the contexts that it met; "
                "write 'withdrawn' in place of 'failed' if it was never tried."
            )


def _check_contexts(df: pd.DataFrame, space: Space, kept: Sequence[int]) -> None:
    """A row has all of its contexts, or none of them and no outcome."""
    filled = _filled(df, [*space.contexts, space.outcome])
    places = []
    for i in kept:
        empty = [name for name in space.contexts if not filled[name][i]]
        if empty and (filled[space.outcome][i] or len(empty) < len(space.contexts)):
            places.append(cell("df", row_names(df), i, empty[0]))
    if places:
        also = ""
        if more := len(places) - 1:
            also = f" So is a cell of {counted(more, 'more row')}."
        raise InputDataError(
            f"{places[0]} is empty, but the row has other contexts or an outcome. Fill "
            "it in, or leave out the row (`withdrawn` in its status); only a row whose "
            "context is not known at all may leave its contexts and its outcome "
            f"empty.{also}"
        )


def _kinds(
    df: pd.DataFrame, space: Space, limits: Limits, words: Sequence[str]
) -> list[_Kind]:
    filled = _filled(df, [*space.contexts, space.outcome, *limits])
    kinds: list[_Kind] = []
    partly: list[int] = []
    for i, word in enumerate(words):
        failed, withdrawn = word == "failed", word == "withdrawn"
        has_outcome = filled[space.outcome][i]
        measured = [filled[name][i] for name in limits]
        # Before its outcome is known a trial is not over, and its limits wait.
        is_over = not withdrawn and (has_outcome or failed)
        kind = _Kind(
            has_contexts=all(filled[name][i] for name in space.contexts),
            has_outcome=has_outcome,
            is_measured=is_over and bool(measured) and all(measured),
            failed=failed,
            withdrawn=withdrawn,
        )
        kinds.append(kind)
        if is_over and any(measured) and not all(measured):
            partly.append(i)
    if partly:
        rows = row_names(df) or []
        shown = ", ".join(rows[i] for i in partly[:6]) + ", ..." * (len(partly) > 6)
        warnings.warn(
            f"In {shown} some of {list(limits)} are measured and some are empty. "
            "The limits are learnt only from rows in which all are measured; from "
            "these rows only the outcome is learnt.",
            BotorchWarning,
            stacklevel=4,
        )
    return kinds


def _filled(df: pd.DataFrame, names: Sequence[str]) -> dict[str, list[bool]]:
    """Whether each cell of some columns has anything in it."""
    return {name: [bool(filled) for filled in df[name].notna()] for name in names}


def _events(
    df: pd.DataFrame, space: Space, limits: Limits, kind: _Kind
) -> list[Ask | Tell]:
    x = to_tensor(df, space.decisions, "df")
    asked = not kind.has_outcome
    events: list[Ask | Tell] = [Ask(x=x)] if asked else []
    if not kind.has_contexts and not kind.failed:
        return events
    y, outcome = None, space.outcome
    if kind.has_outcome:
        y = to_outcomes(df[outcome], outcome, "df")
    told = Tell(
        x=x,
        c=to_tensor(df, space.contexts, "df") if kind.has_contexts else None,
        y=y,
        constraints=_room(df, limits) if kind.is_measured else None,
        failed=kind.failed,
        closes_pending=asked,
        outcome=outcome,
    )
    return [*events, told]


def _room(df: pd.DataFrame, limits: Limits) -> Tensor:
    """How much is left to each limit, ``m x k``, not negative where it is met."""
    columns = []
    for name, (lower, upper) in limits.items():
        values = to_outcomes(df[name], name, "df")
        assert values is not None
        columns += [] if lower is None else [values - lower]
        columns += [] if upper is None else [upper - values]
    return torch.stack(columns, dim=-1)
