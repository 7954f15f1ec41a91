"""Variables as they are written on a command line."""

from __future__ import annotations

from collections.abc import Sequence

from botorch.exceptions.errors import InputDataError

from botorch_drbo.space import Category, Continuous, Integer, Log, Ordinal, Variable

HELP = (
    "NAME=LOW:HIGH for a number, NAME=LOW:HIGH:int, NAME=LOW:HIGH:log, NAME=A,B,C for "
    "a category, NAME=1,2,5:ordinal for numbers of which only these may be taken."
)


def parse_variable(text: str, observed: Sequence[str] = ()) -> tuple[str, Variable]:
    r"""Read one variable.

    Args:
        text: For example ``price=10:90``, see ``HELP``.
        observed: What its column holds, to be named where the bounds are missing.

    Returns:
        Its name and kind.

    Raises:
        InputDataError: Something else.

    Example:
        >>> parse_variable("stock=0:40:int")
        ('stock', Integer(lower=0, upper=40))
        >>> parse_variable("supplier=A,B")
        ('supplier', Category(choices=('A', 'B')))
    """
    name, equals, kind = text.partition("=")
    name, kind = name.strip(), kind.strip()
    if not equals or not name or not kind:
        raise InputDataError(
            f"`{name}` has no bounds. Write what values it may take: {HELP}"
            f"{_range(observed)}"
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


def _range(observed: Sequence[str]) -> str:
    """What the data hold: a help to decide, and no default."""
    seen = [word for word in observed if word]
    if not seen:
        return ""
    if all(map(_is_number, seen)):
        numbers = sorted(map(float, seen))
        return f" (The data run from {numbers[0]:g} to {numbers[-1]:g}.)"
    return f" (The data have {', '.join(sorted(set(seen))[:8])}.)"
