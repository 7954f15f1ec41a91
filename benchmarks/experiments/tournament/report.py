"""The tables and pictures of the tournament."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from benchmarks.experiments.tournament.cases import BASELINE, CASES
from benchmarks.experiments.tournament.compare import (
    SETTLED,
    WHILE_LEARNING,
    frames,
)
from benchmarks.experiments.tournament.drift import drifting_regrets
from benchmarks.run.report import Report, Table
from benchmarks.run.statistics import rank
from benchmarks.study.compare import Comparison, compare, p_text

_POINTS = 5.0  # that are worth to be told
_MOVED = "mean moves 2 sd, badly"
_BY_CASE = (SETTLED, _MOVED, "worst within 1 sd", WHILE_LEARNING)
_ADVICE = {
    SETTLED: "stays as it was",
    "nothing shifts, 10 contexts": "stays as it was, and you have 10 contexts only",
    "nothing shifts, noise": "stays as it was, and outcomes are noisy",
    "nothing shifts, 4 or 6 columns": "stays as it was, with 4 or 6 context columns",
    WHILE_LEARNING: "makes you pay for each decision while you learn",
    "mean moves 1 sd, any way": "moves by 1 sd, any way",
    "mean moves 1 sd, badly": "moves by 1 sd, the bad way",
    "mean moves 2 sd, any way": "moves by 2 sd, any way",
    "mean moves 2 sd, badly": "moves by 2 sd, the bad way",
    "drifts 2 sd while learning": "drifts by 2 sd while you learn, and stays there",
    "heavy tails": "has heavier tails",
    "rare bad regime": "turns bad one time in ten",
    "worst within 1 sd": "does its worst within 1 sd (W1)",
    "worst within 1 sd, 10 contexts": "does so, and you have 10 contexts only",
    "worst within 2 sd": "does its worst within 2 sd (W1)",
}

# The methods that have a name in the picture of prices, and their colors.
_NAMED = {
    "sbo_kde": "C0",
    "wdrbo_exact": "C3",
    "drbo_kde": "C2",
    "stable_opt": "C1",
    "random": "black",
}

Results = Mapping[str, Mapping[str, Comparison]]


def make_report(losses: pd.DataFrame, steps: pd.DataFrame, command: str) -> Report:
    """The report; the first of its tables is ``advice.md`` as well."""
    found = frames(losses, steps)
    results = {name: compare(frame, BASELINE) for name, frame in found.items()}
    chosen: Any = steps[steps["chosen"]]
    seconds = dict(chosen.groupby("method")["seconds"].median())
    advice = advice_table(results)
    return Report(
        "The tournament: what if the world misbehaves after the data?",
        [
            _explanation(losses, command),
            "## If your world does this, take that",
            advice,
            "## The loss of every method, less that of `" + BASELINE + "`",
            _explanation_of_differences(),
            difference_table(results, seconds),
            "![Differences](differences.png)",
            "![What robustness costs and saves](price.png)",
            *_drifting(steps),
            "## Mean ranks",
            _rank_table(found),
            "## Case by case",
            *[_case_table(name, found[name]) for name in _BY_CASE],
        ],
        figures={
            "differences.png": _differences(results),
            "price.png": _price(results),
        },
        texts={
            "advice.md": f"{advice}\n",
            "methods.md": f"{methods_table(results)}\n",
        },
    )


def advice_table(results: Results) -> Table:
    """What to take for each thing the world may do, what it costs and what it saves."""
    settled = results[SETTLED]
    rows = []
    for name, about in _ADVICE.items():
        if name not in results:
            continue
        comparisons = results[name]
        blocks = comparisons[BASELINE].blocks
        whole = {m: c for m, c in comparisons.items() if c.blocks == blocks}
        best = min(whole, key=lambda method: whole[method].loss)
        c, base = whole[best], whole[BASELINE]
        take = f"`{best}`"
        if best != BASELINE and not c.significant:
            take = f"`{BASELINE}` (`{best}` is not significantly better)"
        saves, price = ["", ""], ""
        if best != BASELINE:
            saves = [f"{-c.difference:.1f} ± {c.error:.1f}", p_text(c.p)]
            price = str(settled[best])
        rows.append([about, take, f"{c.loss:.1f} ({base.loss:.1f})", *saves, price])
    head = ["after the data, your world ...", "take", "its loss (erbo's)", "it saves"]
    head += ["p", "price if nothing shifts"]
    return Table(head, rows, left=2)


def methods_table(results: Results) -> Table:
    """Every method: what surely helps first, then what is not decided, then harm.

    The last column has how many blocks show five points (``Comparison.blocks_for``),
    if nothing shifts and if the mean moves badly by two standard deviations.
    """
    groups: dict[int, list[list[str]]] = {-1: [], 0: [], 1: []}
    for method in (m for m in results[SETTLED] if m != BASELINE):
        rows = {name: c[method] for name, c in results.items() if method in c}
        found = {name: c for name, c in rows.items() if c.significant}
        sides = {1 if c.difference > 0 else -1 for c in found.values()}
        sign = sides.pop() if len(sides) == 1 else 0
        verdict = "**not decided**"
        if found:
            verdict = "; ".join(
                f"**significantly {'worse' if c.difference > 0 else 'better'}**, {name}"
                for name, c in found.items()
            )
        two = [rows[SETTLED], rows[_MOVED]]
        cells = [str(c) for c in two]
        need = " and ".join(str(c.blocks_for(_POINTS)) for c in two)
        blocks = str(two[0].blocks)
        groups[sign].append([f"`{method}`", *cells, verdict, blocks, need])
    head = ["method", SETTLED, _MOVED, f"against `{BASELINE}`", "blocks"]
    head += [f"blocks that show {_POINTS:.0f} points"]
    return Table(head, [row for rows in groups.values() for row in rows])


_DRIFTING = """Of the drifting cases: each round's regret is by the law of that round
and against the best decision under it (WDRBO, eq. 10), in percent of a blind guess's;
the mean over the rounds that a method chose, ± standard error over seeds. The mean of
the contexts moves by two standard deviations in 15 rounds. p by Wilcoxon's test with
Holm's correction for the methods. *First*, *last*: half of these rounds each."""


