"""What a user says and is told: tensors as they are, tables of named variables."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Never, Protocol, TypeAlias, TypeVar, cast, final

import numpy as np
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo._validation import as_numbers
from botorch_drbo.contexts import ContextSet
from botorch_drbo.optimizer.events import Tell
from botorch_drbo.optimizer.ledger import Ledger
from botorch_drbo.optimizer.tables import (
    add_column,
    numbered_table,
    outcome_table,
    with_details,
)
from botorch_drbo.optimizer.trials import Trial
from botorch_drbo.problem import History, Round, SearchSpace
from botorch_drbo.problem.round import RoundRadius
from botorch_drbo.recommendation import Recommendation
from botorch_drbo.space import NamedRecommendation, Space
from botorch_drbo.space.table import to_frame, to_outcomes, to_tensor

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Evaluation:
    """The user's function as a worker calls it: plain data in and out.

    Tensors would be sent through shared memory, which a worker that dies takes along.
    """

    # The function.
    evaluate: Callable[..., object]
    # That of its arguments, which are tensors; None if they are dictionaries.
    dtype: torch.dtype | None = None

    def __call__(self, *arguments: Any) -> object:
        """Call it with a decision, and a context if that is chosen."""
        if self.dtype is None:
            return _plain(self.evaluate(*arguments))
        tensors = (torch.tensor(a, dtype=self.dtype) for a in arguments)
        return _plain(self.evaluate(*tensors))


def _plain(value: Any) -> object:
    """The same without tensors."""
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        short = value.is_floating_point() and value.dtype.itemsize < 4  # not in NumPy
        return (value.double() if short else value).numpy()
    if isinstance(value, tuple | list):
        return (
            type(value)(map(_plain, value)) if type(value) in (tuple, list) else value
        )
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    return value


def as_tell(
    result: Any,
    x: Tensor,
    chosen: Tensor | None,
    read_context: Callable[[Any], Tensor],
) -> Tell:
    """What a user's function returned, as it is told."""
    if isinstance(result, tuple | list) and len(result) in (2, 3):
        c, y, *further = result
        c = read_context(c)
    elif chosen is not None and not isinstance(result, tuple | list | Mapping):
        c, y, further = chosen, result, []
    else:
        raise InputDataError(
            "`evaluate` must return (c, y) or (c, y, constraints): the context that "
            f"occurred, the outcome, and the measured constraints. It returned "
            f"{result!r:.200}."
        )
    y = as_returned(y, "y")
    if y.numel() != 1:
        raise InputDataError(
            f"`evaluate` must return one outcome `y`, got {y.numel()} numbers."
        )
    constraints = None
    if further and further[0] is not None:
        constraints = as_returned(further[0], "constraints").reshape(1, -1)
    return Tell(x=x, c=c, y=y.reshape(1), constraints=constraints)


def as_returned(value: Any, name: str) -> Tensor:
    """Numbers of any kind as a tensor of their shape."""
    return as_numbers(value, f"`evaluate` must return numbers as `{name}`")


Table: TypeAlias = "pd.DataFrame | Mapping[str, object] | Tensor"
"""A DataFrame, columns (or one row) by name, or a tensor with the columns in order."""
Outcomes: TypeAlias = (
    "float | Sequence[float] | pd.Series | pd.DataFrame | Mapping[str, object] | Tensor"
)
"""A number, numbers, or a table with a column of them."""
_Value = TypeVar("_Value")
Given = TypeVar("Given", contravariant=True)
"""How decisions and contexts are given."""
Rows = TypeVar("Rows", covariant=True)
"""How they are returned."""
Observed = TypeVar("Observed", covariant=True)
"""What the history is."""
Advice = TypeVar("Advice", covariant=True)
"""What a recommendation is."""
Predicted = TypeVar("Predicted", covariant=True)
"""What a prediction is."""


