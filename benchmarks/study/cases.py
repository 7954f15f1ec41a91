"""Cases: functions in which methods learn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from benchmarks.problems import make
from benchmarks.run.config import ConfigError
from botorch_drbo._validation import did_you_mean
from botorch_drbo.problem import SearchSpace
from botorch_drbo.test_functions.base import RobustTestFunction
from botorch_drbo.test_functions.closed_form import ClosedForm, Problem

INITIAL = 5  # random decisions at the start of a run, the same for all methods
HALVES = ("A", "B")


@dataclass(frozen=True)
class Case:
    """A function to be learnt.

    Args:
        make: The function of a seed.
        random: Whether another seed is another function.
        categories: Decision columns that are categories, and how many there are.
        d_c: The number of contexts, where a method takes part by it.
        drifts: Whether the law moves while the methods learn, to end where the mean has
            moved badly by two standard deviations.
        noisy: Whether outcomes are.
        tension: Whether the robust decision gains much under a shift.
        seen: Whether defaults were chosen by it.
    """

    make: Callable[[int], RobustTestFunction]
    random: bool = False
    categories: Mapping[int, int] = field(default_factory=dict)
    d_c: int = 1
    drifts: bool = False
    noisy: bool = False
    tension: bool = False
    seen: bool = False

    def space(self, function: RobustTestFunction) -> SearchSpace:
        """What a recipe is told of the function."""
        return SearchSpace(
            bounds=function.bounds,
            context_bounds=function.context_bounds,
            categories=dict(self.categories),
        )

    def decisions(self, function: RobustTestFunction, uniforms: Tensor) -> Tensor:
        """Random decisions, each category as likely as another.

        Args:
            function: The function.
            uniforms: Points of the unit cube, ``n x d_x``.

        Returns:
            ``n x d_x``.
        """
        low, high = function.bounds
        X = low + uniforms * (high - low)
        for column, count in self.categories.items():
            X[:, column] = (uniforms[:, column] * count).floor().clamp_max(count - 1)
        return X


def fixed(name: str, **about: Any) -> Case:
    """A problem of the registry, the same under all seeds."""
    return Case(lambda seed: make(name), **about)


def formula(problem: Problem, **about: Any) -> Case:
    """A problem of a study's own."""
    return Case(lambda seed: ClosedForm(problem), **about)


def half_in(cases: Mapping[str, Case], case: str) -> str:
    """A for the odd rows of a list of cases, B for the even ones."""
    return HALVES[list(cases).index(case) % 2]


def check_names(who: str, *asked: tuple[Collection[str], Collection[str]]) -> None:
    """See to it that a study knows what it is asked for.

    Args:
        who: The study and its verb, as "The tournament knows".
        *asked: Names, and those that there are.

    Raises:
        ConfigError: It does not.
    """
    for names, known in asked:
        for name in set(names) - set(known):
            raise ConfigError(
                f"{who} no {name!r}.{did_you_mean(name, known)} The choices are "
                f"{', '.join(known)}."
            )
