"""Figures of robustness: worst cases, profiles, methods under shifts."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from botorch_drbo.calibrate.budget import RobustnessProfile
from botorch_drbo.plotting.style import (
    COLOURS,
    DASHES,
    MARKERS,
    Column,
    as_array,
    column_of,
    given_or_new,
    name_ticks,
)
from botorch_drbo.recommendation import Recommendation
from botorch_drbo.recommendation.comparison import Comparison
from botorch_drbo.recommendation.price_curve import PriceCurve
from botorch_drbo.recommendation.promise import shown
from botorch_drbo.space import NamedRecommendation


def plot_robustness_profile(
    profile: RobustnessProfile,
    ax: Axes | None = None,
    *,
    label: str = "decision",
    other_label: str = "other decision",
    xlabel: str | None = None,
    ylabel: str = "worst-case value",
) -> Axes:
    r"""Draw the worst-case value of a decision against the radius.

    With it the other decision and the target, if the profile has them, and a dotted
    line at the radius from which the decision falls behind the one or below the other.

    Args:
        profile: From ``RobustOptimizer.robustness_profile`` or
            ``calibrate.robustness_profile``.
        ax: Where to draw; a new figure if None.
        label: The name of the decision in the legend.
        other_label: The name of the other decision.
        xlabel: The label of the radius; by default with the unit of the profile.
        ylabel: The label of the vertical axis, with its unit.

    Returns:
        The axes.

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import TotalVariation
        >>> from botorch_drbo.calibrate import robustness_profile
        >>> from botorch_drbo.plotting import plot_robustness_profile
        >>> f, p = torch.tensor([10.0, 0.0]), torch.tensor([0.5, 0.5])
        >>> radii = torch.linspace(0.0, 1.0, 11)
        >>> profile = robustness_profile(f, p, TotalVariation(0.0), radii, target=4.0)
        >>> ax = plot_robustness_profile(profile, label="bold")
        >>> [text.get_text() for text in ax.get_legend().get_texts()]
        ['bold', 'target', 'below the target from 0.2']
    """
    ax = given_or_new(ax, grid=True)
    radii = as_array(profile.radii)
    ax.plot(radii, as_array(profile.values), color=COLOURS[0], lw=2.0, label=label)
    if profile.other_values is not None:
        ax.plot(
            radii,
            as_array(profile.other_values),
            color=COLOURS[1],
            linestyle=DASHES[1],
            lw=2.0,
            label=other_label,
        )
    if profile.target is not None:
        ax.axhline(
            profile.target,
            color=COLOURS[2],
            linestyle=DASHES[3],
            lw=1.5,
            label="target",
        )
    crossings = {
        "behind the other": (profile.falls_behind, COLOURS[1]),
        "below the target": (profile.falls_below, COLOURS[2]),
    }
    for what, (radius, colour) in crossings.items():
        if radius is not None:
            ax.axvline(
                radius,
                color=colour,
                linestyle=":",
                lw=1.5,
                label=f"{what} from {radius:.3g}",
            )
    if xlabel is None:
        unit = profile.unit.partition(",")[0].replace("`", "")
        kind = f"in {unit}" if unit else "radius"
        xlabel = f"how far the contexts may shift ({kind})"
    ax.set(xlabel=xlabel, ylabel=ylabel, xmargin=0.01)
    ax.legend(frameon=False)
    return ax


def plot_price(
    curve: PriceCurve[Any], ax: Axes | None = None, *, ylabel: str | None = None
) -> Axes:
    r"""Draw what a better worst case costs.

    The worst case over what of the expectation is given up, with its interval; a ring
    at the knee, after which more is paid for less.

    Args:
        curve: From ``price_curve`` of an optimizer.
        ax: Where to draw; a new figure if None.
        ylabel: The label of the vertical axis, with its unit.

    Returns:
        The axes.

    Example:
        >>> import torch
        >>> from botorch_drbo import MeanShift, RobustOptimizer
        >>> from botorch_drbo.plotting import plot_price
        >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
        >>> few = {"num_restarts": 2, "raw_samples": 64, "surrogate": "botorch"}
        >>> opt = RobustOptimizer("erbo", unit, unit, **few)
        >>> X, C = torch.rand(2, 12, 1, dtype=torch.double)
        >>> opt.tell(X, C, -(X - C).square())
        >>> ax = plot_price(opt.price_curve(against=MeanShift(1.0, clip=1.0)))
        >>> ax.get_xlabel()
        'given up of the expected value'
    """
    ax = given_or_new(ax, grid=True)
    paid, worst = as_array(curve.paid), as_array(curve.worst_cases)
    ends = [curve.beliefs[i].interval(curve.level) for i in range(len(paid))]
    low, high = zip(*ends, strict=True)
    ax.fill_between(
        paid, low, high, color=COLOURS[0], alpha=0.15, lw=0, label=f"{curve.level:.0%}"
    )
    ax.plot(
        paid, worst, color=COLOURS[0], lw=2.0, marker=MARKERS[0], label="worst case"
    )
    if (knee := curve.knee) is not None:
        ax.plot(
            paid[knee],
            worst[knee],
            marker="o",
            markersize=13.0,
            markerfacecolor="none",
            markeredgecolor=COLOURS[1],
            linestyle="none",
            label=f"knee: {shown(float(paid[knee]))} given up",
        )
    ax.set(
        xlabel=f"given up of the expected {curve.outcome}",
        ylabel=ylabel or f"worst-case {curve.outcome}",
        xmargin=0.02,
    )
    ax.locator_params(axis="x", nbins=5)  # small prices have long names
    ax.legend(frameon=False)
    return ax


_MOST_BARS, _NUM_BINS = 12, 20
# The bars fill the lower part of the picture, the outcome the upper one.
_ROOM, _BELOW = 2.8, 0.55
_REFERENCE, _WORST = "0.85", "0.35"  # greys that stay apart in print
_LEAST_GAIN = 1e-3  # of the weight: a smaller one is none


class Predicts(Protocol):
    """What says how an outcome depends on the context: an optimizer of either kind."""

    @abstractmethod
    def predict(self, x: Any, c: Any) -> Any:
        """Mean and variance of the outcome, or a table that ends with mean and sd."""


def plot_worst_case(
    optimizer: Predicts,
    recommendation: Recommendation | NamedRecommendation,
    ax: Axes | None = None,
    *,
    column: int | str = 0,
    xlabel: str | None = None,
    ylabel: str | None = None,
) -> Axes:
    r"""Draw the contexts that the worst case of a recommendation makes more likely.

    Bars are weights, on the right-hand axis: light for the reference, dark for the
    worst distribution in the set. Above them, on the left-hand axis, is the model's
    mean outcome of the decision in these contexts, with two standard deviations around
    it; the two level lines are its expectations under both.

    Args:
        optimizer: The optimizer that recommended the decision.
        recommendation: The recommendation.
        ax: Where to draw; a new figure if None.
        column: Which context variable runs along the horizontal axis, by its place or
            its name. If there are others, weights are summed over them.
        xlabel: The label of that axis, with its unit; by default the variable's name.
        ylabel: The label of the outcome, with its unit; by default its name.

    Returns:
        The axes of the outcome.

    Raises:
        InputDataError: No such column.

    Example:
        >>> import torch
        >>> from botorch_drbo import RobustOptimizer
        >>> from botorch_drbo.plotting import plot_worst_case
        >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
        >>> opt = RobustOptimizer("dro", unit, unit, num_restarts=1, raw_samples=8)
        >>> X, C = torch.rand(2, 12, 1).double()
        >>> opt.tell(X, C, -(X - C).square())
        >>> ax = plot_worst_case(opt, opt.recommend(), xlabel="temperature (C)")
        >>> ax.get_xlabel()
        'temperature (C)'
    """
    contexts, before, after = _distributions(recommendation)
    shown = column_of(contexts, column, "context c", "contexts")
    mean, deviation = _moments(optimizer.predict(recommendation.x, contexts))
    ax = given_or_new(ax)
    bars = ax.twinx()
    bars.set_zorder(ax.get_zorder() - 1)  # behind the outcome
    ax.patch.set_visible(False)
    tallest = _draw_weights(bars, shown, before, after)
    bars.set_ylim(0.0, _ROOM * tallest)
    bars.set_yticks([tick for tick in bars.get_yticks() if tick <= tallest])
    bars.set_ylabel("weight of the context")
    if contexts.shape[-1] == 1:
        _draw_outcomes(ax, shown, mean, deviation)
    else:
        _draw_contexts(ax, shown, mean, deviation, after > before + _LEAST_GAIN)
    lines = {
        "expected value": (recommendation.expected_value, "-"),
        "worst-case value": (recommendation.worst_case_value, (0, (6, 2))),
    }
    for label, (value, dashes) in lines.items():
        ax.axhline(value, color="black", linestyle=dashes, lw=1.3, label=label)
    low, high = ax.get_ylim()
    ax.set_yticks([tick for tick in ax.get_yticks() if low <= tick <= high])
    ax.set_ylim(low - (high - low) * _BELOW, high)
    if shown.categories is not None:
        name_ticks(ax, range(len(shown.categories)), shown.categories)
    ax.set_xlabel(shown.name if xlabel is None else xlabel)
    named = getattr(recommendation, "outcome", "outcome")
    ax.set_ylabel(named if ylabel is None else ylabel)
    handles = [*ax.get_legend_handles_labels()[0], *bars.get_legend_handles_labels()[0]]
    ax.legend(
        handles=handles,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=2,
        frameon=False,
    )
    return ax


def _distributions(
    recommendation: Recommendation | NamedRecommendation,
) -> tuple[Any, NDArray[np.float64], NDArray[np.float64]]:
    """The contexts, a tensor or a table, and both weights of each."""
    if isinstance(recommendation, NamedRecommendation):
        table = recommendation.contexts.copy()
        before = table.pop("reference_weight").to_numpy()
        return table, before, table.pop("worst_case_weight").to_numpy()
    reference = recommendation.context_set
    worst = as_array(recommendation.worst_case_weights)
    return reference.points, as_array(reference.weights), worst


def _moments(found: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation, of tensors or of the last columns of a table."""
    if isinstance(found, tuple):
        mean, variance = found
        return as_array(mean), as_array(variance.sqrt())
    return found.iloc[:, -2].to_numpy(), found.iloc[:, -1].to_numpy()


