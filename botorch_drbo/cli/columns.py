"""Variables as they are written on a command line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from botorch.exceptions.errors import InputDataError

from botorch_drbo._validation import did_you_mean
from botorch_drbo.adversaries import (
    Adversary,
    AnyOf,
    Danger,
    MeanShift,
    Mixture,
    Scenarios,
    Spread,
    Weights,
)
from botorch_drbo.adversaries.wasserstein import WassersteinBall
from botorch_drbo.cli.options import BALL, HELP
from botorch_drbo.contexts import ContextSet
from botorch_drbo.space import (
    Category,
    Continuous,
    Integer,
    LinearConstraint,
    Log,
    Ordinal,
    Variable,
)

_SIZE = r"(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
_NUMBER = re.compile(f"[+-]?{_SIZE}", re.IGNORECASE | re.ASCII)
_WITH_COMMA = re.compile(r"[+-]?[\d.' ]*,[\d., ]*\d|[+-]?\d+,", re.ASCII)


def parse_variable(
    text: str, observed: Mapping[int, str] | None = None
) -> tuple[str, Variable]:
    """Read one variable."""
    name, equals, kind = text.partition("=")
    name, kind = name.strip(), kind.strip()
    if name and not equals:
        return name, _as_observed(name, observed or {})
    if not name or not kind:
        raise InputDataError(
            f"`{text}` cannot be read. Write which values it may take: {HELP}"
        )
    if "," in kind:
        return name, _listed(name, kind)
    parts = kind.split(":")
    kinds = {"": Continuous, "int": Integer, "log": Log}
    suffix = parts[2] if len(parts) == 3 else ""
    if len(parts) not in (2, 3) or suffix not in kinds:
        raise InputDataError(f"`{text}` cannot be read. Write {HELP}")
    bounds = [as_number(part) for part in parts[:2]]
    whole = suffix == "int" and not all(map(_is_whole, parts[:2]))
    if None in bounds or whole:
        raise InputDataError(
            f"`{text}` must have {'whole numbers' if whole else 'numbers'} as bounds, "
            f"got {parts[0]!r} and {parts[1]!r}."
        )
    lower, upper = map(int if suffix == "int" else float, parts[:2])
    try:
        return name, kinds[suffix](lower, upper)
    except InputDataError as error:
        raise InputDataError(f"`{name}`: {error}") from error


def parse_constraint(text: str, names: Iterable[str]) -> LinearConstraint:
    """Read a linear constraint of decisions."""
    known = list(names)
    longest_first = sorted(known, key=len, reverse=True)
    name = "|".join(map(re.escape, longest_first))
    term = rf"\s*(?P<sign>[+-])?\s*(?:(?P<size>{_SIZE})\s*\*?\s*)?(?P<name>{name})\s*"
    left, sense, right = [*re.split("(<=|>=|==?)", text, maxsplit=1), "", ""][:3]
    coefficients: dict[str, float] = {}
    position = 0
    for found in re.finditer(term, left):
        joined = found["sign"] is not None or position == 0
        if found.start() != position or not joined or found["name"] in coefficients:
            break
        sign = -1.0 if found["sign"] == "-" else 1.0
        coefficients[found["name"]] = sign * float(found["size"] or 1.0)
        position = found.end()
    bound = as_number(right.strip())
    if position != len(left) or not coefficients or bound is None:
        raise InputDataError(
            f"The constraint `{text}` cannot be read. Write a sum of decisions, each "
            "once, and a bound, such as 'price + 2*stock <= 100' or 'sand + lime = 1'. "
            "The decisions are "
            f"{known}."
        )
    return LinearConstraint(
        coefficients,
        upper=None if sense == ">=" else bound,
        lower=None if sense == "<=" else bound,
    )


def parse_limits(
    texts: Iterable[str], measured: Iterable[str], decisions: Iterable[str]
) -> dict[str, tuple[float | None, float | None]]:
    """Read limits of measured columns, ``runoff <= 9``."""
    columns, chosen = list(measured), list(decisions)
    found: dict[str, tuple[float | None, float | None]] = {}
    for text in texts:
        name, sense, right = [*re.split("(<=|>=)", text, maxsplit=1), "", ""][:3]
        name, bound = name.strip(), as_number(right.strip())
        if name in chosen:
            raise InputDataError(
                f"The limit `{text}` names a decision, which is known before it is "
                f"tried. Write --constraint '{text}'."
            )
        if not sense or bound is None or name not in columns:
            raise InputDataError(
                f"The limit `{text}` cannot be read. Write a column that is measured, "
                "<= or >=, and a number, such as 'runoff <= 9'."
                f"{did_you_mean(name, columns)} The columns are {columns}."
            )
        lower, upper = found.get(name, (None, None))
        if (upper if sense == "<=" else lower) is not None:
            raise InputDataError(
                f"`{name}` has two limits with {sense}, the second is `{text}`. Leave "
                "one out."
            )
        found[name] = (lower, bound) if sense == "<=" else (bound, upper)
        lower, upper = found[name]
        if lower is not None and upper is not None and lower >= upper:
            raise InputDataError(
                f"The limits of `{name}` leave nothing between {lower:g} and {upper:g}."
            )
    return found


def parse_at(
    words: Iterable[str], variables: Mapping[str, Variable]
) -> tuple[dict[str, str], dict[str, object]]:
    """Read one decision and its context, ``price=20 weather=rain``."""
    found = _pairs(
        words,
        lambda word, name: (
            f"`--at {word}` cannot be read. Write NAME=VALUE, once for each of "
            f"{list(variables)}.{did_you_mean(name, variables)}"
        ),
        variables,
    )
    missing = [name for name in variables if name not in found]
    if missing:
        raise InputDataError(
            f"`--at` has no value for `{missing[0]}`. It needs one for each of "
            f"{list(variables)}, such as --at {missing[0]}=VALUE."
        )
    cells = {name: found[name] for name in variables}
    return cells, _values(cells, variables, "--at")


def parse_known(
    words: Iterable[str], contexts: Mapping[str, Variable]
) -> dict[str, object]:
    """Read what is known of contexts, ``weather=rain``."""
    found = _pairs(
        words,
        lambda word, name: (
            f"`--known {word}` cannot be read. Write NAME=VALUE with one of the "
            f"contexts {list(contexts)}."
        ),
        contexts,
    )
    return _values(found, contexts, "--known")


def parse_radius(words: Sequence[str]) -> float | str | dict[str, float]:
    """Read a radius: ``temp=6 weather=0.1``, ``0.2`` or ``sd``."""
    if len(words) == 1 and "=" not in words[0]:
        number = as_number(words[0])
        return words[0] if number is None else number
    return _sizes(
        words,
        f"`--radius {' '.join(words)}` cannot be read. Write NAME=SIZE, once for each "
        "context that may move, such as temp=6; or one number, `spread` or `sd`.",
    )


def parse_shift(text: str) -> tuple[str, dict[str, float]]:
    """Read a shift of contexts: ``temp=+6``, or ``temp=-2,wind=+1``."""
    return text, _sizes(
        text.split(","),
        f"`--shift {text}` cannot be read. Write NAME=SIZE, such as temp=+6, with "
        "commas between several that move at once.",
    )


def parse_at_most(words: Iterable[str]) -> dict[str, int]:
    """Read how many levels a plate may use of columns, ``solvent=2``."""
    refusal = (
        f"`--at-most {' '.join(words)}` cannot be read. Write NAME=NUMBER, once for "
        "each decision of which a plate may use a few values only, such as solvent=2."
    )
    found = _pairs(words, lambda word, name: refusal)
    if not all(map(_is_whole, found.values())):
        raise InputDataError(refusal)
    return {name: int(word) for name, word in found.items()}


def parse_against(
    words: Sequence[str],
    contexts: Mapping[str, Variable],
    clip: float,
    read_forecast: Callable[[Path], ContextSet],
) -> Adversary:
    """Read what is feared: ``temp=3``, ``weather:rain=60%``, ``box=10%``, ``ball``."""
    if BALL in words:
        if len(words) > 1:
            raise InputDataError(
                f"`--against {' '.join(words)}`: `{BALL}` is every pattern within one "
                "deviation, and stands alone."
            )
        return WassersteinBall(radius="sd")
    shifts: dict[str, float | tuple[float, float]] = {}
    dangers: list[Danger] = []
    for word in words:
        name, _, size = (part.strip() for part in word.partition("="))
        column, _, level = (part.strip() for part in name.partition(":"))
        try:
            if not size and name.lower().endswith(".csv"):
                path = Path(name)
                dangers.append(Scenarios({path.stem: read_forecast(path)}))
            elif name in contexts and size:
                low, colon, high = size.partition(":")
                shifts[name] = (as_size(low), as_size(high)) if colon else as_size(size)
            elif level and column in contexts:
                named = isinstance(contexts[column], Category)
                value = level if named else as_size(level)
                dangers.append(Weights({column: {value: as_size(size)}}))
            elif name in _DANGERS:
                make, default = _DANGERS[name]
                dangers.append(make(as_size(size) if size else default, clip))
            else:
                raise ValueError(word)
        except ValueError as error:
            raise InputDataError(
                f"`--against {word}` cannot be read. Write NAME=SIZE or NAME=LOW:HIGH "
                f"with one of the contexts {list(contexts)}, COLUMN:LEVEL=SHARE, "
                f"{', '.join(f'{known}=SIZE' for known in _DANGERS)}, a file "
                f"FORECASTS.csv, or `{BALL}`."
            ) from error
    if shifts:
        dangers.insert(0, MeanShift(shifts, clip))
    return dangers[0] if len(dangers) == 1 else AnyOf(*dangers)


_DANGERS: Mapping[str, tuple[Callable[[float, float], Danger], float]] = {
    "mean": (MeanShift, 1.0),
    "spread": (Spread, 2.0),
    "box": (lambda share, clip: Mixture(share), 0.1),
}
"""By their words on the command line, with the size where none is named."""


def as_size(word: str) -> float:
    """A number, or a share in percent."""
    percent = word.strip().endswith("%")
    number = as_number(word.strip().removesuffix("%"))
    if number is None:
        raise ValueError(word)
    return number / 100.0 if percent else number


def parse_give_up(word: str, outcome: str) -> float | dict[str, float] | None:
    """Read a price: ``10%``, an amount of the outcome, or ``all``."""
    if word.strip() == "all":
        return None
    try:
        size = as_size(word)
    except ValueError as error:
        raise InputDataError(
            f"`--give-up {word}` cannot be read. Write a share of what there is to "
            f"gain, 10%, an amount of `{outcome}`, 20, or `all`."
        ) from error
    return size if word.strip().endswith("%") else {outcome: size}


def parse_files(words: Sequence[str]) -> dict[str, Path]:
    """Read which file describes the levels of which category."""
    found = _pairs(
        words,
        lambda word, name: (
            f"`--features {word}` cannot be read. Write NAME=FILE.csv, once for each "
            "category that is described."
        ),
    )
    return {name: Path(file) for name, file in found.items()}


def _pairs(
    words: Iterable[str],
    refusal: Callable[[str, str], str],
    names: Collection[str] | None = None,
) -> dict[str, str]:
    """The grammar of all of them: NAME=VALUE, each name once, and one of the names."""
    found: dict[str, str] = {}
    for word in words:
        name, _, value = (part.strip() for part in word.partition("="))
        is_named = name and (names is None or name in names)
        if not is_named or not value or name in found:
            raise InputDataError(refusal(word, name))
        found[name] = value
    return found


def _values(
    cells: Mapping[str, str], variables: Mapping[str, Variable], option: str
) -> dict[str, object]:
    """What is written of variables, as their values; refuses what they cannot be."""
    found: dict[str, object] = {}
    for name, word in cells.items():
        place = f"`{option} {name}={word}`: `{name}`"
        found[name] = read_cell(word, variables[name], place)
        variables[name].encode([found[name]], lambda i, place=place: place)
    return found


def _sizes(words: Iterable[str], refusal: str) -> dict[str, float]:
    """NAME=SIZE, with numbers as sizes."""
    found: dict[str, float] = {}
    for name, word in _pairs(words, lambda word, name: refusal).items():
        size = as_number(word)
        if size is None:
            raise InputDataError(refusal)
        found[name] = size
    return found


def read_cell(word: str, variable: Variable | None, location: str) -> object:
    """What a cell holds: the name of a category, or a number; None if empty."""
    if not word or isinstance(variable, Category):
        return word or None
    number = as_number(word)
    if number is None:
        raise InputDataError(
            f"{location} must be a number, got {word!r}.{_remedy(word)}"
        )
    return number


def as_number(word: str) -> float | None:
    """A number as CSV files have them, digits and a decimal point; None for no number.

    Python's ``float`` would read ``1_5`` as 15, and ``1e400`` as infinite.
    """
    number = float(word) if _NUMBER.fullmatch(word) else math.inf
    return number if math.isfinite(number) else None


def as_decimal(word: str) -> Decimal:
    """A number as it is written; ``1e-999999``, which none tells from zero, is zero."""
    return Decimal(word if float(word) or "e" not in word.lower() else 0)


def _is_whole(word: str) -> bool:
    return re.fullmatch(r"[+-]?\d+", word, re.ASCII) is not None


def _remedy(word: str) -> str:
    if _WITH_COMMA.fullmatch(word):
        return (
            " Is it a decimal comma? Write numbers with a decimal point, and with "
            "nothing between thousands."
        )
    return (
        " Write digits and a decimal point, without a unit; a cell stays empty if "
        "nothing is known."
    )


def _listed(name: str, kind: str) -> Variable:
    choices, _, suffix = kind.partition(":")
    words = [word.strip() for word in choices.split(",")]
    numbers = [as_number(word) for word in words]
    if suffix not in ("", "category", "ordinal"):
        comma = " Bounds are written with decimal points." if "," in suffix else ""
        raise InputDataError(
            f"`{name}={kind}` cannot be read: after a list comes nothing, `:category` "
            f"or `:ordinal`, got `:{suffix}`.{comma}"
        )
    if suffix == "ordinal" and None in numbers:
        raise InputDataError(
            f"`{name}`: an ordinal takes numbers, got {words}. Leave out `:ordinal` "
            "if they are names."
        )
    if not suffix and None not in numbers:
        raise InputDataError(
            f"`{name}={kind}` is a list of numbers. Write `:ordinal` after it if "
            "their order counts, `:category` if they are names."
        )
    try:
        if suffix == "ordinal":
            return Ordinal([number for number in numbers if number is not None])
        return Category(words)
    except InputDataError as error:
        raise InputDataError(f"`{name}`: {error}") from error


def _as_observed(name: str, observed: Mapping[int, str]) -> Variable:
    """The kind of a column, judged by its values alone."""
    words = {line: word for line, word in observed.items() if word}
    numbers = {line: as_number(word) for line, word in words.items()}
    names = [line for line, number in numbers.items() if number is None]
    for line in names:
        if len(names) < len(words) or _WITH_COMMA.fullmatch(words[line]):
            raise InputDataError(
                f"line {line}, column `{name}`: {words[line]!r} is not a number, but "
                "other cells of the column are, or look like one."
                f"{_remedy(words[line])} If all are names, write {name}=A,B:category "
                "with these names."
            )
    values = {number for number in numbers.values() if number is not None}
    choices = sorted(set(words.values()))
    if len(choices if names else values) < 2:
        raise InputDataError(
            f"`{name}` has no bounds, and its column holds {choices}, too few to "
            f"guess them. Write which values it may take: {HELP}"
        )
    if names:
        return Category(choices)
    if all(value.is_integer() for value in values):
        return Integer(int(min(values)), int(max(values)))
    return Continuous(min(values), max(values))
