"""The pictures of a report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from torch import Tensor

from benchmarks.run.statistics import Ranks
from benchmarks.run.summary import LAST, curves
from botorch_drbo.plotting import plot_regret

FIELDS = {
    "cumulative": "cumulative regret",
    "simple": "simple regret (the least so far)",
    "running": f"regret, mean of the last {LAST} decisions",
}
_DECADES = 4  # of the logarithmic axes: what is below is as good as nothing


def regret_figure(rows: pd.DataFrame) -> Figure:
    """Cumulative, simple and instantaneous regret; a row of panels for each problem."""
    panels = [
        Panel(str(problem), ylabel, curves(group, field), field != "cumulative")
        for problem, group in rows.groupby("problem", sort=False)
        for field, ylabel in FIELDS.items()
    ]
    return panel_figure(panels, len(FIELDS))


@dataclass(frozen=True)
class Panel:
    """The curves of one problem.

    Args:
        title: What stands above.
        ylabel: What the curves are.
        curves: Label -> ``seeds x iterations``.
        logarithmic: Whether the vertical axis is.
    """

    title: str
    ylabel: str
    curves: Mapping[str, Tensor]
    logarithmic: bool = False


def panel_figure(panels: Sequence[Panel], columns: int) -> Figure:
    """Panels row by row; the first of a row has the legend."""
    rows = math.ceil(len(panels) / columns)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(4.8 * columns, 3.8 * rows),
        layout="constrained",
        squeeze=False,
    )
    for ax in axes.flat[len(panels) :]:
        ax.remove()
    for i, panel in enumerate(panels):
        ax = axes.flat[i]
        plot_regret(panel.curves, ax, ylabel=panel.ylabel)
        if panel.logarithmic:
            means = torch.cat([values.mean(0) for values in panel.curves.values()])
            top = means.max().item()
            low = means.clamp(min=top / 10**_DECADES).min().item()
            if low > 0.0:
                ax.set_yscale("log", nonpositive="clip")
                ax.set_ylim(low / 1.2, 1.2 * top)
        ax.set_title(panel.title)
        if i % columns:
            ax.get_legend().remove()
    return figure


def rank_figure(ranks: Ranks) -> Figure:
    """Mean ranks on a line; a bar joins methods that do not differ (Demšar 2006)."""
    labels, spans = list(ranks.mean.items()), ranks.groups()
    worst = len(labels)
    depth = len(spans) + (worst + 1) // 2  # lines of text and bars below the axis
    figure, ax = plt.subplots(figsize=(8.0, 1.3 + 0.28 * depth), layout="constrained")
    ax.set_xlim(0.2 - 0.2 * worst, 0.8 + 1.2 * worst)  # room for names at both sides
    ax.set_ylim(-depth - 0.6, 2.4)
    ax.axis("off")
    ax.plot([1, worst], [0, 0], color="black", lw=1)
    for tick in range(1, worst + 1):
        ax.plot([tick, tick], [0, 0.25], color="black", lw=1)
        ax.text(tick, 0.4, str(tick), ha="center", va="bottom", fontsize=9)
    ax.plot([1, 1 + ranks.critical_difference], [1.7, 1.7], color="black", lw=2)
    text = f"critical difference {ranks.critical_difference:.2f}"
    ax.text(1, 1.85, text, fontsize=9, va="bottom")
    for i, span in enumerate(spans):
        ax.plot(span, [-0.5 * (i + 1)] * 2, color="tab:blue", lw=4, alpha=0.7)
    for place, (label, value) in enumerate(labels):
        left = place < (worst + 1) // 2
        line = place if left else worst - 1 - place
        y = -0.5 * len(spans) - 1 - line
        end = 0.9 if left else worst + 0.1
        ax.plot([value, value, end], [0, y, y], color="gray", lw=0.8)
        ax.text(
            end + (-0.05 if left else 0.05),
            y,
            f"{label} ({value:.2f})",
            ha="right" if left else "left",
            va="center",
            fontsize=9,
        )
    return figure
