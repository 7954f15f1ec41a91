"""One call in a worker; its result or its error is returned as plain data."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

_LONGEST = 20_000  # characters of a traceback: some errors print all of their data


@dataclass(frozen=True)
class Returned:
    """What a call returned."""

    # The result.
    value: object


@dataclass(frozen=True)
class Raised:
    """Why a call returned nothing."""

    # The error in one line.
    summary: str
    # The traceback, or all that is known instead.
    details: str


Outcome: TypeAlias = Returned | Raised


def attempt(
    function: Callable[..., object], arguments: tuple[object, ...], label: str = ""
) -> Outcome:
    """Call a function; an error is an outcome like another.

    An error crosses to another process as text, because not every exception can be
    pickled there and unpickled here.
    """
    try:
        return Returned(function(*arguments))
    except (Exception, SystemExit) as error:
        return Raised(summary(error), _details(error))


def summary(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _details(error: BaseException) -> str:
    own = error.__traceback__  # its first frame is `attempt`
    below = None if own is None else own.tb_next
    text = "".join(traceback.format_exception(error.with_traceback(below)))
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters ...\n{text[-half:]}"
