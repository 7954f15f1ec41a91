r"""Problems of our own experiments, which are no part of the package.

Example:
    >>> make("reservoir", flood_share=0.0).optimum.decision
    (1.0, 1.0)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.problems.action_sets import ActionSetBandit
from benchmarks.problems.bocu import BOCUProblem, objective_regret
from benchmarks.problems.misspecified import MisspecifiedFunction
from benchmarks.problems.reservoir import Reservoir
from botorch_drbo.test_functions import TEST_FUNCTIONS, RobustTestFunction

PROBLEMS: dict[str, Callable[..., RobustTestFunction]] = {
    "misspecified_waves": partial(MisspecifiedFunction, "waves"),
    "misspecified_bumps": partial(MisspecifiedFunction, "bumps"),
    "reservoir": Reservoir,
}


def factories() -> dict[str, Callable[..., RobustTestFunction]]:
    """What a config can name: these and the library's, own ones that it entered too."""
    return {**TEST_FUNCTIONS, **PROBLEMS}


def make(name: str, **options: Any) -> RobustTestFunction:
    """The problem of that name.

    Args:
        name: A key of ``factories()``.
        **options: What the class takes.
    """
    return factories()[name](**options)


__all__ = [
    "PROBLEMS",
    "ActionSetBandit",
    "BOCUProblem",
    "MisspecifiedFunction",
    "Reservoir",
    "factories",
    "make",
    "objective_regret",
]
