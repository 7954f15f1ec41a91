"""The cost of a decision by surrogate: a whole ask, fit included, against one model."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.run.display import working
from benchmarks.run.engine import one_thread
from benchmarks.run.provenance import machine
from benchmarks.speed.iterations import Search, make_history
from benchmarks.speed.tables import Section, report_sections, show
from benchmarks.speed.timing import busy, digits, median_ratio, seconds
from botorch_drbo.recipes import make_recipe
from botorch_drbo.surrogate import SURROGATES

BASELINE = "botorch"
ENSEMBLE, MEMBERS = "ensemble", ("botorch", "matern", "rbf", "matern32")
RECIPES = ("erbo", "wdrbo_exact")
LIMIT = 4.0  # times the baseline, for the ensemble


@dataclass(frozen=True)
class Sizes:
    """After how many outcomes, by which surrogates, and with how hard a search."""

    outcomes: Sequence[int] = (15, 100)
    surrogates: Sequence[str] = tuple(SURROGATES)
    search: Search = Search()


QUICK = Sizes((4, 5), (*MEMBERS, ENSEMBLE), Search(8, 2))

Times = Mapping[str, Sequence[float]]
"""Seconds by surrogate, repeat by repeat."""


def run_surrogate_speed(out: Path, *, repeats: int, quick: bool) -> int:
    """Measure, print a table, write it to ``out`` as Markdown.

    Returns:
        The exit status, 0: a slow machine is not an error.
    """
    console, sizes, load = Console(), QUICK if quick else Sizes(), busy()
    found: dict[tuple[str, int], Times] = {}
    with one_thread():
        for recipe in RECIPES:
            for t in sizes.outcomes:
                with working(console, f"{recipe}, t = {t}"):
                    found[recipe, t] = measure(recipe, t, sizes, repeats)
    table = section(found)
    show(console, table)
    about = (
        "**Tiny sizes, to see that it runs: the times mean nothing.** "
        * quick
        + f"`python -m benchmarks speed surrogates{' --quick' * quick}`: an ask on "
        "Ackley 2+1, from the outcomes to the decision, the fit included; "
        f"{sizes.search.raw_samples} raw samples, {sizes.search.num_restarts} "
        f"restarts. Processor time of one thread, medians over {repeats} histories, "
        "on each of which the surrogates take turns; the ratio history by history. "
        f"{machine()}. {load}"
    )
    report_sections(console, out, [table], title="Cost of surrogates", about=about)
    return 0


def measure(recipe: str, t: int, sizes: Sizes, repeats: int) -> Times:
    """Seconds of the processor for an ask, a new history for each repeat.

    What the first call of a process does beside that is not counted.
    """
    found: dict[str, list[float]] = {name: [] for name in sizes.surrogates}
    for seed in range(-1, repeats):
        history, space = make_history(t, max(seed, 0))
        for name, times in found.items():
            asked = make_recipe(
                recipe,
                surrogate=name,
                raw_samples=sizes.search.raw_samples,
                num_restarts=sizes.search.num_restarts,
            )
            start = time.process_time()
            asked.propose(history, space, seed=max(seed, 0))
            if seed >= 0:
                times.append(time.process_time() - start)
    return found


def section(found: Mapping[tuple[str, int], Times]) -> Section:
    """A line per recipe, number of outcomes and surrogate; and a verdict."""
    rows, ratios, shares = [], [], []
    for (recipe, t), times in found.items():
        base = times[BASELINE]
        alone = [sum(each) for each in zip(*(times[m] for m in MEMBERS), strict=True)]
        shares.append(median_ratio(times[ENSEMBLE], alone))
        for name, own in times.items():
            ratio = median_ratio(own, base)
            if name == ENSEMBLE:
                ratios.append(ratio)
            rows.append([f"{recipe}, t = {t}, {name}", seconds(own), digits(ratio)])
    verdict = "met" if max(ratios) <= LIMIT else "**missed**"
    return Section(
        title="Seconds of an ask",
        text="Surrogates by name, as recipes take them.",
        head=["recipe, outcomes, surrogate", "an ask", f"ask / {BASELINE}"],
        rows=rows,
        notes=[
            f"Asked for: the ensemble costs at most {LIMIT:g} times `{BASELINE}`; it "
            f"costs {digits(min(ratios))} to {digits(max(ratios))} times: {verdict}. "
            "And at most the sum of its members; it costs "
            f"{digits(min(shares))} to {digits(max(shares))} times that."
        ],
    )
