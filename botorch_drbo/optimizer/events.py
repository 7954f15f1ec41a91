"""What a stored event looks like: checked before it is replayed.

A new kind of event is one more entry of ``EVENTS``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo.codec import decode
from botorch_drbo.contexts import ContextSet
from botorch_drbo.optimizer.dtypes import as_dtypes


def as_matrix(value: object, name: str) -> Tensor:
    """Rows of numbers, all of one length, in float64; there is at least one."""
    if not isinstance(value, list) or not value:
        raise InputDataError(f"`{name}` must be a list of rows, got {_brief(value)}.")
    rows = [as_vector(row, f"{name}[{i}]") for i, row in enumerate(value)]
    lengths = {len(row) for row in rows}
    if len(lengths) > 1:
        raise InputDataError(
            f"`{name}` must have rows of one length, got lengths {sorted(lengths)}."
        )
    return torch.stack(rows)


def as_vector(value: object, name: str) -> Tensor:
    """A list of numbers, in float64; there is at least one."""
    if not isinstance(value, list) or not value:
        raise InputDataError(
            f"`{name}` must be a list of numbers, got {_brief(value)}."
        )
    for entry in value:
        if isinstance(entry, bool) or not isinstance(entry, (int, float)):
            raise InputDataError(
                f"`{name}` must be a list of numbers, but has {_brief(entry)} in it."
            )
    try:
        return torch.tensor([float(entry) for entry in value], dtype=torch.double)
    except OverflowError as error:
        raise InputDataError(
            f"`{name}` has an integer that is too large for a float64."
        ) from error


def as_known_context(value: object, name: str) -> Tensor:
    """A list of numbers, null where nothing is known, in float64 with NaN there."""
    if not isinstance(value, list):
        raise InputDataError(
            f"`{name}` must be a list of numbers or null, got {_brief(value)}."
        )
    known = as_vector([0.0 if entry is None else entry for entry in value], name)
    unknown = torch.tensor([entry is None for entry in value])
    return known.masked_fill(unknown, torch.nan)


def as_context_set(value: object, name: str) -> ContextSet:
    """A context set, as ``encode`` writes it."""
    return decode(value, ContextSet, name)


def as_number(value: object, name: str) -> float:
    """A number."""
    return as_vector([value], name).item()


def as_flag(value: object, name: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise InputDataError(f"`{name}` must be true or false, got {_brief(value)}.")
    return value


def as_trial(value: object, name: str) -> int:
    """The number of a trial."""
    if type(value) is not int:
        raise InputDataError(f"`{name}` must be a number, got {_brief(value)}.")
    return value


@dataclass(frozen=True)
class Field:
    """A field of a stored event.

    Attributes:
        read: Checks its JSON value, and turns it into what is replayed.
        nullable: Whether it may be null.
        required: Whether it must be there.
    """

    read: Callable[[object, str], Any]
    nullable: bool = False
    required: bool = True


_DTYPES = {"dtypes": Field(as_dtypes, required=False)}
_TOLD = {
    "x": Field(as_matrix),
    "c": Field(as_matrix),
    "closes_pending": Field(as_flag),
    "constraints": Field(as_matrix, required=False),
    **_DTYPES,
}

EVENTS: dict[str, dict[str, Field]] = {
    "ask": {
        "x": Field(as_matrix),
        "actions": Field(as_matrix, required=False),
        "context_set": Field(as_context_set, required=False),
        "radius": Field(as_number, required=False),
        "context": Field(as_known_context, required=False),
        "chosen_contexts": Field(as_matrix, required=False),
        **_DTYPES,
    },
    "tell": {
        **_TOLD,
        "y": Field(as_vector, nullable=True),
        "y_variance": Field(as_vector, required=False),
    },
    "fail": _TOLD,
    "withdraw": {"trial": Field(as_trial)},
}
"""The fields of each kind of event, beside ``event`` and ``number``."""


def read_event(event: object, number: int) -> tuple[str, dict[str, Any]]:
    r"""Check a stored event.

    Args:
        event: Anything that JSON can hold.
        number: The number that it must have.

    Returns:
        Its kind, and the fields that it has: numbers as float64 tensors, None for
        null.

    Raises:
        InputDataError: It is no event that this library writes.

    Example:
        >>> read_event({"event": "ask", "number": 1, "x": [[0.5]]}, 1)[0]
        'ask'
    """
    if not isinstance(event, dict):
        raise InputDataError(f"It must be a JSON object, got {_brief(event)}.")
    kind = event.get("event")
    if not isinstance(kind, str) or kind not in EVENTS:
        raise InputDataError(f"There is no event {_brief(kind)}.")
    if type(event.get("number")) is not int or event["number"] != number:
        raise InputDataError(
            f"Its number must be {number}, got {_brief(event.get('number'))}."
        )
    expected = EVENTS[kind]
    wrong = [str(key) for key in event if key not in {"event", "number", *expected}]
    wrong += [
        name for name, field in expected.items() if field.required and name not in event
    ]
    if wrong:
        raise InputDataError(
            f"A `{kind}` has the fields {list(expected)}; unknown or missing: {wrong}."
        )
    fields: dict[str, Any] = {}
    for name in event.keys() & expected.keys():
        value, field = event[name], expected[name]
        allowed = value is None and field.nullable
        fields[name] = None if allowed else field.read(value, name)
    return kind, fields


def _brief(value: object) -> str:
    """What it is, in few words, however long or deep it is."""
    if value is None or isinstance(value, (str, bool, float)):
        return repr(value)[:80]
    return f"a {type(value).__name__}"
