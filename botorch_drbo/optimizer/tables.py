"""Trials as tables, in names of columns or in numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from botorch_drbo.optimizer.trials import Trial
from botorch_drbo.problem import SearchSpace

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
