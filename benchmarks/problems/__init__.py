r"""The problems of benchmarks: the library's, those of the papers, and our own.

``PROBLEMS`` is the one registry; files that a config imports enter theirs into it.

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
from benchmarks.problems.gp_prior import GPPriorSample
from benchmarks.problems.misspecified import MisspecifiedFunction
from benchmarks.problems.papers import PAPERS
from benchmarks.problems.reservoir import Reservoir
from benchmarks.problems.surrogates import covid_testing, plant_growth, portfolio
from botorch_drbo.test_functions import TEST_FUNCTIONS, RobustTestFunction
from botorch_drbo.test_functions.closed_form import closed_form

PROBLEMS: dict[str, Callable[..., RobustTestFunction]] = {
    **TEST_FUNCTIONS,
    **{name: partial(closed_form, presets) for name, presets in PAPERS.items()},
    "portfolio_normal": partial(portfolio, "normal"),
    "portfolio_uniform": partial(portfolio, "uniform"),
    "gp_prior_2_2": GPPriorSample,
    "plant_growth": plant_growth,
    "covid_testing": covid_testing,
    "misspecified_waves": partial(MisspecifiedFunction, "waves"),
    "misspecified_bumps": partial(MisspecifiedFunction, "bumps"),
    "reservoir": Reservoir,
}


def make(name: str, **options: Any) -> RobustTestFunction:
    """The problem of that name.

    Args:
        name: A key of ``PROBLEMS``.
        **options: What the class takes.
    """
    return PROBLEMS[name](**options)


__all__ = [
    "PROBLEMS",
    "ActionSetBandit",
    "BOCUProblem",
    "MisspecifiedFunction",
    "Reservoir",
    "make",
    "objective_regret",
]
