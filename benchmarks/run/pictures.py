"""The pictures of a report."""

from __future__ import annotations

import io

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from benchmarks.run.report import curves
from benchmarks.run.statistics import Ranks
from botorch_drbo.plotting import plot_regret

FIELDS = {
    "cumulative": "cumulative regret",
    "simple": "simple regret (the least so far)",
    "regret": "regret of each decision",
}


def regret_figure(rows: pd.DataFrame) -> Figure:
    """Cumulative, simple and instantaneous regret; a row of panels for each problem."""
    problems = list(rows.groupby("problem", sort=False))
    figure, axes = plt.subplots(
        len(problems),
        len(FIELDS),
        figsize=(4.8 * len(FIELDS), 3.8 * len(problems)),
        layout="constrained",
        squeeze=False,
    )
    for (problem, group), panels in zip(problems, axes, strict=True):
        for ax, (field, ylabel) in zip(panels, FIELDS.items(), strict=True):
            plot_regret(curves(group, field), ax, ylabel=ylabel)
            ax.set_title(str(problem))
            if field != "cumulative":
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


def png(figure: Figure, dpi: int = 80) -> bytes:
    """The picture as a file; the figure is closed."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=dpi)
    plt.close(figure)
    return file.getvalue()
