"""Events as plain JSON types and back. Types are checked here, values in ``events``.

A new kind of event is one more entry of ``_KINDS``, and its lines in ``write_event``
and ``read_event``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo._validation import is_number
from botorch_drbo.codec import decode, encode
from botorch_drbo.contexts import ContextSet
from botorch_drbo.optimizer.events import Ask, CheckedTell, Event, Tell, Withdraw
from botorch_drbo.problem import Round
from botorch_drbo.problem.round import RoundRadius
from botorch_drbo.schedules.radius import as_radius


def write_event(event: Event, number: int) -> dict[str, Any]:
    r"""An event that has been checked, in plain JSON types.

    Args:
        event: The event, as a run keeps it.
        number: Its number in the run, counted from 1.

    Returns:
        What ``read_event`` reads.
    """
    if isinstance(event, Withdraw):
        fields: dict[str, Any] = {"event": "withdraw", "trial": event.trial}
    elif isinstance(event, Ask):
        fields = {"event": "ask", **_write_ask(event)}
    else:
        fields = {"event": "fail" if event.failed else "tell", **_write_tell(event)}
    return {**fields, "number": number}


def _write_ask(event: Ask) -> dict[str, Any]:
    round_ = event.this_round
    fields: dict[str, Any] = {"x": event.x.tolist()}
    if event.actions is not None:
        fields["actions"] = event.actions.tolist()
    if round_.context_set is not None:
        fields["context_set"] = encode(round_.context_set, "context_set")
    if round_.radius is not None:
        fields["radius"] = encode(round_.radius, "radius")
    if round_.known_context is not None:
        values = round_.known_context.tolist()
        fields["context"] = [None if math.isnan(v) else v for v in values]
    if event.chosen_contexts is not None:
        fields["chosen_contexts"] = event.chosen_contexts.tolist()
    return fields


def _write_tell(event: CheckedTell) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "x": event.x.tolist(),
        "c": None if event.c is None else event.c.tolist(),
        "closes_pending": event.closes_pending,
    }
    if not event.failed:
        fields["y"] = None if event.y is None else event.y.tolist()
    for name in ("y_variance", "constraints"):
        value: Tensor | None = getattr(event, name)
        if value is not None:
            fields[name] = value.tolist()
    if event.error is not None:
        fields["error"] = event.error
    return fields


def read_event(
    record: object, number: int
) -> tuple[Ask | Tell | Withdraw, dict[str, str]]:
    r"""Read a stored event.

    Args:
        record: Anything that JSON can hold.
        number: The number that it must have.

    Returns:
        The event, its numbers as float64 tensors, not checked yet; and the dtypes that
        versions 1 and 2 noted of what was told in a coarser one.

    Raises:
        InputDataError: It is no event that this library writes.

    Example:
        >>> read_event({"event": "ask", "number": 1, "x": [[0.5]]}, 1)[0].x
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
    fields = _read_fields(record, kind)
    dtypes = fields.pop("dtypes", {})
    if kind == "withdraw":
        return Withdraw(**fields), dtypes
    if kind != "ask":
        return Tell(**fields, failed=kind == "fail"), dtypes
    known = {name: fields.pop(name, None) for name in ("context_set", "radius")}
    this_round = Round(**known, known_context=fields.pop("context", None))
    return Ask(**fields, this_round=this_round), dtypes


def _read_fields(record: Mapping[str, object], kind: str) -> dict[str, Any]:
    expected = _KINDS[kind]
    wrong = [str(key) for key in record if key not in {"event", "number", *expected}]
    wrong += [
        name
        for name, field in expected.items()
        if field.required and name not in record
    ]
    if wrong:
        raise InputDataError(
            f"A `{kind}` has the fields {list(expected)}; unknown or missing: {wrong}."
        )
    fields: dict[str, Any] = {}
    for name in record.keys() & expected.keys():
        value, field = record[name], expected[name]
        allowed = value is None and field.nullable
        fields[name] = None if allowed else field.read(value, name)
    return fields


def _brief(value: object) -> str:
    """What it is, in few words, however long or deep it is."""
    if value is None or isinstance(value, (str, bool, float)):
        return repr(value)[:80]
    return f"a {type(value).__name__}"


