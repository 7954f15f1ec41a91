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
class _Row:
    """What is filled in of a row."""

    # Its status in small letters; empty where nothing is said.
    word: str
    # The contexts that were not observed.
    empty: tuple[str, ...]
    # Whether it has an outcome.
    has_outcome: bool
    # Of each limit whether it was measured.
    measured: tuple[bool, ...]

    @property
    def is_over(self) -> bool:
        """Before its outcome is known a trial is not over, and its limits wait."""
        return self.word != "withdrawn" and (self.has_outcome or self.word == "failed")

    @property
    def is_measured(self) -> bool:
        """Whether its limits were."""
        return self.is_over and bool(self.measured) and all(self.measured)

    @property
    def kind(self) -> tuple[object, ...]:
        """Neighbours of the same kind are told together."""
        ended = self.word if self.word in ("failed", "withdrawn") else ""
        return ended, self.empty, self.has_outcome, self.is_measured


def read_events(
    df: Any,
    space: Space,
    limits: Limits | None = None,
    status: str | None = None,
) -> list[Ask | Tell]:
    """The trials of a table in its order, which is the order of their contexts."""
    limits = check_limits(limits or {}, space)
    _check_columns(df, space, [*limits, *([] if status is None else [status])])
    rows = _rows(df, space, limits, status)
    _check_rows(df, space, rows, status)
    _warn_of_partly_measured(df, limits, rows)
    events: list[Ask | Tell] = []
    for _, group in groupby(range(len(df)), key=lambda i: rows[i].kind):
        positions = list(group)
        row = rows[positions[0]]
        if row.word != "withdrawn":
            events += _events(df.iloc[positions], space, limits, row)
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
            raise InputDataError(
                f"`df` has no column `{name}`. It has {list(df.columns)}."
                f"{did_you_mean(name, df.columns)}"
            )
        if list(df.columns).count(name) > 1:
            raise InputDataError(f"`df` has the column `{name}` more than once.")


def _rows(
    df: pd.DataFrame, space: Space, limits: Limits, status: str | None
) -> list[_Row]:
    names = (*space.contexts, space.outcome, *limits)
    filled = {name: df[name].notna().tolist() for name in names}
    words = [""] * len(df)
    if status is not None:
        told = zip(df[status], df[status].notna(), strict=True)
        words = [str(w).strip().lower() if filled else "" for w, filled in told]
    return [
        _Row(
            word,
            tuple(name for name in space.contexts if not filled[name][i]),
            filled[space.outcome][i],
            tuple(filled[name][i] for name in limits),
        )
        for i, word in enumerate(words)
    ]


def _check_rows(
    df: pd.DataFrame, space: Space, rows: Sequence[_Row], status: str | None
) -> None:
    """Check that what is filled in of each row fits together."""
    names = row_names(df)
    for i, row in enumerate(rows):
        place = f"{cell('df', names, i, status or '')} is {row.word!r}"
        if row.has_outcome and row.word in ("pending", "failed"):
            raise InputDataError(
                f"{place}, but the row has an outcome in the column "
                f"`{space.outcome}`. Empty one of the two cells."
            )
        if not row.has_outcome and row.word and row.word not in _WITHOUT_OUTCOME:
            raise InputDataError(
                f"{place}, and the row has no outcome. Then it is empty or one of "
                f"{list(_WITHOUT_OUTCOME)}.{did_you_mean(row.word, _WITHOUT_OUTCOME)}"
            )
    for i, row in enumerate(rows):
        if row.word == "failed" and row.empty and any(row.measured):
            raise InputDataError(
                f"{cell('df', names, i, row.empty[0])} is empty, but limits of the "
                "row were measured before it failed. Fill in the contexts that it met; "
                "write 'withdrawn' in place of 'failed' if it was never tried."
            )
    # A row has all of its contexts, or none of them and no outcome.
    places = [
        cell("df", names, i, row.empty[0])
        for i, row in enumerate(rows)
        if row.word != "withdrawn"
        and row.empty
        and (row.has_outcome or len(row.empty) < len(space.contexts))
    ]
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


def _warn_of_partly_measured(
    df: pd.DataFrame, limits: Limits, rows: Sequence[_Row]
) -> None:
    partly = [
        name
        for name, row in zip(row_names(df) or [], rows, strict=True)
        if row.is_over and any(row.measured) and not all(row.measured)
    ]
    if partly:
        warnings.warn(
            f"In {', '.join(partly[:6])}{', ...' * (len(partly) > 6)} some of "
            f"{list(limits)} are measured and some are empty. "
            "The limits are learnt only from rows in which all are measured; from "
            "these rows only the outcome is learnt.",
            BotorchWarning,
            stacklevel=4,
        )


def _events(
    df: pd.DataFrame, space: Space, limits: Limits, row: _Row
) -> list[Ask | Tell]:
    """Of rows of one kind."""
    x = to_tensor(df, space.decisions, "df")
    asked, failed = not row.has_outcome, row.word == "failed"
    events: list[Ask | Tell] = [Ask(x=x)] if asked else []
    if row.empty and not failed:
        return events
    outcome = space.outcome
    told = Tell(
        x=x,
        c=None if row.empty else to_tensor(df, space.contexts, "df"),
        y=None if asked else to_outcomes(df[outcome], outcome, "df"),
        constraints=_room(df, limits) if row.is_measured else None,
        failed=failed,
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