def _draw_outcomes(
    ax: Axes,
    shown: Column,
    mean: NDArray[np.float64],
    deviation: NDArray[np.float64],
) -> None:
    """Means of the only variable with two deviations: a line in a band, or dots."""
    label, spread = "outcome of the decision (± 2 sd)", 2.0 * deviation
    if shown.categories is not None:
        style = {"fmt": "o", "markersize": 4, "linewidth": 0.8, "color": COLOURS[0]}
        ax.errorbar(shown.values, mean, spread, label=label, **style)
        return
    order = np.argsort(shown.values, kind="stable")
    at, mean, spread = shown.values[order], mean[order], spread[order]
    ax.plot(at, mean, color=COLOURS[0], lw=2.0, label=label)
    ax.fill_between(
        at, mean - spread, mean + spread, color=COLOURS[0], alpha=0.18, linewidth=0
    )


def _draw_contexts(
    ax: Axes,
    shown: Column,
    mean: NDArray[np.float64],
    deviation: NDArray[np.float64],
    likelier: NDArray[np.bool_],
) -> None:
    """A dot for each context of several variables, those of a category side by side.

    Those that the worst case makes likelier have another colour and shape.
    """
    at, bars = shown.values.copy(), None
    if shown.categories is not None:
        bars = 2.0 * deviation
        for place in range(len(shown.categories)):
            here = np.flatnonzero(shown.values == place)
            here = here[np.argsort(mean[here], kind="stable")]
            at[here] += 0.7 * ((np.arange(len(here)) + 0.5) / len(here) - 0.5)
    spread = "" if bars is None else " (± 2 sd)"
    groups = {
        f"outcome in each context{spread}": (~likelier, 0, "o"),
        "likelier in the worst case": (likelier, 1, "s"),
    }
    for label, (rows, i, marker) in groups.items():
        if rows.any():
            ax.errorbar(
                at[rows],
                mean[rows],
                None if bars is None else bars[rows],
                fmt=marker,
                markersize=4,
                linewidth=0.8,
                color=COLOURS[i],
                label=label,
            )


