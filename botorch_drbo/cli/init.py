"""``botorch-drbo init``: the first ``problem.toml``, from guesses of the columns."""

from __future__ import annotations

import math
import os
import re
import shlex
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import pairwise
from pathlib import Path

import typer
from botorch.exceptions.errors import InputDataError

from botorch_drbo.cli.columns import as_decimal, as_number, parse_limits, parse_variable
from botorch_drbo.cli.csv_file import CsvFile, lines_of
from botorch_drbo.cli.options import STATUS, UNIFORM
from botorch_drbo.cli.problem import (
    Description,
    Toml,
    as_comment,
    as_key,
    as_toml,
    check_column,
)
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
from botorch_drbo.space.table import to_tensor, weight_column

_LOW_IS_GOOD = ("cost", "costs", "loss", "error", "waste", "emissions", "regret")
_OUTCOMES = (
    *("outcome", "yield", "profit", "revenue", "score", "result", "y", "objective"),
    *("accuracy", "return", "sales", "output", "strength"),
    *_LOW_IS_GOOD,
)
_MET = (
    *("rain", "rainfall", "temp", "temperature", "weather", "wind", "humidity", "soil"),
    *("sun", "sunshine", "climate", "ambient", "season", "demand", "market"),
)
_MOST_NAMES = 20  # of a category
_FACTOR = 1000.0  # between the ends of a decision of which factors are said to count


@dataclass(frozen=True)
class Guess:
    """What a column seems to hold."""

    # Its kind; None for a column to leave alone.
    variable: Variable | None
    # What was seen of it, for a comment.
    why: str


def guess_variable(words: Mapping[int, str], *, chosen: bool) -> Guess:
    """The kind of a column, by what it holds."""
    filled = [word for word in words.values() if word]
    numbers = [as_number(word) for word in filled]
    if len(set(filled)) < 2:
        return Guess(None, f"always {filled[0]}" if filled else "empty")
    if None in numbers:
        return _names(filled, numbers)
    values = [as_decimal(word) for word in filled]
    low, high = min(values), max(values)
    if low == high:
        return Guess(None, f"always {low}")
    seen = f"{low} to {high} in the file"
    whole = all(re.fullmatch(r"[+-]?\d+", word) for word in filled)
    in_order = [int(value) for value in values] if whole else []
    if len(in_order) > 2 and all(b - a == 1 for a, b in pairwise(in_order)):
        return Guess(None, "counts the rows")
    if chosen and low > 0 and high >= low * Decimal(_FACTOR):
        ends = 10.0 ** math.floor(low.log10()), 10.0 ** math.ceil(high.log10())
        return Guess(Log(*ends), f"{seen}: taken for a number of which factors count")
    lower, upper = _outwards(low, high)
    if whole:
        lower, upper = lower.to_integral(ROUND_FLOOR), upper.to_integral(ROUND_CEILING)
        return Guess(Integer(int(lower), int(upper)), f"{seen}, whole numbers")
    return Guess(Continuous(float(lower), float(upper)), seen)


def is_known(name: str, file: CsvFile, outcome: str) -> bool:
    """Whether a column has no empty cell in the rows with an outcome."""
    outcomes, cells = file.column(outcome), file.column(name)
    return all(cells[line] for line, word in outcomes.items() if word)


def guess_outcome(file: CsvFile) -> str | None:
    """The column of the outcome by its name; None if none is called like one."""
    for word in _OUTCOMES:
        for name in file.header:
            if word in _parts(name) and _has_numbers(file, name):
                return name
    return None


def guess_contexts(names: list[str], file: CsvFile, outcome: str) -> list[str]:
    """The columns that are met: empty where the outcome is out, or called like it."""
    # A row with a status has failed, or was withdrawn: its context may have been met.
    over = file.column(STATUS) if STATUS in file.header else {}
    waiting = [
        line for line, y in file.column(outcome).items() if not (y or over.get(line))
    ]
    cells = {name: file.column(name) for name in names}
    empty = [n for n in names if waiting and not any(cells[n][i] for i in waiting)]
    if empty and len(empty) < len(names):
        return empty
    return [name for name in names if not _parts(name).isdisjoint(_MET)]


