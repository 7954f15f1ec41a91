"""``problem.toml``: what the columns of a CSV file are."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from botorch.exceptions.errors import InputDataError

from botorch_drbo._validation import did_you_mean, is_number
from botorch_drbo.cli.csv_file import CsvFile
from botorch_drbo.cli.description import Description, check_column
from botorch_drbo.space import Category, Continuous, Integer, Log, Ordinal, Variable

Toml: TypeAlias = "str | int | float | bool | list[Toml] | dict[str, Toml]"

_BOUNDS = {"Continuous": Continuous, "Integer": Integer, "Log": Log}
_LISTS = {"Ordinal": Ordinal, "Category": Category}
_HELP = (
    "[LOW, HIGH] for a number, {Integer = [LOW, HIGH]}, {Log = [LOW, HIGH]}, "
    '{Category = ["A", "B"]} or {Ordinal = [1, 2, 5]}'
)


def read_problem(path: Path, file: CsvFile) -> Description:
    """Read a file that says which columns are what.

    Args:
        path: Where it is.
        file: The data, which must have the columns.

    Raises:
        InputDataError: No TOML, a key that is unknown or missing, or a value that
            cannot be read; the message names the file and the key.
    """
    try:
        content = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputDataError(
            f"{path} cannot be read as TOML: {error}. A name with characters other "
            "than letters, digits, - and _ needs quotation marks, and so does a text."
        ) from error
    for key in content:
        if key not in _KEYS and key not in _TABLES:
            raise InputDataError(
                f"{path} has an unknown key `{key}`."
                f"{did_you_mean(key, [*_KEYS, *_TABLES])} The keys are "
                f"{[*_KEYS, *_TABLES]}."
            )
    for key in ("outcome", *_TABLES):
        if not content.get(key):
            example = 'outcome = "yield"' if key == "outcome" else f"a table [{key}]"
            raise InputDataError(f"{path} has no `{key}`. Write {example}.")
    said: dict[str, Any] = {
        key: _KEYS[key](path, key, content[key]) for key in content if key in _KEYS
    }
    variables = {key: _variables(path, key, content[key]) for key in _TABLES}
    named = [content["outcome"], *(name for v in variables.values() for name in v)]
    if "status" in content:
        named.append(content["status"])
    for name in named:
        try:
            check_column(name, file)
        except InputDataError as error:
            raise InputDataError(f"{path} names `{name}`, and {error}") from error
    return Description(**variables, **said)


def _text(path: Path, key: str, value: Toml) -> str:
    if not isinstance(value, str) or not value:
        raise _refusal(path, key, value, 'a text, such as "yield"')
    return value


def _texts(path: Path, key: str, value: Toml) -> list[str]:
    found = value if isinstance(value, list) else [value]
    texts = [text for text in found if isinstance(text, str)]
    if len(texts) < len(found):
        raise _refusal(path, key, value, f'texts, such as {key} = ["runoff <= 9"]')
    return texts


def _flag(path: Path, key: str, value: Toml) -> bool:
    if not isinstance(value, bool):
        raise _refusal(path, key, value, "true or false")
    return value


def _number(path: Path, key: str, value: Toml) -> float:
    if not is_number(value):
        raise _refusal(path, key, value, "a number")
    return float(value)


def _radius(path: Path, key: str, value: Toml) -> float | str | dict[str, float]:
    if isinstance(value, str):
        return _text(path, key, value)
    if isinstance(value, dict):
        return {name: _number(path, f"{key}.{name}", v) for name, v in value.items()}
    if not is_number(value):
        raise _refusal(path, key, value, 'a number, "spread", "sd" or {NAME = SIZE}')
    return float(value)


_TABLES = ("decisions", "contexts")
_KEYS: Mapping[str, Callable[[Path, str, Toml], object]] = {
    "outcome": _text,
    "minimize": _flag,
    "limits": _texts,
    "constraints": _texts,
    "status": _text,
    "algorithm": _text,
    "surrogate": _text,
    "feasibility": _number,
    "half_life": _number,
    "radius": _radius,
}


def _variables(path: Path, table: str, given: Toml) -> dict[str, Variable]:
    if not isinstance(given, dict):
        raise _refusal(path, table, given, f"a table: [{table}], and a line for each")
    return {name: _variable(path, table, name, value) for name, value in given.items()}


def _variable(path: Path, table: str, name: str, given: Toml) -> Variable:
    key = f"{table}.{name}"
    if isinstance(given, list):
        given = {"Continuous": given}
    if not isinstance(given, dict) or len(given) != 1:
        above = ""
        if name in _KEYS:
            above = f" If it is the problem's key `{name}`, write it above the tables."
        raise _refusal(path, key, given, _HELP, above)
    ((kind, values),) = given.items()
    kinds = {**_BOUNDS, **_LISTS}
    if kind not in kinds:
        near = did_you_mean(kind, kinds)
        raise _refusal(path, key, given, _HELP, f" There is no kind {kind}.{near}")
    if not isinstance(values, list) or (kind in _BOUNDS and len(values) != 2):
        raise _refusal(path, key, given, _HELP)
    try:
        if kind in _BOUNDS:
            return _BOUNDS[kind](*values)
        return _LISTS[kind](values)
    except InputDataError as error:
        raise InputDataError(f"{path}, {key}: {error}") from error


def _refusal(
    path: Path, key: str, value: Toml, instead: str, more: str = ""
) -> InputDataError:
    return InputDataError(
        f"{path}, {key}: got {as_toml(value)}. Write {instead}.{more}"
    )


def as_toml(value: Toml) -> str:
    r"""A value as TOML has it, in one line.

    Example:
        >>> print(as_toml({"seed rate": [0, 1.5], "sorts": ["A", "B"], "new": True}))
        {"seed rate" = [0, 1.5], sorts = ["A", "B"], new = true}
    """
    if isinstance(value, dict):
        pairs = (f"{as_key(name)} = {as_toml(v)}" for name, v in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_comment(text: str) -> str:
    r"""A text as a comment of TOML: what would end its line is written as an escape.

    Example:
        >>> print(as_comment("a\nb = 1"))
        # a\nb = 1
    """
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return f"# {shown}"


def as_key(name: str) -> str:
    """A name as a key of TOML."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else as_toml(name)
