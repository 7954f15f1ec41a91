"""A CSV file and the words of a command line as a problem that can be optimised."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from botorch.exceptions.errors import InputDataError

from botorch_drbo.cli.columns import (
    parse_constraint,
    parse_known,
    parse_radius,
    parse_variable,
)
from botorch_drbo.cli.csv_file import CsvFile
from botorch_drbo.contexts import ContextSet
from botorch_drbo.optimizer import NamedOptimizer
from botorch_drbo.space import Category, Integer, Space, Variable

WEIGHT = "weight"
"""The column of a forecast that says how likely a context is."""


@dataclass(frozen=True)
class Problem:
    """The trials of a file, and what its columns are.

    Attributes:
        file: The file.
        space: Its variables and constraints.
        notes: What was not said of a column, and was taken from the file.
    """

    file: CsvFile
    space: Space
    notes: list[str]

    @classmethod
    def parse(
        cls,
        decisions: Sequence[str],
        contexts: Sequence[str],
        outcome: str,
        constraints: Sequence[str] | None,
        data: Path,
    ) -> Problem:
        """Read the words of a command line, and the file.

        Raises:
            InputDataError: A word or a file that cannot be read.
        """
        file = CsvFile.read(data)
        chosen = _variables(decisions, file)
        limits = [parse_constraint(text, chosen) for text in constraints or ()]
        met = _variables(contexts, file)
        notes = file.notes + [
            f"{name}: {_in_words(name, variable)}"
            for name, variable in {**chosen, **met}.items()
            if name in (*decisions, *contexts)
        ]
        space = Space(chosen, met, outcome=outcome, constraints=limits)
        return cls(file, space, notes)

    def optimizer(
        self, *, minimize: bool, algorithm: str, surrogate: str | None, seed: int
    ) -> NamedOptimizer:
        """One that knows all rows of the file."""
        space, file = self.space, self.file
        variables: Mapping[str, Variable | None] = {
            **space.decisions,
            **space.contexts,
            space.outcome: None,
        }
        with _lines_of(file.path):
            return NamedOptimizer.from_dataframe(
                file.frame(variables),
                decisions=space.decisions,
                contexts=space.contexts,
                outcome=space.outcome,
                constraints=space.constraints,
                algorithm=algorithm,
                maximize=not minimize,
                # Nothing is kept but the file: each length of it has its own design.
                seed=seed + len(file.lines),
                surrogate=surrogate,
            )

    def check_outcomes(self) -> None:
        """Refuse to recommend from a file without an outcome.

        Raises:
            InputDataError: There is none.
        """
        if not any(self.file.column(self.space.outcome).values()):
            raise InputDataError(
                f"{self.file.path} has no outcome yet, from which anything could be "
                f"told. `suggest` decisions, and fill in `{self.space.outcome}`."
            )

    def this_round(
        self,
        forecast: Path | None,
        radius: Sequence[str] | None,
        known: Sequence[str] | None,
    ) -> dict[str, Any]:
        """What is known about the next round, as ``NamedOptimizer.ask`` takes it."""
        contexts = dict(self.space.contexts)
        pairs = [parse_known(text, contexts) for text in known or ()]
        return {
            "context_set": None if forecast is None else self._forecast(forecast),
            "radius": parse_radius(radius) if radius else None,
            "context": dict(pairs) or None,
        }

    def _forecast(self, path: Path) -> ContextSet:
        file = CsvFile.read(path)
        if not file.lines:
            raise InputDataError(f"{path} has no row, and so no context that may come.")
        weights = WEIGHT if WEIGHT in file.header else None
        numbers = {} if weights is None else {weights: None}
        with _lines_of(path):
            table = file.frame({**self.space.contexts, **numbers})
            return self.space.context_set(table, weights)


def _variables(words: Sequence[str], file: CsvFile) -> dict[str, Variable]:
    found: dict[str, Variable] = {}
    for word in words:
        name = word.partition("=")[0].strip()
        if name in found:
            raise InputDataError(f"`{name}` is given twice.")
        if not name or name not in file.header:
            near = get_close_matches(name, file.header, n=1)
            raise InputDataError(
                f"{file.path} has no column `{name}`. It has {file.header}."
                + (f" Did you mean `{near[0]}`?" if near else "")
            )
        with _lines_of(file.path):
            found.update([parse_variable(word, file.column(name))])
    return found


def _in_words(name: str, variable: Variable) -> str:
    """What was taken from a column, and how to say otherwise."""
    if isinstance(variable, Category):
        return (
            f"one of {', '.join(variable.choices)}, as in the file; {name}=A,B,C says "
            "otherwise"
        )
    lower, upper = (f"{bound:.15g}" for bound in variable.bounds)
    if isinstance(variable, Integer):
        return (
            f"a whole number from {lower} to {upper}, as in the file; {name}=LOW:HIGH "
            f"for any number between bounds, {name}=LOW:HIGH:int for other bounds"
        )
    return f"from {lower} to {upper}, as in the file; {name}=LOW:HIGH says otherwise"


@contextmanager
def _lines_of(path: Path) -> Iterator[None]:
    """Say of which file a line or a column is, that an error names."""
    try:
        yield
    except InputDataError as error:
        # The name of a table is that of an argument which nobody has typed here.
        message = re.sub(r"^`\w+`, (?=line |column )", "", str(error))
        if not message.startswith(("line ", "column ")):
            raise
        raise InputDataError(f"{path}, {message}") from error
