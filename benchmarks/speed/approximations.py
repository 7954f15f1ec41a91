"""What is lost by what saves time: rankings of starts, residuals without folds."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from rich.console import Console

from benchmarks.run.display import working
from benchmarks.run.engine import one_thread
from benchmarks.run.provenance import machine
from benchmarks.speed.contexts import Question
from benchmarks.speed.iterations import make_history
from benchmarks.speed.rows import make_rows
from benchmarks.speed.tables import Section, report_sections, show
from botorch_drbo.acquisition import (
    DisagreementPenalizedUCB,
    qLogDistributionallyRobustNoisyExpectedImprovement,
)
from botorch_drbo.acquisition.decisions import DecisionAcquisitionFunction
from botorch_drbo.acquisition.upper_confidence_bound import ObjectiveUCB
from botorch_drbo.ambiguity import Wasserstein
from botorch_drbo.recipes import make_recipe
from botorch_drbo.recipes.model_based import ModelBasedRecipe
from botorch_drbo.recommendation import best_decision
from botorch_drbo.search.maximise import Effort, maximise
from botorch_drbo.surrogate import SURROGATES
from botorch_drbo.surrogate.cross_validation import (
    HeldOut,
    cross_validated,
    leave_one_out,
)
from botorch_drbo.surrogate.fit import joint_data

_LOWER = 1e-3  # a maximum that is short by less counts as the same
_RECIPES = {
    "ei_drbo_kde": (25, 50, 100),
    "ei_wdrbo": (25, 50, 100),
    "edrbo": (30, 60, 100),
    "wdrbo_exact": (100, 150, 250, 400),
    "erbo": (200, 300, 400, 500),
}
_IN_DEVIATIONS = ("edrbo", "wdrbo_exact", "erbo")
_REFITTED = 499  # the most outcomes for which folds are fitted


@contextmanager
def ranked_by_values() -> Iterator[None]:
    """Starts are ranked by the values, and no ascent begins on a few contexts."""
    improvement = qLogDistributionallyRobustNoisyExpectedImprovement
    with (
        patch.object(improvement, "ranking", DecisionAcquisitionFunction.ranking),
        patch.object(
            DisagreementPenalizedUCB, "_ranking", DisagreementPenalizedUCB.values
        ),
        patch.object(ObjectiveUCB, "_ranking", ObjectiveUCB.values),
        patch.object(ObjectiveUCB, "on_few", DecisionAcquisitionFunction.on_few),
    ):
        yield


def maxima(name: str, t: int, seed: int, effort: Effort | None) -> tuple[float, float]:
    """The best value found: with starts ranked cheaply, and ranked by the values.

    Logarithms of the expected improvement; of bounds in deviations of the outcomes.
    """
    history, space = make_history(t, seed)
    recipe = make_recipe(name, **({} if name == "edrbo" else {"surrogate": "botorch"}))
    assert isinstance(recipe, ModelBasedRecipe)
    model = recipe.fitted(history, space, uses_contexts=True)
    unit = history.Y.std().item() if name in _IN_DEVIATIONS else 1.0

    def found() -> float:
        acqf = recipe.exploring(recipe.state_of(model, history, space, seed), None)
        tries = recipe.effort(seed) if effort is None else effort
        return maximise(acqf, space, tries)[1].max().item() / unit

    cheap = found()
    with ranked_by_values():
        return cheap, found()


def ranking_section(repeats: int, effort: Effort | None) -> Section:
    """Searches with both rankings, pair by pair."""
    rows = []
    for name, sizes in _RECIPES.items():
        for t in sizes:
            pairs = [maxima(name, t, 100 + i, effort) for i in range(repeats)]
            gaps = [cheap - exact for cheap, exact in pairs]
            lower = sum(gap < -_LOWER for gap in gaps)
            line = [name, f"{t}", f"{lower} of {repeats}"]
            rows.append([*line, f"{min(gaps):.2g}", f"{max(gaps):.2g}"])
    return Section(
        title="Starts ranked on fewer paths or by fewer contexts, and ascents there",
        text="The maximum that a search with the default effort finds, less that of "
        "the same search with starts ranked by the values and all ascents on all "
        "contexts: of the logarithm of the "
        "expected improvement, for the last three in deviations of the "
        "outcomes. Ackley 2+1; "
        f"*lower* is by more than {_LOWER:g}.",
        head=["recipe", "outcomes", "lower", "least difference", "largest"],
        rows=rows,
    )


def moved(t: int, seed: int) -> tuple[int, float]:
    """How many contexts with mass stand for all, and how far the reference moved.

    In radii of the ball. Mass that goes to the nearest of them goes no shorter way: the
    mean distance is the Wasserstein distance of the two references.
    """
    recipe = make_recipe("wdrbo_exact", surrogate="botorch")
    assert isinstance(recipe, ModelBasedRecipe)
    history, space = make_history(t, seed)
    model = recipe.fitted(history, space, uses_contexts=True)
    acqf = recipe.exploring(recipe.state_of(model, history, space, seed), None)
    assert isinstance(acqf, ObjectiveUCB)
    ball, weights = acqf.objective.ambiguity_set, acqf.context_set.weights
    few = ball.few(weights)
    assert isinstance(ball, Wasserstein) and ball.cost is not None and few is not None
    held, to = weights.nonzero().squeeze(-1), few.positions[few.weights > 0]
    away = ball.cost[held.unsqueeze(-1), to].amin(-1)
    return len(to), ((weights[held] * away).sum() / ball.radius).item()


def moved_section(repeats: int) -> Section:
    """How far references were moved, by the number of outcomes."""
    rows = []
    for t in _RECIPES["wdrbo_exact"]:
        few, shares = zip(*(moved(t, 100 + i) for i in range(repeats)), strict=True)
        middle, most = statistics.median(shares), max(shares)
        rows.append([f"{t}", f"{max(few)}", f"{middle:.2g}", f"{most:.2g}"])
    return Section(
        title="References moved to a few contexts",
        text="The Wasserstein distance of the reference of `wdrbo_exact` from that on "
        "the few contexts on which decisions are ranked and ascents begin, in radii of "
        "the ball: below one by construction. Ackley 2+1.",
        head=["outcomes", "contexts with mass", "median distance", "largest"],
        rows=rows,
    )


def worst_cases(
    d_c: int, levels: int, seed: int, effort: Effort | None
) -> tuple[float, float]:
    """Of a recommendation: with later rounds from the last maxima, and begun anew.

    In deviations of the outcomes.
    """
    history, space = Question("recommend", 30, d_c=d_c, levels=levels).data(seed)
    recipe = make_recipe("wdrbo_exact", surrogate="botorch")
    if effort is not None:
        tries = {"num_restarts": effort.num_restarts, "raw_samples": effort.raw_samples}
        recipe = recipe.with_options(**tries)
    best_by = best_decision.best_by

    def anew(*given: Any) -> best_decision.Best:
        return best_by(*given[:6])

    found = recipe.recommend(history, space, seed=seed).worst_case_value
    with patch.object(best_decision, "best_by", anew), ranked_by_values():
        other = recipe.recommend(history, space, seed=seed).worst_case_value
    unit = history.Y.std().item()
    return found / unit, other / unit


def round_section(repeats: int, effort: Effort | None) -> Section:
    """Recommendations both ways, pair by pair."""
    rows = []
    for d_c, levels in ((2, 0), (3, 0), (5, 0), (1, 30)):
        pairs = [worst_cases(d_c, levels, 100 + i, effort) for i in range(repeats)]
        gaps = [near - anew for near, anew in pairs]
        lower = sum(gap < -_LOWER for gap in gaps)
        columns = f"{d_c}" + f" and a category of {levels}" * bool(levels)
        line = [columns, f"{lower} of {repeats}"]
        rows.append([*line, f"{min(gaps):.2g}", f"{max(gaps):.2g}"])
    return Section(
        title="Recommendations: ascents on few contexts, later rounds from the last",
        text="Where contexts that hurt join the list, decisions are climbed again: the "
        "worst case that `wdrbo_exact` promises, less that of a search that begins "
        "anew each time, with starts ranked by the values and all ascents on all "
        "contexts, in deviations of the outcomes. Two decision columns, 30 "
        f"outcomes; *lower* is by more than {_LOWER:g}.",
        head=["context columns", "lower", "least difference", "largest"],
        rows=rows,
    )


def residual_section(repeats: int, t: int) -> Section:
    """Residuals of leave-one-out and of folds, on the same outcomes."""
    rows = []
    for name in ("botorch", "ensemble"):
        surrogate = SURROGATES[name]
        for seed in range(repeats):
            data = joint_data(*make_rows(t, seed))
            with patch(
                "botorch_drbo.surrogate.cross_validation.MANY_ROWS", max(t, _REFITTED)
            ):
                folds = cast(HeldOut, cross_validated(surrogate, data))
            both = (folds, leave_one_out(surrogate.fit(data)))
            sizes = (each.standardised.square().mean().sqrt().item() for each in both)
            rows.append([name, f"{seed}", *(f"{size:.3f}" for size in sizes)])
    return Section(
        title="Residuals without folds",
        text=f"Root mean squares of residuals in predicted deviations, {t} outcomes: "
        "of five folds, each predicted by a fit to the others, and of leave-one-out "
        "in closed form. One is right.",
        head=["surrogate", "data set", "five folds", "leave-one-out"],
        rows=rows,
    )


def run_approximations(out: Path, *, repeats: int, quick: bool) -> int:
    """Measure, print the tables, write them to ``out`` as Markdown.

    Args:
        out: The report file.
        repeats: Data sets of each kind.
        quick: Tiny sizes.

    Returns:
        The exit status, 0.
    """
    console = Console()
    effort = Effort(1, 4, 2, 0) if quick else None
    sections: Sequence[Section] = ()
    with one_thread(), working(console, "what approximations lose"):
        sections = [
            ranking_section(repeats, effort),
            moved_section(repeats),
            round_section(repeats, effort),
            residual_section(min(repeats, 3), 30 if quick else 550),
        ]
    for section in sections:
        show(console, section)
    about = (
        "**Tiny sizes, to see that it runs: the numbers mean nothing.** "
        * quick
        + f"`python -m benchmarks speed approximations{' --quick' * quick} "
        f"--repeats {repeats}`. {machine()}."
    )
    title = "What approximations lose"
    report_sections(console, out, sections, title=title, about=about)
    return 0
