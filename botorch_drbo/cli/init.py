"""``botorch-drbo init``: the first ``problem.toml`` of a CSV file."""

from __future__ import annotations

import shlex
import sys
import textwrap
from collections.abc import Sequence

import typer
from botorch.exceptions.errors import InputDataError

from botorch_drbo.cli.columns import parse_limits, parse_variable
from botorch_drbo.cli.csv_file import CsvFile, lines_of
from botorch_drbo.cli.description import check_column
from botorch_drbo.cli.guess import (
    Guess,
    guess_contexts,
    guess_minimize,
    guess_outcome,
    guess_variable,
    is_known,
)
from botorch_drbo.cli.options import STATUS
from botorch_drbo.cli.problem_file import Toml, as_comment, as_key, as_toml
from botorch_drbo.recommendation.moved_contexts import moved_contexts, moved_words
from botorch_drbo.space import (
    Category,
    Continuous,
    Integer,
    Log,
    Ordinal,
    Space,
    Variable,
)
from botorch_drbo.space.table import to_tensor

_SAID = "as you said"
_OTHER_KEYS = """\
# Other keys, above the [tables]:
# limits = ["runoff <= 9"]                  on measured columns
# constraints = ["price + 2*stock <= 100"]  on decisions
# radius = {NAME = SIZE}                    how far a context may be off, in its unit
# half_life = 20                            rows after which a context counts half
# algorithm = "wdrbo_exact"                 the recipe
# surrogate = "ensemble"                    how outcomes are modelled
# feasibility = 0.95                        probability with which all limits must hold
"""


def written(
    file: CsvFile,
    *,
    decisions: Sequence[str] | None,
    contexts: Sequence[str] | None,
    outcome: str | None,
    minimize: bool | None,
    limits: Sequence[str],
) -> str:
    r"""The text of a ``problem.toml`` for a file, what is guessed with a comment.

    Args:
        file: The data.
        decisions: Columns that are chosen, as they are typed, or None: the others.
        contexts: Columns that are met, or None: the others, or by guess.
        outcome: The column to be improved, or None.
        minimize: Whether low outcomes are good, or None.
        limits: Of measured columns.

    Raises:
        InputDataError: A word that cannot be read, or what cannot be guessed.
    """
    said_outcome = outcome is not None
    outcome = outcome or _ask_outcome(file)
    check_column(outcome, file)
    said = {
        "decisions": _read(decisions, file),
        "contexts": _read(contexts, file),
    }
    taken = {outcome, *said["decisions"], *said["contexts"]}
    measured = [n for n in file.header if n not in taken - {outcome}]
    limited = parse_limits(limits, measured, said["decisions"])
    guesses: dict[str, Guess] = {}
    for name in file.header:
        if name and name not in {*taken, *limited, STATUS}:
            guess = guess_variable(file.column(name), chosen=contexts is not None)
            if guess.variable is not None and not is_known(name, file, outcome):
                why = "empty in rows with an outcome, so perhaps measured; see `limits`"
                guess = Guess(None, why)
            guesses[name] = guess
    usable = [name for name, guess in guesses.items() if guess.variable is not None]
    met = list(said["contexts"])
    if contexts is None:
        met = usable if decisions is not None else _ask_contexts(usable, file, outcome)
    chosen = list(said["decisions"])
    if decisions is None:
        chosen = [name for name in usable if name not in met]
    tables = {"decisions": chosen, "contexts": met}
    low_is_good = guess_minimize(outcome) if minimize is None else minimize
    lines = [
        as_comment(f"The columns of {file.path.name}, as `botorch-drbo init` guessed")
        + " them.",
        "# Correct the guesses, above all the bounds: decisions and worst cases stay",
        "# inside them.",
        f"outcome = {as_toml(outcome)}{'' if said_outcome else '  # guessed'}",
        f"minimize = {as_toml(low_is_good)}"
        + ("" if minimize is not None else "  # guessed; true if low ones are good"),
    ]
    if limits:
        lines.append(f"limits = {as_toml(list(limits))}")
    if STATUS in file.header and STATUS not in {*chosen, *met}:
        lines.append(
            f"status = {as_toml(STATUS)}  # `failed` there: no outcome will come"
        )
    others = _OTHER_KEYS.splitlines()
    if limits:
        others = [line for line in others if not line.startswith("# limits")]
    lines += ["", *others]
    by_hand = {"decisions": decisions is not None, "contexts": contexts is not None}
    for table, names in tables.items():
        if not names:
            raise InputDataError(
                f"No column of {file.path} is left for {table}. Write --{table} with "
                f"columns of {file.header}."
            )
        what = "you choose" if table == "decisions" else "you meet"
        which = "" if by_hand[table] else " Which these are is guessed."
        lines += ["", f"[{table}]  # what {what}.{which}"]
        for name in names:
            variable, why = said[table].get(name), _SAID
            if variable is None:
                guess = guess_variable(file.column(name), chosen=table == "decisions")
                variable, why = guess.variable, f"guessed: {guess.why}"
            assert variable is not None
            value = as_toml(_toml(variable))
            lines.append(f"{as_key(name)} = {value}  {as_comment(why)}")
    if words := _moved(file, chosen, met, outcome):
        lines += map(as_comment, textwrap.wrap(words, 76))
    alone = [
        name
        for name in file.header
        if name and name not in {outcome, STATUS, *limited, *chosen, *met}
    ]
    if alone:
        lines += ["", "# Left alone:"]
        lines += [as_comment(f"{name}: {_why(guesses, name)}") for name in alone]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _moved(
    file: CsvFile, chosen: Sequence[str], met: Sequence[str], outcome: str
) -> str:
    """What is said if the decisions predict contexts in the rows without gaps."""
    decisions, contexts = (
        {
            name: kind
            for name in names
            if (kind := guess_variable(file.column(name), chosen=False).variable)
        }
        for names in (chosen, met)
    )
    if not decisions or not contexts:
        return ""
    rows = file.frame({**decisions, **contexts}).dropna()
    space = Space(decisions, contexts, outcome=outcome)
    X, C = (to_tensor(rows, kinds, file.path.name) for kinds in (decisions, contexts))
    return moved_words(moved_contexts(X, C, space.search_space))


