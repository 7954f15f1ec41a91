"""The candidates: their names in tables, and their options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.run.config import ConfigError
from botorch_drbo._validation import did_you_mean
from botorch_drbo.surrogate import EnsembleOf, GaussianProcess

BASELINE = "botorch"
TWO = EnsembleOf(["botorch", GaussianProcess("matern52")])
THREE = EnsembleOf([TWO, GaussianProcess("rbf")])
CANDIDATES: Mapping[str, Mapping[str, Any]] = {
    BASELINE: {"surrogate": BASELINE},
    "matern": {"surrogate": "matern"},
    "kernels": {"surrogate": "kernels"},
    "hyperparameters": {"surrogate": "hyperparameters"},
    "two": {"surrogate": TWO},
    "three": {"surrogate": THREE},
    "four": {"surrogate": EnsembleOf([THREE, GaussianProcess("matern32")])},
}


def options_of(surrogate: str) -> Mapping[str, Any]:
    """The options of a recipe with that surrogate.

    Args:
        surrogate: A key of ``CANDIDATES``.

    Raises:
        ConfigError: There is none of that name.

    Example:
        >>> dict(options_of("botorch"))
        {'surrogate': 'botorch'}
    """
    if surrogate not in CANDIDATES:
        raise ConfigError(
            f"There is no candidate {surrogate!r}."
            f"{did_you_mean(surrogate, CANDIDATES)} The candidates are "
            f"{', '.join(CANDIDATES)}."
        )
    return CANDIDATES[surrogate]
