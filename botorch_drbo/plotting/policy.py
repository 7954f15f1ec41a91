"""Which decision for which context."""

from __future__ import annotations

from typing import Any

import numpy as np
from botorch.exceptions.errors import BotorchTensorDimensionError
from matplotlib.axes import Axes

from botorch_drbo.plotting.columns import column_of
from botorch_drbo.plotting.style import COLOURS, given_or_new


def plot_policy(
    contexts: Any,
    decisions: Any,
    ax: Axes | None = None,
    *,
    column: int | str = 0,
    decision: int | str = 0,
    without: float | None = None,
    labels: tuple[str, str] | None = None,
) -> Axes:
    r"""Draw a decision variable against one context variable.

    Args:
        contexts: ``m x d_c``, the argument of ``RobustOptimizer.policy`` or
            ``NamedOptimizer.policy``; a tensor or a DataFrame.
        decisions: ``m x d_x``, its result; of a DataFrame the columns that ``contexts``
            has as well, and empty ones, are left out.
        ax: Where to draw; a new figure if None.
        column: Which context variable, by place or by name.
        decision: Which decision variable.
        without: Its value if the context is unknown before the decision, drawn as a
            dashed line.
        labels: The labels of both axes with their units; by default the names.

    Returns:
        The axes.

    Raises:
        InputDataError: No such column.
        BotorchTensorDimensionError: Tables of different lengths, or another number of
            labels.

    Example:
        >>> import torch
        >>> from botorch_drbo.plotting import plot_policy
        >>> c = torch.linspace(0, 1, 5).unsqueeze(-1)
        >>> ax = plot_policy(c, 10 * c, labels=("demand", "papers ordered"))
        >>> ax.get_ylabel()
        'papers ordered'
    """
    if labels is not None and len(labels) != 2:
        raise BotorchTensorDimensionError(
            f"`labels` must have 2 entries, got {len(labels)}."
        )
    if len(contexts) != len(decisions):
        raise BotorchTensorDimensionError(
            f"`contexts` and `decisions` must have as many rows, got {len(contexts)} "
            f"and {len(decisions)}."
        )
    if hasattr(contexts, "columns") and hasattr(decisions, "columns"):
        both = [name for name in contexts.columns if name in decisions.columns]
        # What was not known of the contexts is an empty column of the policy.
        decisions = decisions.drop(columns=both).dropna(axis="columns", how="all")
    seen = column_of(contexts, column, "context c", "contexts")
    chosen = column_of(decisions, decision, "decision x", "decisions")
    ax = given_or_new(ax)
    order = np.argsort(seen.values, kind="stable")
    ax.plot(
        seen.values[order],
        chosen.values[order],
        color=COLOURS[0],
        linestyle="-" if seen.categories is None else "none",
        marker="o",
        markersize=4,
        label="context known",
    )
    if without is not None:
        ax.axhline(
            without, color="black", linestyle=(0, (6, 2)), label="context unknown"
        )
        ax.legend(frameon=False)
    ax.grid(alpha=0.25)
    for axis, shown in ((ax.xaxis, seen), (ax.yaxis, chosen)):
        if shown.categories is not None:
            axis.set_ticks(range(len(shown.categories)), shown.categories)
    xlabel, ylabel = labels or (seen.name, chosen.name)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    return ax
