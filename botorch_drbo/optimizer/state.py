"""A run as one dictionary of plain JSON types, with a checksum."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from botorch.exceptions.errors import InputDataError

from botorch_drbo.codec.objects import Json
from botorch_drbo.optimizer.checksum import state_checksum

FORMAT = "botorch_drbo state"
VERSION = 4


def write_state(
    config: Json, environment: Json, events: Sequence[dict[str, Json]]
) -> dict[str, Json]:
    """The state of a run; nothing in it is shared with the run.

    Args:
        config: Its configuration, in JSON types.
        environment: What its results depend on beside that, in JSON types.
        events: Its events, in JSON types.
    """
    state = {
        "format": FORMAT,
        "version": VERSION,
        "config": config,
        "environment": environment,
        "events": copy.deepcopy(list(events)),
    }
    return {**state, "check": state_checksum(state)}


def read_state(state: object) -> tuple[object, object, list[object]]:
    """The configuration, the environment and the events of a state.

    Raises:
        InputDataError: Not a state, another version, or damaged.
    """
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise InputDataError(
            "`state` must be a dictionary from `RobustOptimizer.state_dict()`."
        )
    version = state.get("version")
    if version != VERSION:
        raise InputDataError(
            f"The state has version {version!r}, and this library reads version "
            f"{VERSION}: load it with the library that made it."
        )
    if state.get("check") != state_checksum(state):
        raise InputDataError(
            "The state does not fit its checksum: it was damaged or edited after "
            "`state_dict()`. Restore it from a copy."
        )
    events = state.get("events")
    if not isinstance(events, list):
        raise InputDataError("The state has no list of `events`: it is damaged.")
    return state.get("config"), state.get("environment"), events
