"""Checksums that show whether a stored run is unchanged."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from botorch.exceptions.errors import InputDataError


def checksum(previous: str, body: bytes) -> str:
    r"""The first 64 bits of SHA-256 over a checksum and the bytes that follow it.

    Args:
        previous: The checksum of what stands before, or an empty string.
        body: The bytes.

    Returns:
        16 hexadecimal digits.

    Example:
        >>> checksum("", b"abc")
        'ba7816bf8f01cfea'
    """
    return hashlib.sha256(previous.encode() + body).hexdigest()[:16]


def state_checksum(state: dict[str, Any]) -> str:
    r"""The checksum of a state, the same after any trip through JSON.

    Stores of JSON keep neither the order of keys nor, some of them, the difference
    between 1 and 1.0.

    Args:
        state: Its configuration and events are covered.

    Returns:
        16 hexadecimal digits.

    Raises:
        InputDataError: It holds something that is not JSON, or is nested too deeply.
    """
    content = [state.get(key) for key in ("config", "events")]
    try:
        text = json.dumps(_canonical(content), sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputDataError(
            "The state holds something other than plain JSON types, or is nested too "
            f"deeply ({type(error).__name__}): it is damaged."
        ) from error
    return checksum("", text.encode())


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _canonical(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(entry) for entry in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
