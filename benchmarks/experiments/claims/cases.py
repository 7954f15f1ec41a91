"""The cases, in the order that splits them in halves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from benchmarks.experiments.claims.formulas import PROBLEMS
from benchmarks.experiments.tournament.samples import SmoothSample
from benchmarks.problems import make
from botorch_drbo.test_functions.base import RobustTestFunction
from botorch_drbo.test_functions.problems import ClosedForm

TENSION = 15.0  # points that the robust decision gains under the shift, with f known


@dataclass(frozen=True)
class Case:
    """A function to be learnt.

    Args:
        make: The function of a seed; nothing else is drawn.
        tension: Whether the robust decision gains ``TENSION`` or more.
        random: Whether another seed is another function.
        seen: Whether it is in the development set, by which the surrogate "ensemble"
            was chosen (seeds 1 to 13 are the same).
    """

    make: Callable[[int], RobustTestFunction]
    tension: bool = False
    random: bool = False
    seen: bool = False


def _library(name: str, *, tension: bool = False, seen: bool = True) -> Case:
    return Case(lambda seed: make(name), tension=tension, seen=seen)


def _formula(name: str) -> Case:
    return Case(lambda seed: ClosedForm(PROBLEMS[name]), tension=True)


# Neighbours are of one kind; see claims.md before a row is moved.
CASES: Mapping[str, Case] = {
    "newsvendor": _library("newsvendor", tension=True),
    "advertised_2_1": _formula("advertised_2_1"),
    "two_products_2_2": _formula("two_products_2_2"),
    "branin_2_2": _library("branin_2_2", tension=True),
    "released_2_1": _formula("released_2_1"),
    "controller_2_2": _formula("controller_2_2"),
    "ackley_2_1": _library("ackley_2_1"),
    "hartmann_2_1": _library("hartmann_2_1"),
    "smooth_2_2": Case(partial(SmoothSample, 2, 2), random=True),
    "smooth_3_1": Case(partial(SmoothSample, 3, 1), random=True),
    "six_hump_camel": _library("six_hump_camel"),
    "hartmann_5_1": _library("hartmann_5_1"),
}


def half_of(case: str) -> str:
    """A for the odd rows of ``CASES``, B for the even ones.

    Example:
        >>> half_of("newsvendor"), half_of("advertised_2_1")
        ('A', 'B')
    """
    return "AB"[list(CASES).index(case) % 2]