def _read(words: Sequence[str] | None, file: CsvFile) -> dict[str, Variable | None]:
    """The columns that were named, and their kinds where these were said."""
    found: dict[str, Variable | None] = {}
    for word in words or ():
        name, equals, _ = (part.strip() for part in word.partition("="))
        check_column(name, file)
        cells = file.column(name)
        if not equals and guess_variable(cells, chosen=False).variable is not None:
            found[name] = None
            continue
        with lines_of(file.path):
            found[name] = parse_variable(word, cells)[1]
    return found


def _ask_outcome(file: CsvFile) -> str:
    guess = guess_outcome(file)
    if sys.stdin.isatty():
        return typer.prompt("Which column is to be improved", default=guess, err=True)
    if guess is None:
        raise InputDataError(
            f"None of the names {file.header} looks like that of an outcome. Write "
            "--outcome NAME."
        )
    return guess


def _ask_contexts(usable: list[str], file: CsvFile, outcome: str) -> list[str]:
    guess = guess_contexts(usable, file, outcome)
    if sys.stdin.isatty():
        listed = typer.prompt(
            f"Which of {', '.join(usable)} do you meet and not choose (commas between)",
            default=", ".join(guess) or None,
            err=True,
        )
        names = [name.strip() for name in str(listed).split(",") if name.strip()]
        for name in names:
            check_column(name, file)
            if name not in usable:
                why = f"`{name}` cannot be a context. Choose from {usable}."
                raise InputDataError(why)
        return names
    if not guess:
        raise InputDataError(
            f"Which of the columns {usable} do you choose, and which do you meet? The "
            "file does not say. Name those that you meet, for example --contexts "
            f"{shlex.join(usable[-2:])}. The others are then taken for decisions."
        )
    return guess


def _toml(variable: Variable) -> Toml:
    if isinstance(variable, Continuous):
        return [_short(variable.lower), _short(variable.upper)]
    if isinstance(variable, Integer):
        return {"Integer": [variable.lower, variable.upper]}
    if isinstance(variable, Log):
        return {"Log": [_short(variable.lower), _short(variable.upper)]}
    if isinstance(variable, Ordinal):
        return {"Ordinal": [_short(choice) for choice in variable.choices]}
    assert isinstance(variable, Category)
    return {"Category": list(variable.choices)}


def _short(number: float) -> int | float:
    return int(number) if float(number).is_integer() else float(number)


def _why(guesses: dict[str, Guess], name: str) -> str:
    guess = guesses.get(name)
    return guess.why if guess is not None and guess.variable is None else "not named"