def _draw_weights(
    bars: Axes,
    shown: Column,
    before: NDArray[np.float64],
    after: NDArray[np.float64],
) -> float:
    """Both distributions as pairs of bars; the height of the tallest."""
    positions, inverse = np.unique(shown.values, return_inverse=True)
    if len(positions) > _MOST_BARS:  # a histogram
        edges = np.linspace(positions[0], positions[-1], _NUM_BINS + 1)
        inverse = np.clip(
            np.searchsorted(edges, shown.values, side="right") - 1, 0, _NUM_BINS - 1
        )
        positions = 0.5 * (edges[1:] + edges[:-1])
    gaps = np.diff(positions)
    width = 0.4 * (gaps.min() if len(gaps) else 1.0)
    pairs = {
        "weight in the reference": (before, -0.5, _REFERENCE),
        "weight in the worst case": (after, 0.5, _WORST),
    }
    tallest = 0.0
    for label, (weights, side, grey) in pairs.items():
        heights = np.bincount(inverse, weights, minlength=len(positions))
        tallest = max(tallest, float(heights.max()))
        bars.bar(
            positions + side * width,
            heights,
            width,
            color=grey,
            edgecolor="0.2",
            linewidth=0.6,
            label=label,
        )
    return tallest


# Between neighbours in the group of a world, and of the whole group at most; worlds are
# one apart, so that what belongs together stands together.
_STEP, _WIDTH = 0.12, 0.6