def _drifting(steps: pd.DataFrame) -> list[str | Table]:
    """The section; nothing without a case whose law moves."""
    if not any(CASES[case].drifts for case in steps["case"].unique()):
        return []
    return ["## The regret while the law moves", _DRIFTING, drifting_table(steps)]


def drifting_table(steps: pd.DataFrame) -> Table:
    """One row for each method, the least regret first."""
    rounds: Any = drifting_regrets(steps)
    middle = rounds["step"].median()
    halves = {"first": rounds["step"] < middle, "last": rounds["step"] > middle}
    keys = ["case", "seed"]

    def mean_of(some: Any) -> Any:
        return some.groupby([*keys, "method"])["regret"].mean().unstack()

    every = mean_of(rounds)
    parts = {name: mean_of(rounds[chosen]) for name, chosen in halves.items()}
    found = compare(every, BASELINE)
    rows = []
    for method in sorted(found, key=lambda name: found[name].loss):
        c = found[method]
        less = "" if method == BASELINE else str(c)
        p = "" if method == BASELINE else p_text(c.p)
        halves_of = [f"{part[method].mean():.1f}" for part in parts.values()]
        rows.append([f"`{method}`", f"{c.loss:.1f}", *halves_of, less, p])
    head = ["method", "regret a round", *halves, f"less that of {BASELINE}", "p"]
    return Table(head, rows)


def difference_table(results: Results, seconds: Mapping[str, float]) -> Table:
    """One row for each method, one column for each situation."""
    methods = list(results[SETTLED])
    head = ["method", *results, "s/decision"]
    rows = []
    for method in methods:
        cells = [method]
        for comparisons in results.values():
            c = comparisons.get(method)
            if c is None:
                cells.append("")
            elif method == BASELINE:
                cells.append(f"loss {c.loss:.1f}")
            else:
                text = str(c)
                cells.append(f"**{text}**" if c.significant else text)
        rows.append([*cells, f"{seconds[method]:.2g}"])
    return Table(head, rows)


def _explanation(losses: pd.DataFrame, command: str) -> str:
    cases = list(losses["case"].unique())
    seeds: Any = losses.groupby("case")["seed"].nunique()
    counts = sorted(losses["contexts"].unique())
    at_least = "" if seeds.min() == seeds.max() else " at least"
    return f"""`{command}`. Cases: {", ".join(cases)}; {seeds.min()} seeds
each{at_least}.

Methods learn while contexts come from one law (in the drifting cases from one that
moves). What they recommend after {" and ".join(map(str, counts))} contexts is then
judged under the laws below, which no method has seen:

- *sd* is the standard deviation of the law of the data; *badly* is the direction in
  which the best decision under the data earns least, *any way* the mean over all axes
  and the diagonal, both ways.
- Heavy tails: Student's t with 2 degrees of freedom, same mean, scaled by the sd.
- The rare regime: with probability .1 the context lies in a box of side .1 in the
  corner that is worst for the best decision under the data.
- Worst within: the lowest expectation over a type-1 Wasserstein ball around the law of
  the data, by the exact solver.

*Loss*, in percent: 0 is the best fixed decision under that law, 100 the mean of a blind
guess; each case counts the same. A method ending in *1sd* is told the radius of the
first ball; the others use their own schedules."""