class Translation(Protocol[Given, Rows, Observed, Advice, Predicted]):
    """From a user's decisions and contexts to tensors of a model, and back."""

    @abstractmethod
    def read_decisions(self, x: Given, name: str, /) -> Tensor:
        """Decisions as the model sees them, ``m x d_x``."""

    @abstractmethod
    def read_contexts(self, c: Given, name: str, /) -> Tensor:
        """Contexts as the model sees them, ``m x d_c``."""

    @abstractmethod
    def read_partly(self, contexts: Given, /) -> Tensor:
        """Contexts of which some columns are known, ``m x d_c``, NaN in the others."""

    @abstractmethod
    def read_round(
        self,
        context_set: ContextSet | None,
        radius: RoundRadius | None,
        context: Given | None,
    ) -> Round:
        """What is known about a round."""

    @abstractmethod
    def read_outcomes(self, y: Outcomes | None, name: str, /) -> Tensor | float | None:
        """Outcomes or their variances, ``m``."""

    @abstractmethod
    def read_constraints(self, values: Outcomes | None, /) -> Tensor | float | None:
        """Values of outcome constraints, ``m x k``."""

    @abstractmethod
    def decisions(self, x: Tensor, /) -> Rows:
        """Decisions in the user's words."""

    @abstractmethod
    def contexts(self, c: Tensor, /) -> Rows:
        """Contexts in the user's words."""

    @abstractmethod
    def policy(self, contexts: Tensor, decisions: Tensor) -> Rows:
        """A decision for each context."""

    @abstractmethod
    def predictions(
        self, x: Tensor, c: Tensor, mean: Tensor, variance: Tensor
    ) -> Predicted:
        """Mean and variance of the outcome."""

    @abstractmethod
    def history(self, ledger: Ledger) -> Observed:
        """The observations so far, in the user's sign."""

    @abstractmethod
    def all_trials(self, trials: Sequence[Trial]) -> pd.DataFrame:
        """A row for each trial, with all that was told of it, and its status."""

    @abstractmethod
    def recommendation(self, found: Recommendation, /) -> Advice:
        """The decision to implement."""

    @abstractmethod
    def function(self, evaluate: Callable[..., object]) -> Evaluation:
        """The user's function as a worker calls it."""

    @abstractmethod
    def arguments(self, x: Tensor, c: Tensor | None) -> tuple[object, ...]:
        """What it is called with for a decision, and for a context if it is chosen."""

    @abstractmethod
    def returned_context(self, c: Any) -> Tensor:
        """A context that it returned, ``1 x d_c``."""


AnyTranslation: TypeAlias = "Translation[Never, object, object, object, object]"


def _same(value: _Value, name: str = "") -> _Value:
    return value


def _told(value: Outcomes | None, name: str = "") -> Tensor | float | None:
    # What is no tensor and no number is refused where it is told.
    return cast("Tensor | float | None", value)