def _names(filled: list[str], numbers: list[float | None]) -> Guess:
    choices = sorted(set(filled))
    if any(number is not None for number in numbers):
        i = next(i for i, number in enumerate(numbers) if number is None)
        return Guess(None, f"numbers, and {filled[i]}")
    if len(choices) > min(_MOST_NAMES, max(2, len(filled) // 2)):
        return Guess(None, "nearly each row has another text")
    return Guess(Category(choices), "the names in the file")


def _outwards(low: Decimal, high: Decimal) -> tuple[Decimal, Decimal]:
    """Ends that are rounded to about a tenth of what lies between."""
    size = (high - low).log10().to_integral(ROUND_FLOOR)
    lead = (high - low).scaleb(-int(size))
    part = Decimal("0.1") if lead < 2 else Decimal("0.5") if lead < 5 else Decimal(1)
    step = part.scaleb(int(size))
    lower = (low / step).to_integral(ROUND_FLOOR) * step
    upper = (high / step).to_integral(ROUND_CEILING) * step
    return lower, upper


def _has_numbers(file: CsvFile, name: str) -> bool:
    filled = [word for word in file.column(name).values() if word]
    return bool(filled) and all(as_number(word) is not None for word in filled)


def _parts(name: str) -> set[str]:
    return set(re.split(r"[^a-z]+", name.lower()))


_SAID = "as you said"
_OTHER_KEYS = """\
# Other keys, above the [tables]:
# limits = ["runoff <= 9"]                  on measured columns
# constraints = ["price + 2*stock <= 100"]  on decisions
# features = {NAME = "levels.csv"}          numbers that describe a category's levels
# radius = {NAME = SIZE}                    how far a context may be off, in its unit
# scope = "uniform"                         contexts to serve, or a file of them
# half_life = 20                            rows after which a context counts half
# objective = "worst fifth"                 or mean, minimum, share above 60
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
    scope: str | None = None,
    folder: Path = Path(),
) -> str:
    """The text of a ``problem.toml`` for a file, what is guessed with a comment."""
    listed = _listed(scope)
    if contexts is None and listed is not None:
        weights = weight_column(listed.header, ())
        contexts = [name for name in listed.header if name != weights]
    said_outcome = outcome is not None
    outcome = outcome or _ask_outcome(file)
    check_column(outcome, file)
    said = {
        "decisions": _read(decisions, file, None),
        "contexts": _read(contexts, file, listed),
    }
    taken = {outcome, *said["decisions"], *said["contexts"]}
    measured = [n for n in file.header if n not in taken - {outcome}]
    limited = parse_limits(limits, measured, said["decisions"])
    guesses: dict[str, Guess] = {}
    for name in file.header:
        if name and name not in {*taken, *limited, STATUS}:
            guess = guess_variable(file.column(name), chosen=contexts is not None)
            if guess.variable is not None and not is_known(name, file, outcome):
                guess = Guess(
                    None,
                    "empty in rows with an outcome, so perhaps measured; see `limits`",
                )
            guesses[name] = guess
    usable = [name for name, guess in guesses.items() if guess.variable is not None]
    met = list(said["contexts"])
    if contexts is None:
        met = usable if decisions is not None else _ask_contexts(usable, file, outcome)
    if scope is None:
        scope = _ask_scope(met)
        listed = _listed(scope)
    chosen = list(said["decisions"])
    if decisions is None:
        chosen = [name for name in usable if name not in met]
    guessed = not _parts(outcome).isdisjoint(_LOW_IS_GOOD)
    lines = [
        as_comment(f"The columns of {file.path.name}, as `botorch-drbo init` guessed")
        + " them.",
        "# Correct the guesses, above all the bounds: decisions and worst cases stay",
        "# inside them.",
        f"outcome = {as_toml(outcome)}{'' if said_outcome else '  # guessed'}",
        f"minimize = {as_toml(guessed if minimize is None else minimize)}"
        + ("" if minimize is not None else "  # guessed; true if low ones are good"),
    ]
    if limits:
        lines.append(f"limits = {as_toml(list(limits))}")
    if scope is not None:
        word = scope if listed is None else os.path.relpath(scope, folder or ".")
        lines.append(f"scope = {as_toml(word)}  # for `suggest --choose-context`")
    if STATUS in file.header and STATUS not in {*chosen, *met}:
        lines.append(
            f"status = {as_toml(STATUS)}  # `failed` there: no outcome will come"
        )
    has = {"# limits": limits, "# scope": scope}
    known = tuple(key for key, value in has.items() if value)
    lines += ["", *(o for o in _OTHER_KEYS.splitlines() if not o.startswith(known))]
    met_how = "you meet" if scope is None else "you choose while you learn"
    for table, names, by_hand, what, source in (
        ("decisions", chosen, decisions is not None, "you choose", None),
        ("contexts", met, contexts is not None, met_how, listed),
    ):
        if not names:
            raise InputDataError(
                f"No column of {file.path} is left for {table}. Write --{table} with "
                f"columns of {file.header}."
            )
        which = "" if by_hand else " Which these are is guessed."
        lines += ["", f"[{table}]  # what {what}.{which}"]
        for name in names:
            variable, why = said[table].get(name), _SAID
            if variable is None:
                guess = _guess(name, file, source, table == "decisions")
                variable, why = guess.variable, f"guessed: {guess.why}"
            assert variable is not None
            values: Toml = _values(variable)
            if not isinstance(variable, Continuous):
                values = {type(variable).__name__: values}
            lines.append(f"{as_key(name)} = {as_toml(values)}  {as_comment(why)}")
    if words := _moved(file, chosen, met, outcome):
        lines += map(as_comment, textwrap.wrap(words, 76))
    alone = [
        name
        for name in file.header
        if name and name not in {outcome, STATUS, *limited, *chosen, *met}
    ]
    if alone:
        why = {name: g.why for name, g in guesses.items() if g.variable is None}
        lines += ["", "# Left alone:"]
        lines += [as_comment(f"{n}: {why.get(n, 'not named')}") for n in alone]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def as_script(said: Description, file: CsvFile) -> str:
    """What `recommend` and `suggest` do with a file, in Python."""
    kinds = {**said.decisions, **said.contexts}
    names = [name for name, kind in kinds.items() if isinstance(kind, Category)]
    used = {type(kind).__name__ for kind in kinds.values()} - {"Continuous"}
    scope = repr(UNIFORM) if said.scope == UNIFORM else f"pd.read_csv({said.scope!r})"
    arguments = {
        "decisions": _in_lines(said.decisions),
        "contexts": _in_lines(said.contexts),
        "outcome": repr(said.outcome),
        "outcome_constraints": said.limits
        and repr(parse_limits(said.limits, file.header, ())),
        "status": said.status and repr(said.status),
        "maximize": said.minimize and "False",
        "scope": said.scope and scope,
        "seed": "len(table)",
    }
    lines = [f"    {name}={text},\n" for name, text in arguments.items() if text]
    return (
        "import pandas as pd\n"
        f"from botorch_drbo import {', '.join(sorted({*used, 'NamedOptimizer'}))}\n\n"
        f"names = {dict.fromkeys(names, 'str')!r}  # columns of names\n"
        f"table = pd.read_csv({str(file.path)!r}, dtype=names, keep_default_na=False, "
        "na_values=[''])\nopt = NamedOptimizer.from_dataframe(\n    table,\n"
        f"{''.join(lines)})\n"
        "print(opt.recommend())  # what to do now\n"
        "print(opt.ask())  # what to try next\n"
    )


def _in_lines(variables: Mapping[str, Variable]) -> str:
    lines = (f"        {n!r}: {_as_python(v)},\n" for n, v in variables.items())
    return f"{{\n{''.join(lines)}    }}"


def _as_python(variable: Variable) -> str:
    kind = "" if isinstance(variable, Continuous) else type(variable).__name__
    values = _values(variable)
    listed = isinstance(variable, Ordinal | Category)
    return f"{kind}({values!r})" if listed else f"{kind}{tuple(values)!r}"


def _values(variable: Variable) -> list[Toml]:
    """The names, numbers or bounds that a variable is made of."""
    if isinstance(variable, Category):
        return list(variable.choices)
    if isinstance(variable, Ordinal):
        return [_short(choice) for choice in variable.choices]
    assert isinstance(variable, Continuous | Integer | Log)
    return [_short(variable.lower), _short(variable.upper)]


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


def _listed(scope: str | None) -> CsvFile | None:
    """The file of contexts to serve, if it is one."""
    return None if scope in (None, UNIFORM) else CsvFile.read(Path(scope))


def _guess(name: str, file: CsvFile, listed: CsvFile | None, chosen: bool) -> Guess:
    """The kind of a column, by what it holds and by what is listed of it."""
    cells = file.column(name)
    if listed is None or name not in listed.header:
        return guess_variable(cells, chosen=chosen)
    words = [w for w in (*listed.column(name).values(), *cells.values()) if w]
    if not words or None not in map(as_number, words):
        return guess_variable(dict(enumerate(words)), chosen=chosen)
    levels = list(dict.fromkeys(words))
    return Guess(Category(levels), f"the names in {listed.path.name} and in the file")


def _read(
    words: Sequence[str] | None, file: CsvFile, listed: CsvFile | None
) -> dict[str, Variable | None]:
    """The columns that were named, and their kinds where these were said."""
    found: dict[str, Variable | None] = {}
    for word in words or ():
        name, equals, _ = (part.strip() for part in word.partition("="))
        check_column(name, file)
        cells = file.column(name)
        if not equals and _guess(name, file, listed, False).variable is not None:
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


def _ask_scope(met: Sequence[str]) -> str | None:
    if not sys.stdin.isatty():
        return None
    word = typer.prompt(
        f"Do you choose {' and '.join(met)} while you learn, as in a laboratory? Then "
        f"which are to be served: a CSV file that lists them, `{UNIFORM}` for all, or "
        "`no`",
        default="no",
        err=True,
    )
    return None if word.strip() == "no" else word.strip()


def _short(number: float) -> int | float:
    return int(number) if float(number).is_integer() else float(number)
