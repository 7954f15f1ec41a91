"""Variables as they are written on a command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from botorch.exceptions.errors import InputDataError

from botorch_drbo.space import (
    Category,
    Continuous,
    Integer,
    LinearConstraint,
    Log,
    Ordinal,
    Variable,
)

HELP = (
    "NAME=LOW:HIGH for a number, NAME=LOW:HIGH:int, NAME=LOW:HIGH:log, NAME=A,B,C for "
    "a category, NAME=1,2,5:ordinal for numbers of which only these may be taken."
)


def parse_variable(text: str, observed: Sequence[str] = ()) -> tuple[str, Variable]:
    r"""Read one variable.

    Args:
        text: For example ``price=10:90``, see ``HELP``. A name alone is what its column
            holds: a number within their range, or a category of these names.
        observed: What its column holds.

    Returns:
        Its name and kind.

    Raises:
        InputDataError: Something else, or a name alone whose column tells too little.

    Example:
        >>> parse_variable("stock=0:40:int")
        ('stock', Integer(lower=0, upper=40))
        >>> parse_variable("supplier=A,B")
        ('supplier', Category(choices=('A', 'B')))
    """
    name, equals, kind = text.partition("=")
    name, kind = name.strip(), kind.strip()
    if name and not equals:
        return name, _as_observed(name, observed)
    if not name or not kind:
        raise InputDataError(
            f"`{text}` cannot be read. Write what values it may take: {HELP}"
        )
    if "," in kind:
        return name, _listed(name, kind)
    parts = kind.split(":")
    kinds = {"": Continuous, "int": Integer, "log": Log}
    suffix = parts[2] if len(parts) == 3 else ""
    if len(parts) not in (2, 3) or suffix not in kinds:
        raise InputDataError(f"`{text}` cannot be read. Write {HELP}")
    read = int if suffix == "int" else float
    try:
        lower, upper = read(parts[0]), read(parts[1])
    except ValueError as error:
        whole = "whole numbers" if suffix == "int" else "numbers"
        raise InputDataError(
            f"`{text}` must have {whole} as bounds, got {parts[0]!r} and {parts[1]!r}."
        ) from error
    try:
        return name, kinds[suffix](lower, upper)
    except InputDataError as error:
        raise InputDataError(f"`{name}`: {error}") from error


def parse_constraint(text: str, names: Iterable[str]) -> LinearConstraint:
    r"""Read a linear constraint of decisions.

    Args:
        text: A weighted sum of decisions, ``<=`` or ``>=``, and a number.
        names: The decisions; a name may have spaces in it.

    Returns:
        The constraint.

    Raises:
        InputDataError: Something else.

    Example:
        >>> parse_constraint("price + 2*stock <= 100", ["price", "stock"])
        LinearConstraint(coefficients={'price': 1.0, 'stock': 2.0}, upper=100.0, ...)
    """
    known = list(names)
    longest_first = sorted(known, key=len, reverse=True)
    name = "|".join(map(re.escape, longest_first))
    number = r"\d+\.?\d*(?:e[+-]?\d+)?|\.\d+"
    term = rf"\s*(?P<sign>[+-])?\s*(?:(?P<size>{number})\s*\*?\s*)?(?P<name>{name})\s*"
    left, sense, right = (re.split("(<=|>=)", text, maxsplit=1) + ["", ""])[:3]
    coefficients: dict[str, float] = {}
    place = 0
    for found in re.finditer(term, left):
        joined = found["sign"] is not None or place == 0
        if found.start() != place or not joined or found["name"] in coefficients:
            break
        sign = -1.0 if found["sign"] == "-" else 1.0
        coefficients[found["name"]] = sign * float(found["size"] or 1.0)
        place = found.end()
    if place != len(left) or not coefficients or not _is_number(right):
        raise InputDataError(
            f"The constraint `{text}` cannot be read. Write a sum of decisions, each "
            "once, and a bound, such as 'price + 2*stock <= 100'. The decisions are "
            f"{known}."
        )
    bound = {"upper" if sense == "<=" else "lower": float(right)}
    return LinearConstraint(coefficients, **bound)


def parse_known(text: str, contexts: dict[str, Variable]) -> tuple[str, object]:
    r"""Read what is known of a context, ``weather=rain``.

    Args:
        text: A name, an equals sign, a value.
        contexts: The contexts.

    Returns:
        The name, and the value: of a category its name, else a number if it is one.

    Raises:
        InputDataError: Something else, or a column that is no context.
    """
    name, equals, value = (word.strip() for word in text.partition("="))
    if not equals or not value or name not in contexts:
        raise InputDataError(
            f"`--known {text}` cannot be read. Write NAME=VALUE with one of the "
            f"contexts {list(contexts)}."
        )
    return name, as_cell(value, contexts[name])


def as_cell(word: str, variable: Variable | None) -> object:
    """A number where there is one, of a category the name as it is; None if empty."""
    if not word:
        return None
    if isinstance(variable, Category) or not _is_number(word):
        return word  # the error message shows it
    return float(word)


def _listed(name: str, kind: str) -> Variable:
    choices, _, suffix = kind.partition(":")
    words = [word.strip() for word in choices.split(",")]
    try:
        if suffix == "ordinal":
            return Ordinal([float(word) for word in words])
        if suffix == "category":
            return Category(words)
    except ValueError as error:
        raise InputDataError(
            f"`{name}`: an ordinal takes numbers, got {words}. Leave out `:ordinal` "
            "if they are names."
        ) from error
    except InputDataError as error:
        raise InputDataError(f"`{name}`: {error}") from error
    if suffix:
        raise InputDataError(
            f"`{name}={kind}` cannot be read: a list ends in nothing, `:category` or "
            f"`:ordinal`, got `:{suffix}`."
        )
    if all(map(_is_number, words)):
        raise InputDataError(
            f"`{name}={kind}` is a list of numbers. Write `:ordinal` behind it if "
            "their order counts, `:category` if they are names."
        )
    try:
        return Category(words)
    except InputDataError as error:
        raise InputDataError(f"`{name}`: {error}") from error


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _as_observed(name: str, observed: Sequence[str]) -> Variable:
    """The kind of a column of which nothing is said but what it holds."""
    seen = sorted({word for word in observed if word})
    if len(seen) < 2:
        raise InputDataError(
            f"`{name}` has no bounds, and its column holds {seen}, too little to tell "
            f"them. Write what values it may take: {HELP}"
        )
    if all(map(_is_number, seen)):
        numbers = [float(word) for word in seen]
        return Continuous(min(numbers), max(numbers))
    return Category(seen)
