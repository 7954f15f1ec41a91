"""The description of a problem, from the command line or from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from botorch.exceptions.errors import InputDataError

from botorch_drbo.cli.columns import parse_variable
from botorch_drbo.cli.csv_file import CsvFile, lines_of
from botorch_drbo.cli.options import ALGORITHM, NAME
from botorch_drbo.problem.round import RoundRadius
from botorch_drbo.space import Category, Integer, Variable


@dataclass(frozen=True, kw_only=True)
class Description:
    """Which columns are what, and how to look for a decision.

    Attributes:
        decisions: The columns that are chosen.
        contexts: The columns that are met.
        outcome: The column to be improved.
        constraints: Linear constraints of decisions, as they are typed.
        limits: Of measured columns, as they are typed.
        minimize: Whether low outcomes are good.
        algorithm: The name of a recipe.
        surrogate: How outcomes are modelled; None for the recipe's own.
        feasibility: How probably limits have to hold; None for the recipe's own.
        half_life: After how many further rows a context counts half, or None.
        radius: How far contexts may be off; None for the recipe's own.
        status: The column that says which trials have failed, or None.
        notes: What was not said of a column, and was taken from the file.
    """

    decisions: Mapping[str, Variable]
    contexts: Mapping[str, Variable]
    outcome: str
    constraints: Sequence[str] = ()
    limits: Sequence[str] = ()
    minimize: bool = False
    algorithm: str = ALGORITHM
    surrogate: str | None = None
    feasibility: float | None = None
    half_life: float | None = None
    radius: RoundRadius | None = None
    status: str | None = None
    notes: Sequence[str] = field(default_factory=tuple)


def described_by_words(
    decisions: Sequence[str], contexts: Sequence[str], outcome: str, file: CsvFile
) -> Description:
    """Read the columns as they are typed.

    Raises:
        InputDataError: A word that cannot be read, or a column that is not there.
    """
    chosen, met = _variables(decisions, file), _variables(contexts, file)
    notes = [
        f"{name}: {_in_words(name, variable)}"
        for name, variable in {**chosen, **met}.items()
        if name in (*decisions, *contexts)
    ]
    return Description(decisions=chosen, contexts=met, outcome=outcome, notes=notes)


def check_column(name: str, file: CsvFile) -> None:
    """Refuse a column that a file does not have.

    Raises:
        InputDataError: It has not.
    """
    if not name or name not in file.header:
        near = get_close_matches(name, file.header, n=1)
        raise InputDataError(
            f"{file.path} has no column `{name}`. It has {file.header}."
            + (f" Did you mean `{near[0]}`?" if near else "")
        )


def _variables(words: Sequence[str], file: CsvFile) -> dict[str, Variable]:
    found: dict[str, Variable] = {}
    for word in words:
        name = word.partition("=")[0].strip()
        if name in found:
            raise InputDataError(f"`{name}` is given twice.")
        check_column(name, file)
        with lines_of(file.path):
            found.update([parse_variable(word, file.column(name))])
    return found


def _in_words(name: str, variable: Variable) -> str:
    """What was read from a column, and how to state something else."""
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


def beside(data: Path) -> Path:
    """Where that file would be."""
    return data.parent / NAME
