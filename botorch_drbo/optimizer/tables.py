"""What an optimizer reads and returns: tables if its variables have names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo.algorithms import Recommendation, Round, SearchSpace
from botorch_drbo.contexts import ContextSet
from botorch_drbo.optimizer.trials import Trial
from botorch_drbo.space import NamedRecommendation, Space
from botorch_drbo.space.table import cell, row_names, to_frame, to_outcomes, to_tensor

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Tables:
    """Tables of a space; without one all tensors stay as they are.

    Attributes:
        space: The space of named variables, or None.
    """

    space: Space | None

    def read_decisions(self, x: Any, name: str) -> Any:
        """Decisions as the model sees them, ``m x d_x``."""
        return x if self.space is None else to_tensor(x, self.space.decisions, name)

    def read_contexts(self, c: Any, name: str) -> Any:
        """Contexts as the model sees them, ``m x d_c``."""
        return c if self.space is None else to_tensor(c, self.space.contexts, name)

    def read_known(self, c: Any, name: str) -> Any:
        """Contexts of which some columns are known, ``m x d_c``, NaN in the others."""
        if self.space is None:
            return c
        return to_tensor(c, self.space.contexts, name, partly=True)

    def this_round(
        self, context_set: ContextSet | None, radius: float | None, context: Any
    ) -> Round:
        """What is known about a round."""
        named = self.space is not None
        if named and not (context_set is None or isinstance(context_set, ContextSet)):
            raise InputDataError(
                f"`context_set` must be a ContextSet, got {type(context_set).__name__}."
                " Make one of the table: `space.context_set(table, weights=...)`."
            )
        if context is not None:
            context = self.read_known(context, "context")
        return Round(context_set, radius, context)

    def read_outcomes(self, y: Any, name: str) -> Any:
        """Outcomes or their variances, ``m``."""
        return y if self.space is None else to_outcomes(y, self.space.outcome, name)

    def read_constraints(self, constraints: Any) -> Any:
        """Values of outcome constraints; of a table its numbers, ``m x k``."""
        if self.space is None or isinstance(constraints, Tensor | float | int):
            return constraints
        import numpy as np

        try:
            numbers = np.asarray(constraints, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputDataError(
                f"`constraints` must be numbers, a column for each constraint: {error}."
            ) from error
        return torch.from_numpy(numbers.copy())

    def decisions(self, x: Tensor) -> Any:
        """Decisions in the user's words."""
        return x if self.space is None else to_frame(x, self.space.decisions)

    def contexts(self, c: Tensor) -> Any:
        """Contexts in the user's words."""
        return c if self.space is None else to_frame(c, self.space.contexts)

    def policy(self, contexts: Tensor, decisions: Tensor) -> Any:
        """A decision for each context, beside it if there are names."""
        if self.space is None:
            return decisions
        import pandas as pd

        parts = [self.contexts(contexts), self.decisions(decisions)]
        return pd.concat(parts, axis=1)

    def recommendation(self, found: Recommendation) -> Any:
        """A recommendation in the user's words."""
        return (
            found if self.space is None else NamedRecommendation.of(found, self.space)
        )

    def history(self, trials: Sequence[Trial]) -> pd.DataFrame:
        """A row for each trial whose context is known, labelled by its number."""
        if self.space is None:
            raise InputDataError("Only named variables have a table.")
        known = [t for t in trials if t.c is not None and t.status != "withdrawn"]
        return self._trials(known, self.space.search_space)

    def all_trials(self, trials: Sequence[Trial], box: SearchSpace) -> pd.DataFrame:
        """A row for each trial, with all that was told of it, and its status."""
        table = self._trials(trials, box)
        outcome = table.columns[-1]
        further: dict[str, list[object]] = {}
        if any(t.y_variance is not None for t in trials):
            further[f"{outcome}_variance"] = [_number(t.y_variance) for t in trials]
        measured = [t.constraints for t in trials if t.constraints is not None]
        for j in range(len(measured[0]) if measured else 0):
            further[f"constraint{j + 1}"] = [
                _number(None if t.constraints is None else t.constraints[j])
                for t in trials
            ]
        further["status"] = [t.status for t in trials]
        for name, column in further.items():
            while name in table.columns:  # a variable has this name
                name += "_"
            table[name] = column
        return table

    def _trials(self, trials: Sequence[Trial], box: SearchSpace) -> pd.DataFrame:
        """Decisions, contexts and outcomes, NaN where nothing was told."""
        import pandas as pd

        unknown = torch.full_like(box.context_bounds[0], torch.nan)
        x = torch.stack([t.x for t in trials]) if trials else box.bounds[:0]
        c = [unknown if t.c is None else t.c for t in trials]
        contexts = torch.stack(c) if c else box.context_bounds[:0]
        if self.space is None:
            parts = [_numbered(x, "x"), _numbered(contexts, "c")]
            outcome = "outcome"
        else:
            parts = [self.decisions(x), self.contexts(contexts)]
            outcome = self.space.outcome
        table = pd.concat(parts, axis=1)
        table[outcome] = pd.Series([_number(t.y) for t in trials], dtype="float64")
        table.index = pd.Index([t.number for t in trials], name="trial")
        return table


