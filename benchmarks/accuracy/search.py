"""How often a recipe's search misses the maximum of its own acquisition function."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pandas as pd
import torch
from rich.console import Console

from benchmarks.run.config import ProblemConfig
from benchmarks.run.engine import one_thread
from benchmarks.run.markdown import markdown_table
from benchmarks.run.world import World, make_problem
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import make_recipe
from botorch_drbo.recipes.model_based import ModelBasedRecipe
from botorch_drbo.search.maximise import maximise

RECIPES = ("wdrbo", "wdrbo_exact", "sbo_kde", "drbo_kde", "drbo_mmd")
PROBLEMS = ("portfolio_normal", "portfolio_uniform", "hartmann_5_1")
OUTCOMES = (8, 16, 24, 40)  # of the histories, in turn
SEEDS = 2  # of the search, for each history
SETTINGS = ((5, 512), (10, 1024))  # starts, raw samples
DENSE = (30, 4096)
SHORT = 0.01  # standard deviations of the outcomes: what counts as a miss


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    histories: int
    recipes: Sequence[str] = RECIPES
    problems: Sequence[str] = PROBLEMS
    settings: Sequence[tuple[int, int]] = SETTINGS
    dense: tuple[int, int] = DENSE


def run_search(out: Path, sizes: Sizes) -> int:
    """Measure, and write a table to ``out`` after each history.

    Returns:
        The exit status, 0.
    """
    console, rows = Console(), []
    with one_thread():
        for number in range(sizes.histories):
            for problem in sizes.problems:
                for recipe in sizes.recipes:
                    rows += measure(recipe, problem, number, sizes)
            text = report(pd.DataFrame(rows), number + 1, sizes)
            out.write_text(text, encoding="utf-8")
            console.print(f"{number + 1} of {sizes.histories} histories")
    console.print(text, markup=False, soft_wrap=True)
    return 0


def measure(
    name: str, problem: str, number: int, sizes: Sizes
) -> Iterable[dict[str, object]]:
    """The shortfall and the seconds of each setting and seed, for one history."""
    history, space = some_history(problem, number)
    recipe = cast(ModelBasedRecipe, make_recipe(name, surrogate="botorch"))
    torch.manual_seed(number)  # the fit may draw random numbers
    model = recipe.fitted(history, space, uses_contexts=True)
    acqf = recipe.exploring(recipe.state_of(model, history, space, number), None)
    found = []
    for starts, raw in sizes.settings:
        tried = replace(recipe, num_restarts=starts, raw_samples=raw)
        for seed in range(SEEDS):
            begin = time.process_time()
            maxima, values = maximise(acqf, space, tried.effort(seed))
            seconds = time.process_time() - begin
            found.append(((starts, raw), seed, maxima, values, seconds))
    # Densely, and from the best that any setting found: no reference is below it.
    best = max(found, key=lambda one: one[3].max().item())
    start = best[2][best[3].argmax()].reshape(1, 1, -1)
    starts, raw = sizes.dense
    dense = replace(recipe, num_restarts=starts, raw_samples=raw)
    reference = maximise(acqf, space, dense.effort(SEEDS), start)[1].max().item()
    reference = max(reference, best[3].max().item())
    unit = history.Y.std().item()
    return [
        {
            "recipe": name,
            "problem": problem,
            "setting": setting,
            "short": (reference - values.max().item()) / unit,
            "seconds": seconds,
        }
        for setting, _, _, values, seconds in found
    ]


def some_history(problem: str, number: int) -> tuple[History, SearchSpace]:
    """Outcomes as a run has them: uniform decisions, then such around the best."""
    function = make_problem(ProblemConfig(problem))
    world = World(function, problem, 1000 + number, salt="")
    low, high = function.bounds
    generator = torch.Generator().manual_seed(number)
    X, C, Y = [], [], []
    t = OUTCOMES[number % len(OUTCOMES)]
    for step in range(t):
        x, c = world.initial(step)
        if step >= t // 2:
            best = X[int(torch.cat(Y).argmax())]
            jump = torch.randn(x.shape, generator=generator, dtype=x.dtype)
            x = torch.clamp(best + 0.15 * (high - low) * jump, low, high)
        X.append(x)
        C.append(c)
        Y.append(world.outcome(step, x, c))
    contexts = torch.cat(C)
    history = History(X=torch.cat(X), C=contexts, Y=torch.cat(Y), contexts=contexts)
    return history, SearchSpace(function.bounds, function.context_bounds)


def report(rows: pd.DataFrame, histories: int, sizes: Sizes) -> str:
    """The table, as Markdown."""
    head = [f"{starts} of {raw}" for starts, raw in sizes.settings]
    lines = [
        "# How often the search misses the maximum",
        "",
        f"`python -m benchmarks search --histories {histories}`. Histories of "
        f"{', '.join(map(str, OUTCOMES))} outcomes in turn, half of them around the "
        f"best of the others; {SEEDS} seeds of the search for each. A proposal is a "
        f"miss if its acquisition value is more than {SHORT:g} standard deviations of "
        f"the outcomes below the best of {sizes.dense[0]} ascents out of "
        f"{sizes.dense[1]} points and of all others. Misses, of how many, and the "
        "median milliseconds of the processor for a search, by starts and raw "
        "samples; the default is 10 of 1024.",
        "",
    ]
    table = [
        [group.iloc[0].recipe, group.iloc[0].problem, *_cells(group, sizes)]
        for _, group in rows.groupby(["recipe", "problem"], sort=False)
    ]
    for recipe, group in rows.groupby("recipe", sort=False):
        table.append([f"**{recipe}**", "all", *_cells(group, sizes)])
    lines += markdown_table(["recipe", "problem", *head], table, left=2)
    return "\n".join(lines) + "\n"


def _cells(group: pd.DataFrame, sizes: Sizes) -> list[str]:
    cells = []
    for setting in sizes.settings:
        part = group[[value == setting for value in group.setting]]
        missed = int((part.short > SHORT).sum())
        milliseconds = 1000 * part.seconds.median()
        cells.append(f"{missed} of {len(part)}; {milliseconds:.0f}")
    return cells
