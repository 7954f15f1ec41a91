"""What a surrogate costs: whole iterations of ``erbo``, over those with BoTorch's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.speed.iterations import Iterations, Search, time_recipes
from benchmarks.speed.tables import Section
from benchmarks.speed.targets import Target
from benchmarks.speed.timing import digits, median_ratio, seconds
from botorch_drbo.recipes import make_recipe
from botorch_drbo.surrogate import SURROGATES

PLAIN = "botorch"
ENSEMBLE, MEMBERS = "ensemble", ("botorch", "matern", "rbf", "matern32")
_MOST = 4.0  # what the default may cost, over BoTorch's

Costs = Mapping[int, Mapping[str, Iterations]]


def measure_surrogates(ts: Sequence[int], search: Search, repeats: int) -> Costs:
    """Fit and optimise with every surrogate, on the same histories in turns."""
    recipes = {
        name: make_recipe(
            "erbo",
            surrogate=name,
            raw_samples=search.raw_samples,
            num_restarts=search.num_restarts,
        )
        for name in SURROGATES
    }
    return {t: time_recipes(recipes, t=t, repeats=repeats) for t in ts}


def surrogate_targets(found: Costs) -> list[Target]:
    """The ensemble over BoTorch's model, and over the sum of its members."""
    targets = []
    for t, of_t in found.items():
        whole = of_t[ENSEMBLE].whole
        what = f"erbo with `{ENSEMBLE}` over `{PLAIN}`, t = {t}"
        targets.append(Target(what, median_ratio(whole, of_t[PLAIN].whole), _MOST))
        alone = [
            sum(each) for each in zip(*(of_t[m].whole for m in MEMBERS), strict=True)
        ]
        what = f"erbo with `{ENSEMBLE}` over the sum of its members, t = {t}"
        targets.append(Target(what, median_ratio(whole, alone), 1.0))
    return targets


def surrogates_section(found: Costs, search: Search) -> Section:
    """One line per surrogate and number of outcomes."""
    rows = [
        [
            name,
            str(t),
            seconds(times.whole),
            seconds(times.optimisation),
            digits(median_ratio(times.whole, of_t[PLAIN].whole)),
        ]
        for t, of_t in found.items()
        for name, times in of_t.items()
    ]
    return Section(
        title="Surrogates",
        text=(
            f"Whole iterations of `erbo` ({search.raw_samples} raw samples, "
            f"{search.num_restarts} restarts) on Ackley 2+1 after t outcomes, by "
            "surrogate; the ratio history by history."
        ),
        head=["surrogate", "t", "iteration", "without the fit", f"over {PLAIN}"],
        rows=rows,
    )
