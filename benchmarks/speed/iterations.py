"""Whole iterations of the recipes on Ackley 2+1, and their time without the fit."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from rich.console import Console

from benchmarks.problems import make
from benchmarks.run.display import working
from benchmarks.run.engine import one_thread
from benchmarks.run.provenance import machine
from benchmarks.speed.tables import Section, report_sections, show
from benchmarks.speed.timing import busy, digits, median_ratio, seconds
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import RECIPES, Recipe, RobustRecipe, make_recipe
from botorch_drbo.recipes.model_based import ModelBasedRecipe
from botorch_drbo.search.maximise import maximise

BASELINE = "gp_ucb"
LIMIT = 5.0  # times the baseline, for every recipe
MODEL = "botorch"  # what other surrogates cost has its own report
_MODELS = {"edrbo": "kernels"}  # which takes ensembles only


@dataclass(frozen=True)
class Search:
    """How the acquisition function is optimised: the defaults of the recipes."""

    raw_samples: int = 1024
    num_restarts: int = 10


@dataclass(frozen=True)
class Iterations:
    """Processor seconds of one recipe by history: all, and without the fit."""

    whole: list[float]
    optimisation: list[float]


def make_history(t: int, seed: int, device: str = "cpu") -> tuple[History, SearchSpace]:
    """Random decisions on Ackley 2+1, and contexts of its law."""
    problem = make("ackley_2_1")
    low, high = problem.bounds
    generator = torch.Generator().manual_seed(seed)
    X = low + (high - low) * torch.rand(t, problem.d_x, generator=generator).double()
    C = problem.sample_contexts(t, seed=seed)
    Y = problem.evaluate(X, C).unsqueeze(-1)
    X, C, Y = (part.to(device) for part in (X, C, Y))
    bounds = problem.bounds.to(device), problem.context_bounds.to(device)
    return History(X=X, C=C, Y=Y, contexts=C), SearchSpace(*bounds)


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
    """Fit and optimise, with one model of BoTorch and otherwise default options."""
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
    """Processor seconds of the fit, and of all the rest of ``propose``."""
    history, space = make_history(t, seed)
    start = time.process_time()
    model = recipe.fitted(history, space, uses_contexts=recipe.uses_contexts)
    fitted = time.process_time()
    acqf = recipe.exploring(recipe.state_of(model, history, space, seed), None)
    maximise(acqf, space, recipe.effort(seed))
    return fitted - start, time.process_time() - fitted


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
            f"Ackley 2+1 after t = {t} outcomes; processor time, medians over "
            f"{repeats} histories, the ratio history by history. Recipes with one "
            "model of BoTorch (`edrbo`: its four) in place of the default ensemble, "
            "and otherwise their default options: each has the contexts and the "
            "ambiguity set of its paper."
        ),
        head=["recipe", "iteration", "without the fit", f"iteration / {BASELINE}"],
        rows=body,
    )


def run_iteration_speed(out: Path, *, repeats: int, quick: bool) -> int:
    """Measure every recipe, print the table, write it to ``out`` as Markdown.

    Returns:
        The exit status, 0: a slow machine is not an error.
    """
    console, load = Console(), busy()
    search, t = (Search(8, 2), 5) if quick else (Search(), 100)
    with one_thread(), working(console, "whole iterations"):
        found = measure_iterations(
            model_based_recipes(), t=t, search=search, repeats=repeats
        )
    section = iterations_section(found, t=t, search=search)
    base = found[BASELINE].whole
    missed = [
        name for name, times in found.items() if median_ratio(times.whole, base) > LIMIT
    ]
    verdict = f"**missed** by {', '.join(missed)}" if missed else "met"
    note = f"Asked for: at most {LIMIT:g} times `{BASELINE}`: {verdict}."
    section = replace(section, notes=[note])
    show(console, section)
    about = (
        "**Tiny sizes, to see that it runs: the times mean nothing.** "
        * quick
        + f"`python -m benchmarks speed iterations{' --quick' * quick}`, one thread, "
        f"processor time: what else the machine does counts little. {machine()}. {load}"
    )
    title = "Iterations of the recipes"
    report_sections(console, out, [section], title=title, about=about)
    return 0
