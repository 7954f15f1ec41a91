"""What an optimizer of named variables reads and returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, final

import torch
from torch import Tensor

from botorch_drbo._validation import as_numbers
from botorch_drbo.optimizer.trials import Trial
from botorch_drbo.problem import SearchSpace
from botorch_drbo.space import Space
from botorch_drbo.space.table import to_frame, to_outcomes, to_tensor

if TYPE_CHECKING:
    import pandas as pd

Table: TypeAlias = "pd.DataFrame | Mapping[str, object] | Tensor"
"""A DataFrame, columns (or one row) by name, or a tensor with the columns in order."""
Outcomes: TypeAlias = (
    "float | Sequence[float] | pd.Series | pd.DataFrame | Mapping[str, object] | Tensor"
)
"""A number, numbers, or a table with a column of them."""


@final
@dataclass(frozen=True)
class Tables:
    """Between the tables of a space and the tensors of an optimizer.

    Attributes:
        space: The space of named variables.
    """

    space: Space

    def read_decisions(self, x: Table, name: str) -> Tensor:
        """Decisions as the model sees them, ``m x d_x``."""
        return to_tensor(x, self.space.decisions, name)

    def read_contexts(self, c: Table, name: str) -> Tensor:
        """Contexts as the model sees them, ``m x d_c``."""
        return to_tensor(c, self.space.contexts, name)

    def read_known(self, c: Table, name: str) -> Tensor:
        """Contexts of which some columns are known, ``m x d_c``, NaN in the others."""
        return to_tensor(c, self.space.contexts, name, partly=True)

    def read_outcomes(self, y: Outcomes | None, name: str) -> Tensor | None:
        """Outcomes or their variances, ``m``."""
        return to_outcomes(y, self.space.outcome, name)

    def read_constraints(self, constraints: Outcomes | None) -> Tensor | float | None:
        """Values of outcome constraints; of a table its numbers, ``m x k``."""
        if constraints is None or isinstance(constraints, Tensor | float | int):
            return constraints
        return as_numbers(
            constraints, "`constraints` must be numbers, a column for each constraint"
        ).double()

    def decisions(self, x: Tensor) -> pd.DataFrame:
        """Decisions in the user's words."""
        return to_frame(x, self.space.decisions)

    def contexts(self, c: Tensor) -> pd.DataFrame:
        """Contexts in the user's words."""
        return to_frame(c, self.space.contexts)

    def policy(self, contexts: Tensor, decisions: Tensor) -> pd.DataFrame:
        """A decision for each context, beside it."""
        import pandas as pd

        parts = [self.contexts(contexts), self.decisions(decisions)]
        return pd.concat(parts, axis=1)

    def predictions(
        self, x: Tensor, c: Tensor, mean: Tensor, variance: Tensor
    ) -> pd.DataFrame:
        """Mean and standard deviation beside decisions and contexts."""
        import pandas as pd

        num = len(mean)
        parts = [
            self.decisions(x.expand(num, -1)),
            self.contexts(c.expand(num, -1)),
        ]
        table = pd.concat(parts, axis=1)
        _add(table, "mean", mean.tolist())
        _add(table, "sd", variance.sqrt().tolist())
        return table

    def history(self, trials: Sequence[Trial]) -> pd.DataFrame:
        """A row for each trial whose context is known, labelled by its number."""
        known = [t for t in trials if t.c is not None and t.status != "withdrawn"]
        return self._outcomes(known)

    def all_trials(self, trials: Sequence[Trial]) -> pd.DataFrame:
        """A row for each trial, with all that was told of it, and its status."""
        return _with_details(self._outcomes(trials), trials, self.space.outcome)

    def _outcomes(self, trials: Sequence[Trial]) -> pd.DataFrame:
        x, c = _tensors(trials, self.space.search_space)
        parts = [self.decisions(x), self.contexts(c)]
        return _with_outcomes(parts, trials, self.space.outcome)


def numbered_table(trials: Sequence[Trial], box: SearchSpace) -> pd.DataFrame:
    """All trials of variables without names, as ``x1, ..., c1, ..., outcome``."""
    x, c = _tensors(trials, box)
    table = _with_outcomes([_numbered(x, "x"), _numbered(c, "c")], trials, "outcome")
    return _with_details(table, trials, "outcome")


def _tensors(trials: Sequence[Trial], box: SearchSpace) -> tuple[Tensor, Tensor]:
    """Decisions and contexts, NaN where nothing was told."""
    unknown = torch.full_like(box.context_bounds[0], torch.nan)
    x = torch.stack([t.x for t in trials]) if trials else box.bounds[:0]
    c = [unknown if t.c is None else t.c for t in trials]
    return x, torch.stack(c) if c else box.context_bounds[:0]


def _with_outcomes(
    parts: list[pd.DataFrame], trials: Sequence[Trial], outcome: str
) -> pd.DataFrame:
    import pandas as pd

    table = pd.concat(parts, axis=1)
    table[outcome] = pd.Series([_number(t.y) for t in trials], dtype="float64")
    table.index = pd.Index([t.number for t in trials], name="trial")
    return table


def _with_details(
    table: pd.DataFrame, trials: Sequence[Trial], outcome: str
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
        _add(table, name, column)
    return table


def _add(table: pd.DataFrame, name: str, column: Sequence[object]) -> None:
    """Add a column on the right, under a name that no variable has."""
    while name in table.columns:
        name += "_"
    table[name] = column


def _numbered(values: Tensor, letter: str) -> pd.DataFrame:
    """Columns without names, ``m x d``, as ``x1, x2, ...``."""
    import pandas as pd

    names = [f"{letter}{j + 1}" for j in range(values.shape[-1])]
    return pd.DataFrame(values.cpu().numpy(), columns=names)


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