def plot_compare(
    comparison: Comparison, ax: Axes | None = None, *, ylabel: str | None = None
) -> Axes:
    r"""Draw the values of each method's decision under each distribution.

    With its interval; a thin line joins what one method loses from one to the next.

    Args:
        comparison: From ``RobustOptimizer.compare`` or ``NamedOptimizer.compare``.
        ax: Where to draw; a new figure if None.
        ylabel: The label of the vertical axis, with its unit; None for what the
            values are.

    Returns:
        The axes.

    Example:
        >>> import torch
        >>> from botorch_drbo import RobustOptimizer
        >>> from botorch_drbo.plotting import plot_compare
        >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
        >>> few = {"num_restarts": 2, "raw_samples": 16}
        >>> opt = RobustOptimizer("erbo", unit, unit, **few)
        >>> x, c = torch.rand(2, 8, 1, dtype=torch.double)
        >>> opt.tell(x, 0.5 * c, -(x - c).square(), closes_pending=False)
        >>> ax = plot_compare(opt.compare(shifts={"c1": 0.3}))
        >>> [label.get_text() for label in ax.get_xticklabels()]
        ['as things are', 'c1 +0.3']
    """
    ax = given_or_new(ax)
    rest = 0.5 * (1.0 - comparison.level)
    middle = as_array(comparison.values.mean)
    low = as_array(comparison.values.quantile(rest))
    high = as_array(comparison.values.quantile(1.0 - rest))
    worlds, m = np.arange(len(comparison.worlds)), len(comparison.methods)
    step = min(_STEP, _WIDTH / m)
    for i, method in enumerate(comparison.methods):
        # The first is the baseline, which trusts the data: its colour is the second.
        at = worlds + step * (i - 0.5 * (m - 1))
        colour = COLOURS[(1, 0, *range(2, len(COLOURS)))[i % len(COLOURS)]]
        ax.plot(at, middle[i], color=colour, linewidth=1.0, alpha=0.4)
        ax.errorbar(
            at,
            middle[i],
            yerr=(middle[i] - low[i], high[i] - middle[i]),
            color=colour,
            marker=MARKERS[i % len(MARKERS)],
            linestyle="none",
            capsize=3.0,
            label=method,
        )
    name_ticks(ax, worlds, comparison.worlds)
    ax.set_xlim(-1.0, float(len(worlds)))
    ax.set_ylabel(comparison.judged_by if ylabel is None else ylabel)
    ax.legend(title=f"{comparison.level:.0%} intervals")
    return ax
