"""Checks of an optimizer's arguments, and of what a stored run depends on."""

from __future__ import annotations

import warnings
from typing import Any

import botorch
import gpytorch
import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor

from botorch_drbo._validation import check_bounds
from botorch_drbo.algorithms import Algorithm, make_algorithm


def as_algorithm(algorithm: str | Algorithm, options: dict[str, Any]) -> Algorithm:
    """A recipe by name and options, or a ready-made one."""
    if isinstance(algorithm, str):
        return make_algorithm(algorithm, **options)
    if not isinstance(algorithm, Algorithm):
        raise InputDataError(
            "`algorithm` must be a name or an Algorithm, got "
            f"{type(algorithm).__name__}."
        )
    if options:
        raise InputDataError(
            f"Got the options {sorted(options)} beside a ready-made algorithm. Give "
            "them to the algorithm, or name the algorithm by a string."
        )
    return algorithm


def as_count(value: int, name: str) -> int:
    """``value`` if it is an integer that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputDataError(f"`{name}` must be an integer >= 0, got {value!r}.")
    return value


def environment() -> dict[str, Any]:
    """What may change the last digits of a decision."""
    return {
        "torch": str(torch.__version__),
        "gpytorch": gpytorch.__version__,
        "botorch": botorch.__version__,
        "threads": torch.get_num_threads(),
    }


def compare_environment(stored: object, source: str) -> None:
    """Warn if a run goes on under other versions than it began with."""
    now = environment()
    if isinstance(stored, dict) and stored != now:
        warnings.warn(
            f"In {source} the run had {stored}, now it has {now}. No observation is "
            "affected, but the next decisions may differ from what that run would have "
            "asked.",
            BotorchWarning,
            stacklevel=3,
        )


def compare_bounds(
    given: Tensor | None, stored: Tensor, name: str, source: str
) -> None:
    """Refuse the journal of another problem."""
    if given is None:
        return
    check_bounds(given, name)
    if not torch.equal(given.to(stored), stored):
        raise InputDataError(
            f"In {source} the problem has `{name}` {stored.tolist()}, not "
            f"{given.tolist()}: it is the journal of another problem."
        )
