"""Events as plain JSON types and back; values are checked in ``events``."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from botorch.exceptions.errors import InputDataError

from botorch_drbo.codec import decode, encode
from botorch_drbo.codec.objects import make
from botorch_drbo.optimizer.events import Ask, CheckedTell, Event, Tell, Withdraw

_KINDS = {"ask": Ask, "tell": Tell, "withdraw": Withdraw}
_NAMES = {Ask: "ask", CheckedTell: "tell", Withdraw: "withdraw"}


def write_event(event: Event, number: int) -> dict[str, Any]:
    """An event that has been checked, with its number from 1, in plain JSON types."""
    given = {
        field.name: value
        for field in fields(event)
        if (value := getattr(event, field.name)) is not field.default
        or field.default is MISSING
    }
    stored = {name: encode(value, name) for name, value in given.items()}
    return {"event": _NAMES[type(event)], **stored, "number": number}


def read_event(record: object, number: int) -> Ask | Tell | Withdraw:
    """The event of a stored record, not checked yet; ``number`` is what it must have.

    Raises:
        InputDataError: It is no event that this library writes.

    Example:
        >>> x = {"tensor": [[0.5]], "dtype": "float64"}
        >>> read_event({"event": "ask", "number": 1, "x": x}, 1).x
        tensor([[0.5000]], dtype=torch.float64)
    """
    if not isinstance(record, dict):
        raise InputDataError(f"It must be a JSON object, got {_brief(record)}.")
    kind = record.get("event")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InputDataError(f"There is no event {_brief(kind)}.")
    if type(record.get("number")) is not int or record["number"] != number:
        raise InputDataError(
            f"Its number must be {number}, got {_brief(record.get('number'))}."
        )
    given = {k: v for k, v in record.items() if k not in ("event", "number")}
    arguments = {name: decode(value, object, name) for name, value in given.items()}
    return make(_KINDS[kind], arguments)


def _brief(value: object) -> str:
    """What it is, in few words, however long or deep it is."""
    if value is None or isinstance(value, (str, bool, float)):
        return repr(value)[:80]
    return f"a {type(value).__name__}"
