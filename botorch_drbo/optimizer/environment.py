"""The versions of a run, on which the last digits of a decision depend."""

from __future__ import annotations

import platform
import warnings

import botorch
import gpytorch
import scipy
import torch
from botorch.exceptions.warnings import BotorchWarning

import botorch_drbo
from botorch_drbo.codec.objects import Json


def environment() -> dict[str, Json]:
    """What a decision depends on beside the configuration and the events."""
    return {
        "botorch_drbo": botorch_drbo.__version__,
        "botorch": botorch.__version__,
        "gpytorch": gpytorch.__version__,
        "torch": str(torch.__version__),
        "scipy": scipy.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
    }


def compare_environment(stored: object, source: str) -> None:
    """Warn if a run continues with other versions than it began with.

    Args:
        stored: What ``environment`` returned then; anything if the record is damaged.
        source: Where it was stored, for the message.
    """
    now = environment()
    if not isinstance(stored, dict):
        lacks = f"In {source} no `environment` says under which versions the run was."
        _warn(f"{lacks} Now they are {now}.")
        return
    names = [name for name in {**now, **stored} if stored.get(name) != now.get(name)]
    if names:
        changes = [
            f"{name} {stored.get(name, 'not recorded')}, now {now.get(name, 'unknown')}"
            for name in names
        ]
        _warn(f"In {source} the run had: {'; '.join(changes)}.")


def _warn(what: str) -> None:
    warnings.warn(
        f"{what} No observation is affected, but the next decisions may differ from "
        "what that run would have asked.",
        BotorchWarning,
        stacklevel=4,
    )
