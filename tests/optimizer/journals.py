"""Journals read back, and sealed anew, for the tests of this folder."""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import BotorchWarning

from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.optimizer.journal import state_checksum


def resume_quietly(path: Path, **checks: Any) -> RobustOptimizer:
    with warnings.catch_warnings():
        warnings.simplefilter("error", BotorchWarning)
        return RobustOptimizer.resume(path, **checks)


def sealed(state: dict[str, Any]) -> dict[str, Any]:
    """The same state under a checksum that fits, so that the rest is tested."""
    try:
        return {**state, "check": state_checksum(state)}
    except InputDataError:  # too deep for a checksum
        return state


def resealed(lines: list[bytes]) -> list[bytes]:
    """Give lines the checksums that they would have been written with."""
    check, sealed = "", []
    for line in lines:
        record = json.loads(line)
        if not isinstance(record, dict):
            sealed.append(line)
            continue
        record.pop("check", None)
        body = json.dumps(record).encode()[:-1]
        check = hashlib.sha256(check.encode() + body).hexdigest()[:16]
        sealed.append(body + f', "check": "{check}"}}'.encode())
    return sealed