def _explanation_of_differences() -> str:
    return (
        "Percentage points, mean ± standard error over seeds within cases; negative is "
        "better. Bold: significant at 5% by Wilcoxon's signed-rank test over all cases "
        "and seeds, with Holm's correction for the number of methods in a column. "
        "`drbo_mmd` plays with one or two context columns only, and is compared there."
    )


def _rank_table(found: Mapping[str, pd.DataFrame]) -> Table:
    # of the methods that have played everywhere
    columns = {
        name: rank(frame.dropna(axis="columns")).mean
        for name, frame in found.items()
        if name in _BY_CASE
    }
    table = pd.DataFrame(columns).sort_values(SETTLED)
    rows = [
        [str(method), *(f"{value:.1f}" for value in row)]
        for method, row in table.iterrows()
    ]
    return Table(["method", *table.columns], rows)


def _case_table(name: str, frame: pd.DataFrame) -> Table:
    by_case: Any = frame.groupby(level="case")  # pandas' annotations leave it open
    cases = [case for case in CASES if case in by_case.groups]
    means, errors = by_case.mean().T[cases], by_case.sem().T[cases]
    rows = []
    for method in means.index:
        cells = [
            "" if np.isnan(mean) else f"{mean:.1f} ± {error:.1f}"
            for mean, error in zip(means.loc[method], errors.loc[method], strict=True)
        ]
        rows.append([method, *cells])
    title = f"**{name}** (loss in percent, mean ± standard error over seeds)"
    return Table(["method", *cases], rows, title)


def _differences(results: Results) -> Figure:
    """A heat map: blue where a method loses less than the baseline."""
    methods = [m for m in results[SETTLED] if m != BASELINE]
    values = np.array(
        [
            [c[m].difference if m in c else np.nan for c in results.values()]
            for m in methods
        ]
    )
    limit = np.nanquantile(np.abs(values), 0.9)
    size = (1.5 + 0.75 * len(results), 1.5 + 0.4 * len(methods))
    figure, ax = plt.subplots(figsize=size, layout="constrained")
    image = ax.imshow(values, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto")
    ax.set_xticks(range(len(results)), list(results), rotation=40, ha="right")
    ax.set_yticks(range(len(methods)), methods)
    for i, method in enumerate(methods):
        for j, comparisons in enumerate(results.values()):
            c = comparisons.get(method)
            if c is not None:
                weight = "bold" if c.significant else "normal"
                strong = abs(c.difference) > 0.6 * limit
                ax.text(
                    j,
                    i,
                    f"{c.difference:+.1f}",
                    ha="center",
                    va="center",
                    fontsize=8,
                    weight=weight,
                    color="white" if strong else "black",
                )
    figure.colorbar(image, label=f"loss less that of {BASELINE}, percentage points")
    return figure


def _price(results: Results) -> Figure:
    """What each method costs if nothing shifts, against what it saves if it does.

    Some methods have a name and their errors; the others are grey.
    """
    names = ("mean moves 2 sd, badly", "worst within 1 sd", "worst within 2 sd")
    size = (5 * len(names), 4.5)
    figure, axes = plt.subplots(1, len(names), figsize=size, layout="constrained")
    for ax, name in zip(axes.flat, names, strict=True):
        named = {}
        for method, price in results[SETTLED].items():
            saved = results[name].get(method)
            if saved is None or method == BASELINE:
                continue
            at = (price.difference, -saved.difference)
            if method not in _NAMED:
                ax.plot(*at, "o", color="0.75", markersize=4, zorder=1)
                continue
            named[method] = at
            ax.errorbar(
                *at,
                xerr=price.error,
                yerr=saved.error,
                fmt="o",
                color=_NAMED[method],
                markersize=5,
                linewidth=0.8,
            )
        # Names stand beside the panel, in the order of the heights.
        order = sorted(named, key=lambda method: named[method][1], reverse=True)
        for place, method in zip(
            np.linspace(0.95, 0.55, len(order)), order, strict=True
        ):
            ax.annotate(
                method,
                named[method],
                xytext=(1.02, place),
                textcoords="axes fraction",
                va="center",
                color=_NAMED[method],
                fontsize=9,
                arrowprops={
                    "arrowstyle": "-",
                    "color": _NAMED[method],
                    "linewidth": 0.5,
                },
            )
        ax.margins(x=0.15)
        ax.axhline(0, color="grey", linewidth=0.6)
        ax.axvline(0, color="grey", linewidth=0.6)
        ax.set_title(name)
        ax.set_xlabel(f"price: loss if nothing shifts, less that of {BASELINE}")
    axes[0].set_ylabel(f"saved: loss of {BASELINE}, less its own")
    return figure
