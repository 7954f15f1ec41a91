"""Whole iterations of the recipes on Ackley 2+1, and what of them is not the fit."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from benchmarks.speed.tables import Section
from benchmarks.speed.timing import digits, median_ratio, seconds
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import RECIPES, Recipe, RobustRecipe, make_recipe
from botorch_drbo.recipes.model_based import ModelBasedRecipe
from botorch_drbo.search.maximise import maximise
from botorch_drbo.test_functions import make_test_function

BASELINE = "gp_ucb"
MODEL = "botorch"  # what other surrogates cost has its own report
_MODELS = {"edrbo": "kernels"}  # which takes ensembles only


@dataclass(frozen=True)
class Search:
    """How the acquisition function is optimised: the defaults of the recipes."""

    raw_samples: int = 1024
    num_restarts: int = 10


@dataclass(frozen=True)
class Iterations:
    """Seconds of one recipe on one history after another: all, and without the fit."""

    whole: list[float]
    optimisation: list[float]


def make_history(t: int, seed: int) -> tuple[History, SearchSpace]:
    """Random decisions on Ackley 2+1, and contexts of its law."""
    problem = make_test_function("ackley_2_1")
    low, high = problem.bounds
    generator = torch.Generator().manual_seed(seed)
    X = low + (high - low) * torch.rand(t, problem.d_x, generator=generator).double()
    C = problem.sample_contexts(t, seed=seed)
    history = History(X=X, C=C, Y=problem.evaluate(X, C).unsqueeze(-1), contexts=C)
    return history, SearchSpace(problem.bounds, problem.context_bounds)


def model_based_recipes() -> list[str]:
    """Those that fit a model and optimise an acquisition function; the baseline first.

    The others (``random``, and what goes through a list of decisions) do something
    else in their iterations.
    """
    names = [
        name
        for name, recipe in RECIPES.items()
        # That one has to be told the range of the outcomes.
        if isinstance(recipe, RobustRecipe)
    ]
    return sorted(names, key=lambda name: name != BASELINE)


def measure_iterations(
    names: Sequence[str], *, t: int, search: Search, repeats: int
) -> dict[str, Iterations]:
    """Fit and optimise, with the default options of each recipe."""
    recipes = {
        name: make_recipe(
            name,
            surrogate=_MODELS.get(name, MODEL),
            raw_samples=search.raw_samples,
            num_restarts=search.num_restarts,
        )
        for name in names
    }
    return time_recipes(recipes, t=t, repeats=repeats)


def time_recipes(
    recipes: Mapping[str, Recipe], *, t: int, repeats: int
) -> dict[str, Iterations]:
    """Fit and optimise, with a history of its own for each repeat.

    What the first call of a process does beside that is not counted.
    """
    found = {name: Iterations([], []) for name in recipes}
    for recipe in recipes.values():
        assert isinstance(recipe, ModelBasedRecipe)
        _one_iteration(recipe, 5, seed=0)
    for seed in range(repeats):
        for name, recipe in recipes.items():
            assert isinstance(recipe, ModelBasedRecipe)
            fitted, done = _one_iteration(recipe, t, seed)
            found[name].whole.append(fitted + done)
            found[name].optimisation.append(done)
    return found


def _one_iteration(recipe: ModelBasedRecipe, t: int, seed: int) -> tuple[float, float]:
    """Seconds of the fit, and of all the rest of ``propose``."""
    history, space = make_history(t, seed)
    start = time.perf_counter()
    model = recipe.fitted(history, space, uses_contexts=recipe.uses_contexts)
    fitted = time.perf_counter()
    acqf = recipe.exploring(recipe.state_of(model, history, space, seed), None)
    maximise(acqf, space, recipe.effort(seed))
    return fitted - start, time.perf_counter() - fitted


def iterations_section(
    found: Mapping[str, Iterations], *, t: int, search: Search
) -> Section:
    """One line per recipe."""
    base = found[BASELINE].whole
    body = [
        [
            name,
            seconds(times.whole),
            seconds(times.optimisation),
            digits(median_ratio(times.whole, base)),
        ]
        for name, times in found.items()
    ]
    repeats = len(base)
    return Section(
        title="Whole iterations",
        text=(
            f"The fit of the model and the optimisation of the acquisition function "
            f"({search.raw_samples} raw samples, {search.num_restarts} restarts) on "
            f"Ackley 2+1 after t = {t} outcomes; medians over {repeats} histories, "
            "the ratio history by history. Recipes with their default options: each "
            "has the contexts and the ambiguity set of its paper."
        ),
        head=["recipe", "iteration", "without the fit", f"iteration / {BASELINE}"],
        rows=body,
    )
