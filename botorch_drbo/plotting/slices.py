"""The expected outcome along one decision variable."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from botorch_drbo.plotting.style import COLOURS, as_array, given_or_new
from botorch_drbo.recommendation.slices import Slice
from botorch_drbo.space import Category, Variable


def plot_slice(
    found: Slice,
    variable: Variable,
    ax: Axes | None = None,
    *,
    name: str = "decision",
    outcome: str = "outcome",
) -> Axes:
    r"""Draw the expected outcome against one decision variable, the others fixed.

    The line is the mean, the band the interval, the dot the decision itself. Values
    that the constraints of the decisions forbid are left out.

    Args:
        found: From ``recommendation.slices.slice_through``.
        variable: What the variable is: a logarithmic one has a logarithmic axis, and a
            category bars instead of a line.
        ax: Where to draw; a new figure if None.
        name: The label of the horizontal axis, with its unit.
        outcome: What the outcome is, with its unit.

    Returns:
        The axes.

    Example:
        >>> import torch
        >>> from botorch_drbo.plotting.slices import plot_slice
        >>> from botorch_drbo.space import Continuous
        >>> v = torch.linspace(0, 1, 5)
        >>> found = Slice(0, v, v, v - 1, v + 1, v >= 0, index=2, level=0.9)
        >>> plot_slice(found, Continuous(0, 1), name="price (EUR)").get_xlabel()
        'price (EUR)'
    """
    ax = given_or_new(ax)
    mean, lower, upper = map(as_array, (found.mean, found.lower, found.upper))
    allowed = found.allowed.cpu().numpy()
    mean, lower, upper = (np.where(allowed, v, np.nan) for v in (mean, lower, upper))
    band = f"{found.level:.0%} interval"
    if isinstance(variable, Category):
        positions = np.arange(len(mean))
        ends = (mean - lower, upper - mean)
        ax.errorbar(
            positions, mean, ends, fmt="o", color=COLOURS[0], capsize=4, label=band
        )
        ax.set_xticks(positions, variable.choices)
        ax.margins(x=0.2)
        own = float(found.index)
    else:
        values = np.array(variable.decode(found.values), dtype=float)
        ax.plot(values, mean, color=COLOURS[0], lw=2.0, label="expected")
        ax.fill_between(
            values, lower, upper, color=COLOURS[0], alpha=0.2, linewidth=0, label=band
        )
        if variable.logarithmic:
            _plain_log_scale(ax)
        ax.margins(x=0.02)
        own = values[found.index]
    ax.plot(
        [own],
        [mean[found.index]],
        "s",
        color=COLOURS[1],
        markersize=7,
        zorder=4,
        linestyle="none",
        label="recommended",
    )
    ax.set(xlabel=name, ylabel=f"expected {outcome}")
    ax.grid(alpha=0.25)
    return ax


def _plain_log_scale(ax: Axes) -> None:
    """Ticks at 1, 2 and 5 of each power of ten, written as plain numbers."""
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_locator(NullLocator())