def _numbered(values: Tensor, letter: str) -> pd.DataFrame:
    """Columns without names, ``m x d``, as ``x1, x2, ...``."""
    import pandas as pd

    names = [f"{letter}{j + 1}" for j in range(values.shape[-1])]
    return pd.DataFrame(values.cpu().numpy(), columns=names)


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a table that were told together.

    Attributes:
        x: Decisions, ``m x d_x``.
        c: Contexts, ``m x d_c``; None if the world has not shown them.
        y: Outcomes, ``m``; None if they are out.
        asked: Whether they are pending.
    """

    x: Tensor
    c: Tensor | None
    y: Tensor | None
    asked: bool


def read_trials(df: Any, space: Space) -> list[Rows]:
    r"""The trials of a table in its order, which is the order of their contexts.

    Args:
        df: A DataFrame with a column for each variable and the outcome.
        space: The variables.

    Returns:
        Neighbouring rows of which as much is known: an outcome, a context, neither.

    Raises:
        InputDataError: No DataFrame, a missing column, or a value that is missing or
            wrong; the message names the row and the column.
    """
    if not hasattr(df, "columns") or not hasattr(df, "loc"):
        raise InputDataError(f"`df` must be a DataFrame, got {type(df).__name__}.")
    contexts = list(space.contexts)
    names = [*space.decisions, *contexts, space.outcome]
    missing = [name for name in names if name not in df.columns]
    if missing:
        raise InputDataError(
            f"`df` has no column `{missing[0]}`. It has {list(df.columns)}."
        )
    twice = [name for name in names if list(df.columns).count(name) > 1]
    if twice:
        raise InputDataError(f"`df` has the column `{twice[0]}` more than once.")
    has_y = df[space.outcome].notna()
    has_c = df[contexts].notna()
    partly = has_c.any(axis=1) & ~has_c.all(axis=1) | (has_y & ~has_c.all(axis=1))
    if partly.any():
        i = int(partly.to_numpy().argmax())
        empty = next(name for name in contexts if not has_c[name].iloc[i])
        raise InputDataError(
            f"{cell('df', row_names(df), i, empty)} is empty, but the row has other "
            "contexts or an outcome. Fill it in; only a row whose context is not known "
            "at all may leave its contexts and its outcome empty."
        )
    known = list(zip(has_c.all(axis=1), has_y, strict=True))
    groups = groupby(range(len(df)), key=known.__getitem__)
    return [
        _rows(df.iloc[list(places)], space, with_c=with_c, with_y=with_y)
        for (with_c, with_y), places in groups
    ]


def _rows(df: pd.DataFrame, space: Space, *, with_c: bool, with_y: bool) -> Rows:
    outcome = space.outcome
    return Rows(
        x=to_tensor(df, space.decisions, "df"),
        c=to_tensor(df, space.contexts, "df") if with_c else None,
        y=to_outcomes(df[outcome], outcome, "df") if with_y else None,
        asked=not with_y,
    )
