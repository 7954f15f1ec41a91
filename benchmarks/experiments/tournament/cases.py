"""The cases, the methods and the sizes of the tournament."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from benchmarks.problems import make
from benchmarks.study.cases import Case, fixed
from benchmarks.study.laws import LawOfTheData
from benchmarks.study.samples import SmoothSample
from botorch_drbo.recipes import Recipe, make_recipe
from botorch_drbo.test_functions.base import RobustTestFunction

FEW = 10  # contexts at the first checkpoint
DRIFT = 2.0  # standard deviations by which a drifting law has moved at the end
BASELINE = "erbo"


def _sample(d_x: int, d_c: int, noise_std: float = 0.0) -> Case:
    make = partial(SmoothSample, d_x, d_c, noise_std=noise_std)
    return Case(make, random=True, d_c=d_c, noisy=noise_std > 0.0)


CASES: Mapping[str, Case] = {
    "newsvendor": fixed("newsvendor"),
    "ackley_2_1": fixed("ackley_2_1"),
    "wdrbo_figure1": fixed("wdrbo_figure1"),
    "branin_2_2": fixed("branin_2_2", d_c=2),
    "portfolio_normal": fixed("portfolio_normal", d_c=2),
    "smooth_2_2_noisy": _sample(2, 2, noise_std=0.3),
    "smooth_2_4": _sample(2, 4),
    "smooth_2_6": _sample(2, 6),
    "newsvendor_drifting": fixed("newsvendor", drifts=True),
    "branin_2_2_drifting": fixed("branin_2_2", d_c=2, drifts=True),
    "ackley_2_4": fixed("ackley_2_4", d_c=4),
    "hartmann_5_1": fixed("hartmann_5_1"),
    "newsvendor_noisy": Case(
        lambda seed: make("newsvendor", noise_std=0.1), noisy=True
    ),
}


@dataclass(frozen=True)
class Method:
    """A recipe with its options.

    Args:
        recipe: A key of ``RECIPES``.
        radius: A constant radius, in standard deviations of the law of the data; None
            for the recipe's own.
        max_contexts: The largest number of context columns that it takes part with.
    """

    recipe: str
    radius: float | None = None
    max_contexts: int = 100

    def algorithm(
        self, function: RobustTestFunction, search: Mapping[str, Any]
    ) -> Recipe:
        """The recipe for a test function; ``search`` are options of all recipes."""
        options = {"surrogate": "botorch", **search}  # what the results were taken with
        if self.radius is not None:
            options["radius"] = self.radius * LawOfTheData(function).radius
        return make_recipe(self.recipe, **options)


METHODS: Mapping[str, Method] = {
    "erbo": Method("erbo"),
    "sbo_kde": Method("sbo_kde"),
    "gp_ucb": Method("gp_ucb"),
    "wdrbo": Method("wdrbo"),
    "wdrbo_exact": Method("wdrbo_exact"),
    "wdrbo_exact_1sd": Method("wdrbo_exact", radius=1.0),
    "ts_erbo": Method("ts_erbo"),
    "ts_wdrbo": Method("ts_wdrbo"),
    "ei_erbo": Method("ei_erbo"),
    "ei_wdrbo": Method("ei_wdrbo"),
    "ei_wdrbo_1sd": Method("ei_wdrbo", radius=1.0),
    "drbo_kde": Method("drbo_kde"),
    # A grid of 100 contexts has two or three a side where there are more columns.
    "drbo_mmd": Method("drbo_mmd", max_contexts=2),
    "stable_opt": Method("stable_opt"),
    "random": Method("random"),
}


@dataclass(frozen=True)
class Size:
    """A size of the tournament.

    Args:
        cases: Names of ``CASES``.
        seeds: How many.
        contexts: Outcomes of a run, the first ``INITIAL`` of random decisions.
        search: How hard every method searches: one choice for all.
    """

    cases: tuple[str, ...]
    seeds: int
    contexts: int
    search: Mapping[str, Any]

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """After how many contexts the recommended decision is stored."""
        return tuple(sorted({min(FEW, self.contexts), self.contexts}))

    def of(self, cases: tuple[str, ...]) -> Size:
        """The same on other cases."""
        return replace(self, cases=cases)


SIZES: Mapping[str, Size] = {
    "smoke": Size(
        ("newsvendor", "smooth_2_4"),
        seeds=2,
        contexts=7,
        search={"num_restarts": 2, "raw_samples": 16, "max_iterations": 10},
    ),
    "laptop": Size(
        (
            "newsvendor",
            "smooth_2_2_noisy",
            "branin_2_2",
            "smooth_2_6",
            "newsvendor_drifting",
            "ackley_2_1",
            "smooth_2_4",
        ),
        seeds=10,
        contexts=15,
        search={"num_restarts": 4, "raw_samples": 256, "max_iterations": 50},
    ),
    "paper": Size(tuple(CASES), seeds=20, contexts=60, search={}),
}
