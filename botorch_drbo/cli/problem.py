"""A CSV file and its description as a problem that can be optimised."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import BotorchWarning

from botorch_drbo.cli.columns import (
    as_number,
    parse_constraint,
    parse_known,
    parse_limits,
    parse_radius,
)
from botorch_drbo.cli.csv_file import CsvFile, lines_of
from botorch_drbo.cli.description import Description, beside, described_by_words
from botorch_drbo.cli.options import NAME, STATUS, WEIGHT, Options
from botorch_drbo.cli.problem_file import read_problem
from botorch_drbo.contexts import ContextSet
from botorch_drbo.optimizer import NamedOptimizer
from botorch_drbo.problem.column_radii import in_widths, in_words
from botorch_drbo.problem.round import RoundRadius
from botorch_drbo.space import Category, Log, Space, Variable


@dataclass(frozen=True)
class Problem:
    """The trials of a file, and what its columns are.

    Attributes:
        file: The file.
        space: Its variables and constraints.
        description: What was said of it.
        limits: Of measured columns, by name.
        seed: Decides every random draw.
        notes: What was not said, and was taken from the file.
    """

    file: CsvFile
    space: Space
    description: Description
    limits: Mapping[str, tuple[float | None, float | None]]
    seed: int
    notes: list[str]

    @classmethod
    def parse(cls, options: Options) -> Problem:
        """Read the words of a command line, the file, and what is said of it.

        Raises:
            InputDataError: A word or a file that cannot be read.
        """
        file = CsvFile.read(options.data)
        description, notes = _described(options, file)
        chosen, met = description.decisions, description.contexts
        constraints = [parse_constraint(t, chosen) for t in description.constraints]
        space = Space(chosen, met, outcome=description.outcome, constraints=constraints)
        measured = [name for name in file.header if name not in {*chosen, *met}]
        limits = parse_limits(description.limits, measured, chosen)
        if description.status is None and STATUS in measured:
            description = replace(description, status=STATUS)
            if any(w.lower() == "failed" for w in file.column(STATUS).values()):
                notes.append(f"{STATUS}: says `failed` of trials without an outcome")
        _warn_of_cut_radius(description.radius, space, file)
        notes = [*file.notes, *notes, *description.notes]
        return cls(file, space, description, limits, options.seed, notes)

    def optimizer(self) -> NamedOptimizer:
        """One that knows all rows of the file."""
        space, file, said = self.space, self.file, self.description
        variables: dict[str, Variable | None] = {
            **dict.fromkeys(self.limits),
            **space.decisions,
            **space.contexts,
            space.outcome: None,
        }
        texts = () if said.status is None else (said.status,)
        further = {
            name: value
            for name in ("feasibility", "half_life", "radius")
            if (value := getattr(said, name)) is not None
        }
        with lines_of(file.path):
            return NamedOptimizer.from_dataframe(
                file.frame(variables, texts),
                decisions=space.decisions,
                contexts=space.contexts,
                outcome=space.outcome,
                constraints=space.constraints,
                outcome_constraints=self.limits,
                status=said.status,
                algorithm=said.algorithm,
                maximize=not said.minimize,
                # Nothing is kept but the file: each length of it has its own design.
                seed=self.seed + len(file.lines),
                surrogate=said.surrogate,
                **further,
            )

    @property
    def lines(self) -> list[int]:
        """The line of each trial, by its number."""
        status = self.description.status
        words = {} if status is None else self.file.column(status)
        lines = [line for line, _ in self.file.lines]
        return [n for n in lines if words.get(n, "").lower() != "withdrawn"]

    def check_outcomes(self) -> None:
        """Refuse to recommend from a file without an outcome.

        Raises:
            InputDataError: There is none.
        """
        if not any(self.file.column(self.space.outcome).values()):
            raise InputDataError(
                f"{self.file.path} has no outcome yet, so there is nothing to learn "
                "from. Carry out what `suggest` proposes, and fill in "
                f"`{self.space.outcome}`."
            )

    def this_round(
        self, forecast: Path | None, known: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """What is known about the next round, as ``NamedOptimizer.ask`` takes it."""
        return {
            "context_set": None if forecast is None else self._forecast(forecast),
            "context": parse_known(known or (), self.space.contexts) or None,
        }

    def _forecast(self, path: Path) -> ContextSet:
        file = CsvFile.read(path)
        if not file.lines:
            raise InputDataError(
                f"{path} has no rows. List the contexts that may come."
            )
        weights = WEIGHT if WEIGHT in file.header else None
        numbers = {} if weights is None else {weights: None}
        with lines_of(path):
            table = file.frame({**self.space.contexts, **numbers})
            return self.space.context_set(table, weights)


def _warn_of_cut_radius(
    radius: RoundRadius | None, space: Space, file: CsvFile
) -> None:
    """Warn where contexts that were seen would leave their bounds, as for a shift."""
    if not isinstance(radius, Mapping):
        return
    box = space.search_space
    widths = in_widths(radius, box).tolist()
    for j, (name, variable) in enumerate(space.contexts.items()):
        cells = [as_number(word) for word in file.column(name).values()]
        (low, high), unit = (
            variable.bounds,
            math.log if isinstance(variable, Log) else float,
        )
        seen = [unit(v) for v in cells if v is not None and (v > 0 or unit is float)]
        if isinstance(variable, Category) or not seen:
            continue
        move = widths[j] * (high - low) * (1.0 - 1e-9)
        out = max(sum(v - move < low for v in seen), sum(v + move > high for v in seen))
        if move > 0.0 and out:
            ends = [math.exp(end) if unit is math.log else end for end in (low, high)]
            alone = [widths[j] if i == j else 0.0 for i in range(box.d_c)]
            warnings.warn(
                f"A radius of {in_words(alone, box)} is cut by the bounds of `{name}`, "
                f"{ends[0]:.6g} to {ends[1]:.6g}: it would move "
                f"{100 * out / len(seen):.3g}% of cases beyond them, where the worst "
                "case does not look. If these bounds are a guess, give wider ones, "
                f"--contexts {name}=LOW:HIGH or in {NAME}.",
                BotorchWarning,
                stacklevel=2,
            )


def _described(options: Options, file: CsvFile) -> tuple[Description, list[str]]:
    """The description of a file, from the command line or from a second file; notes."""
    words = {
        "--decisions": options.decisions,
        "--contexts": options.contexts,
        "--outcome": options.outcome,
    }
    said = [name for name, word in words.items() if word]
    path, notes = options.problem, []
    if path is not None and said:
        raise InputDataError(
            f"Got --problem {path} and {said[0]}: both say which columns are what. "
            "Leave one out."
        )
    if path is None and not said and beside(options.data).exists():
        path = beside(options.data)
        notes.append(f"Columns as described in {path}")
    if path is not None:
        description = read_problem(path, file)
    elif options.decisions and options.contexts and options.outcome:
        description = described_by_words(
            options.decisions, options.contexts, options.outcome, file
        )
    else:
        missing = next(name for name, word in words.items() if not word)
        raise InputDataError(
            f"{missing} is missing, and there is no {beside(options.data)}. Let "
            f"`botorch-drbo init {options.data}` write one, or say which columns are "
            "what: --decisions price=10:90 --contexts temp=-10:40 --outcome profit."
        )
    given = {
        "constraints": options.constraint,
        "limits": options.limit,
        "minimize": options.minimize,
        "algorithm": options.algorithm,
        "surrogate": options.surrogate,
        "feasibility": options.feasibility,
        "half_life": options.half_life,
        "radius": parse_radius(options.radius) if options.radius else None,
        "status": options.status,
    }
    overrides = {name: value for name, value in given.items() if value is not None}
    return replace(description, **overrides), notes