def _matrix(value: object, name: str) -> Tensor:
    """Rows of numbers, all of one length, in float64; there is at least one."""
    if not isinstance(value, list) or not value:
        raise InputDataError(f"`{name}` must be a list of rows, got {_brief(value)}.")
    rows = [_vector(row, f"{name}[{i}]") for i, row in enumerate(value)]
    lengths = {len(row) for row in rows}
    if len(lengths) > 1:
        raise InputDataError(
            f"`{name}` must have rows of one length, got lengths {sorted(lengths)}."
        )
    return torch.stack(rows)


def _vector(value: object, name: str) -> Tensor:
    """A list of numbers, in float64; there is at least one."""
    if not isinstance(value, list) or not value:
        raise InputDataError(
            f"`{name}` must be a list of numbers, got {_brief(value)}."
        )
    for entry in value:
        if not is_number(entry):
            raise InputDataError(
                f"`{name}` must be a list of numbers, but has {_brief(entry)} in it."
            )
    try:
        return torch.tensor([float(entry) for entry in value], dtype=torch.double)
    except OverflowError as error:
        raise InputDataError(
            f"`{name}` has an integer that is too large for a float64."
        ) from error


def _known_context(value: object, name: str) -> Tensor:
    """A list of numbers, null where nothing is known, in float64 with NaN there."""
    if not isinstance(value, list):
        raise InputDataError(
            f"`{name}` must be a list of numbers or null, got {_brief(value)}."
        )
    known = _vector([0.0 if entry is None else entry for entry in value], name)
    unknown = torch.tensor([entry is None for entry in value])
    return known.masked_fill(unknown, torch.nan)


def _context_set(value: object, name: str) -> ContextSet:
    """A context set, as ``encode`` writes it."""
    return decode(value, ContextSet, name)


def _number(value: object, name: str) -> float:
    """A number."""
    return _vector([value], name).item()


def _radius(value: object, name: str) -> RoundRadius:
    """A number, the name of a rule, or a radius by column."""
    if isinstance(value, str):
        as_radius(value, name)
        return value
    return (
        decode(value, dict, name) if isinstance(value, dict) else _number(value, name)
    )


def _flag(value: object, name: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise InputDataError(f"`{name}` must be true or false, got {_brief(value)}.")
    return value


def _text(value: object, name: str) -> str:
    """A text."""
    if not isinstance(value, str):
        raise InputDataError(f"`{name}` must be a text, got {_brief(value)}.")
    return value


def _trial(value: object, name: str) -> int:
    """The number of a trial."""
    if type(value) is not int:
        raise InputDataError(f"`{name}` must be a number, got {_brief(value)}.")
    return value


def _dtypes(value: object, name: str) -> dict[str, str]:
    """Names of dtypes, by field, as versions 1 and 2 noted them."""
    known = ("float16", "bfloat16", "float32")  # a coarser one than the run's
    if not isinstance(value, dict) or not all(v in known for v in value.values()):
        raise InputDataError(f"`{name}` must map names to {known}.")
    return value


@dataclass(frozen=True)
class _Field:
    """A field of a stored event.

    Attributes:
        read: Checks its JSON value, and turns it into what is replayed.
        nullable: Whether it may be null.
        required: Whether it must be there.
    """

    read: Callable[[object, str], Any]
    nullable: bool = False
    required: bool = True


_TELL_ENTRIES = {
    "x": _Field(_matrix),
    "c": _Field(_matrix),
    "closes_pending": _Field(_flag),
    "constraints": _Field(_matrix, required=False),
    "dtypes": _Field(_dtypes, required=False),
}

_KINDS: dict[str, dict[str, _Field]] = {
    "ask": {
        "x": _Field(_matrix),
        "actions": _Field(_matrix, required=False),
        "context_set": _Field(_context_set, required=False),
        "radius": _Field(_radius, required=False),
        "context": _Field(_known_context, required=False),
        "chosen_contexts": _Field(_matrix, required=False),
        "dtypes": _Field(_dtypes, required=False),
    },
    "tell": {
        **_TELL_ENTRIES,
        "y": _Field(_vector, nullable=True),
        "y_variance": _Field(_vector, required=False),
    },
    "fail": {
        **_TELL_ENTRIES,
        "c": _Field(_matrix, nullable=True),
        "error": _Field(_text, required=False),
    },
    "withdraw": {"trial": _Field(_trial)},
}
"""The fields of each kind of event, beside ``event`` and ``number``."""
