"""The functions of the development set, in the order that splits them in halves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from torch import Tensor

from benchmarks.development.formulas import PROBLEMS
from benchmarks.development.samples import CategorySample, PriorSample
from benchmarks.problems import make
from botorch_drbo.problem import SearchSpace
from botorch_drbo.test_functions.base import RobustTestFunction
from botorch_drbo.test_functions.problems import ClosedForm

HALVES = ("A", "B")


@dataclass(frozen=True)
class Case:
    """A function of the development set.

    Args:
        make: The function of a seed.
        random: Whether another seed is another function.
        categories: Decision columns that are categories, and how many there are.
    """

    make: Callable[[int], RobustTestFunction]
    random: bool = False
    categories: Mapping[int, int] = field(default_factory=dict)

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


def _library(name: str) -> Case:
    return Case(lambda seed: make(name))


def _formula(name: str) -> Case:
    return Case(lambda seed: ClosedForm(PROBLEMS[name]))


def _sample(kernel: str, d_x: int, d_c: int, noise_std: float = 0.0) -> Case:
    make = partial(PriorSample, kernel, d_x, d_c, noise_std=noise_std)
    return Case(make, random=True)


# Neighbours are of one kind; see claims.md before a row is moved.
CASES: Mapping[str, Case] = {
    "ackley_2_1": _library("ackley_2_1"),
    "rastrigin_2_1": _formula("rastrigin_2_1"),
    "hartmann_2_1": _library("hartmann_2_1"),
    "hartmann_5_1": _library("hartmann_5_1"),
    "three_hump_camel": _library("three_hump_camel"),
    "six_hump_camel": _library("six_hump_camel"),
    "branin_2_2": _library("branin_2_2"),
    "drop_wave_1_1": _formula("drop_wave_1_1"),
    "newsvendor": _library("newsvendor"),
    "newsvendor_2_1": _formula("newsvendor_2_1"),
    "reservoir_2_1": _formula("reservoir_2_1"),
    "portfolio_normal": _library("portfolio_normal"),
    "rbf_2_2": _sample("rbf", 2, 2),
    "matern_2_1": _sample("matern_5_2", 2, 1),
    "rational_quadratic_3_1": _sample("rational_quadratic", 3, 1),
    "category_2_1": Case(CategorySample, random=True, categories={0: 3}),
    "noisy_1_2": _sample("matern_3_2", 1, 2, noise_std=0.4),
    "bowl_3_1": _formula("bowl_3_1"),
}


def half_of(case: str) -> str:
    """A for the odd rows of ``CASES``, B for the even ones.

    Example:
        >>> half_of("ackley_2_1"), half_of("rastrigin_2_1")
        ('A', 'B')
    """
    return HALVES[list(CASES).index(case) % 2]