@final
@dataclass(frozen=True)
class Tensors:
    """Tensors as the model sees them: nothing is translated."""

    # The boxes of decisions and contexts.
    space: SearchSpace
    read_decisions = read_contexts = staticmethod(_same)
    read_outcomes = read_constraints = staticmethod(_told)
    decisions = contexts = staticmethod(_same)

    def read_partly(self, contexts: Tensor) -> Tensor:
        """The same, if it is a matrix."""
        shape = contexts.shape if isinstance(contexts, Tensor) else None
        if shape is None or len(shape) != 2 or not len(contexts):
            got = type(contexts).__name__ if shape is None else f"shape {tuple(shape)}"
            raise BotorchTensorDimensionError(
                f"`contexts` must be `m x {self.space.d_c}`, one context in each row, "
                f"got {got}."
            )
        return contexts

    def read_round(
        self,
        context_set: ContextSet | None,
        radius: RoundRadius | None,
        context: Tensor | None,
    ) -> Round:
        """What is known about a round."""
        return Round(context_set, radius, context)

    def policy(self, contexts: Tensor, decisions: Tensor) -> Tensor:
        """The decisions alone."""
        return decisions

    def predictions(
        self, x: Tensor, c: Tensor, mean: Tensor, variance: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Mean and variance."""
        return mean, variance

    def history(self, ledger: Ledger) -> History:
        """A copy."""
        return copy.deepcopy(ledger.history)

    def all_trials(self, trials: Sequence[Trial]) -> pd.DataFrame:
        """Columns ``x1, ..., c1, ...``."""
        return numbered_table(trials, self.space)

    def recommendation(self, found: Recommendation) -> Recommendation:
        """The same."""
        return found

    def function(self, evaluate: Callable[..., object]) -> Evaluation:
        """The function, called with tensors."""
        return Evaluation(evaluate, self.space.bounds.dtype)

    def arguments(self, x: Tensor, c: Tensor | None) -> tuple[object, ...]:
        """The decision and the context as lists of numbers."""
        return (x.tolist(),) if c is None else (x.tolist(), c.tolist())

    def returned_context(self, c: Any) -> Tensor:
        """A context from numbers of any kind, ``1 x d_c``."""
        numbers = as_returned(c, "c")
        return numbers.reshape(1) if numbers.ndim == 0 else numbers


@final
@dataclass(frozen=True)
class Tables:
    """Tables in the names and units of a space."""

    # The space of named variables.
    space: Space

    def read_decisions(self, x: Table, name: str) -> Tensor:
        """Decisions as the model sees them, ``m x d_x``."""
        return to_tensor(x, self.space.decisions, name)

    def read_contexts(self, c: Table, name: str) -> Tensor:
        """Contexts as the model sees them, ``m x d_c``."""
        return to_tensor(c, self.space.contexts, name)

    def read_partly(self, contexts: Table, name: str = "contexts") -> Tensor:
        """Contexts of which some columns are known, ``m x d_c``, NaN in the others."""
        return to_tensor(contexts, self.space.contexts, name, partly=True)

    def read_round(
        self,
        context_set: ContextSet | None,
        radius: RoundRadius | None,
        context: Table | None,
    ) -> Round:
        """What is known about a round; no table, whose weights are not known."""
        if context_set is not None and not isinstance(context_set, ContextSet):
            raise InputDataError(
                f"`context_set` must be a ContextSet, got {type(context_set).__name__}."
                " Make one of the table: `space.context_set(table, weights=...)`."
            )
        known = None if context is None else self.read_partly(context, "context")
        return Round(context_set, radius, known)

    def read_outcomes(self, y: Outcomes | None, name: str) -> Tensor | None:
        """Outcomes or their variances, ``m``."""
        return to_outcomes(y, self.space.outcome, name)

    def read_constraints(self, values: Outcomes | None) -> Tensor | float | None:
        """Values of outcome constraints; of a table its numbers, ``m x k``."""
        if values is None or isinstance(values, Tensor | float | int):
            return values
        return as_numbers(
            values, "`constraints` must be numbers, a column for each constraint"
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

        return pd.concat([self.contexts(contexts), self.decisions(decisions)], axis=1)

    def predictions(
        self, x: Tensor, c: Tensor, mean: Tensor, variance: Tensor
    ) -> pd.DataFrame:
        """Mean and standard deviation beside decisions and contexts."""
        import pandas as pd

        table = pd.concat([self.decisions(x), self.contexts(c)], axis=1)
        add_column(table, "mean", mean.tolist())
        add_column(table, "sd", variance.sqrt().tolist())
        return table

    def history(self, ledger: Ledger) -> pd.DataFrame:
        """A row for each trial whose context is known, labelled by its number."""
        trials = ledger.trials
        known = [t for t in trials if t.c is not None and t.status != "withdrawn"]
        return self._outcomes(known)

    def all_trials(self, trials: Sequence[Trial]) -> pd.DataFrame:
        """A row for each trial, with all that was told of it, and its status."""
        return with_details(self._outcomes(trials), trials, self.space.outcome)

    def recommendation(self, found: Recommendation) -> NamedRecommendation:
        """The decision to implement, in the user's words."""
        return NamedRecommendation.of(found, self.space)

    def function(self, evaluate: Callable[..., object]) -> Evaluation:
        """The function, called with dictionaries."""
        return Evaluation(evaluate)

    def arguments(self, x: Tensor, c: Tensor | None) -> tuple[object, ...]:
        """The decision and the context by name, in the user's units."""
        tables = [self.decisions(x.unsqueeze(0))]
        if c is not None:
            tables.append(self.contexts(c.unsqueeze(0)))
        return tuple(table.to_dict("records")[0] for table in tables)

    def returned_context(self, c: Any) -> Tensor:
        """A context by name, ``1 x d_c``."""
        c = as_returned(c, "c") if isinstance(c, np.ndarray) else c
        return self.read_contexts(c, "c")

    def _outcomes(self, trials: Sequence[Trial]) -> pd.DataFrame:
        space = self.space
        columns = self.decisions, self.contexts
        return outcome_table(trials, space.search_space, *columns, space.outcome)
