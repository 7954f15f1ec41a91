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
    columns: tuple[int | str, ...] = (0,),
    decision: int | str = 0,
    without: float | None = None,
    labels: tuple[str, ...] | None = None,
) -> Axes:
    r"""Draw a decision variable against one context variable, or against two.

    Args:
        contexts: ``m x d_c``, the argument of ``RobustOptimizer.policy`` or
            ``NamedOptimizer.policy``; a tensor or a DataFrame.
        decisions: ``m x d_x``, its result; of a DataFrame the columns that ``contexts``
            has as well, and empty ones, are left out.
        ax: Where to draw; a new figure if None.
        columns: Which context variables, one or two, by place or by name.
        decision: Which decision variable.
        without: Its value if the context is unknown before the decision, drawn as a
            dashed line; with one context variable only.
        labels: The labels of both axes with their units, and with two context variables
            that of the colours too; by default the names.

    Returns:
        The axes.

    Raises:
        InputDataError: No such column.
        BotorchTensorDimensionError: Tables of different lengths, or another number of
            columns or labels.

    Example:
        >>> import torch
        >>> from botorch_drbo.plotting import plot_policy
        >>> c = torch.linspace(0, 1, 5).unsqueeze(-1)
        >>> ax = plot_policy(c, 10 * c, labels=("demand", "papers ordered"))
        >>> ax.get_ylabel()
        'papers ordered'
    """
    if len(columns) not in (1, 2) or (len(columns) == 2 and without is not None):
        raise BotorchTensorDimensionError(
            f"`columns` must name one context variable, or two without `without`, got "
            f"{columns}."
        )
    if labels is not None and len(labels) != len(columns) + 1:
        raise BotorchTensorDimensionError(
            f"`labels` must have {len(columns) + 1} entries, got {len(labels)}."
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
    seen = [column_of(contexts, which, "context c", "contexts") for which in columns]
    chosen = column_of(decisions, decision, "decision x", "decisions")
    names = labels or tuple(column.name for column in (*seen, chosen))
    ax = given_or_new(ax)
    if len(seen) == 1:
        order = np.argsort(seen[0].values, kind="stable")
        line = "none" if seen[0].categories is not None else "-"
        ax.plot(
            seen[0].values[order],
            chosen.values[order],
            color=COLOURS[0],
            linestyle=line,
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
    else:
        squares = ax.scatter(
            seen[0].values,
            seen[1].values,
            c=chosen.values,
            cmap="cividis",
            marker="s",
            s=60,
        )
        bar = ax.figure.colorbar(squares, ax=ax, label=names[2])
        if chosen.categories is not None:
            bar.set_ticks(range(len(chosen.categories)), labels=chosen.categories)
    for axis, column in zip((ax.xaxis, ax.yaxis), (*seen, chosen), strict=False):
        if column.categories is not None:
            axis.set_ticks(range(len(column.categories)), column.categories)
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    return ax
