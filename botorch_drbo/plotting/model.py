"""Figures of the model: slices, surfaces, its check, the policy."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter
from numpy.typing import NDArray
from torch import Tensor

from botorch_drbo._validation import check_bounds, check_points
from botorch_drbo.contexts import ContextSet
from botorch_drbo.plotting.history import draw_atoms
from botorch_drbo.plotting.style import (
    COLOURS,
    as_array,
    column_of,
    given_or_new,
    name_ticks,
)
from botorch_drbo.recommendation import ModelCheck
from botorch_drbo.recommendation.importance import Importance, Slice
from botorch_drbo.recommendation.model_check import FEW_OUTCOMES
from botorch_drbo.recommendation.promise import shown
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

    The line is the mean, the band the interval, the square the decision itself. Values
    that the constraints of the decisions forbid are left out.

    Args:
        found: From ``recommendation.importance.slice_through``.
        variable: What is moved; numbers and names are drawn in its units.
        ax: Where to draw; a new figure if None.
        name: The name of the variable with its unit.
        outcome: The name of the outcome with its unit.

    Returns:
        The axes.

    Example:
        >>> import torch
        >>> from botorch_drbo import RobustOptimizer
        >>> from botorch_drbo.plotting import plot_slice
        >>> from botorch_drbo.recommendation.importance import slice_through
        >>> from botorch_drbo.space import Continuous
        >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
        >>> few = {"num_restarts": 1, "raw_samples": 8, "surrogate": "botorch"}
        >>> opt = RobustOptimizer("erbo", unit, unit, **few)
        >>> X, C = torch.rand(2, 12, 1, dtype=torch.double)
        >>> opt.tell(X, C, -(X - C).square())
        >>> best = opt.recommend()
        >>> found = slice_through(opt.model, opt.space, best.x, best.context_set, 0)
        >>> plot_slice(found, Continuous(0, 1), name="dose (g)").get_xlabel()
        'dose (g)'
    """
    ax = given_or_new(ax, grid=True)
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
        name_ticks(ax, positions.tolist(), variable.choices)
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
    return ax


def plot_importance(
    found: Importance,
    names: Sequence[str],
    ax: Axes | None = None,
    *,
    outcome: str = "outcome",
) -> Axes:
    r"""Draw by how much the expected outcome differs if one column alone changes.

    The column that matters most is on top. Bars are of the mean of the models, dots are
    what may be true: where a dot is far beyond its bar, the data do not say yet.

    Args:
        found: From ``recommendation.importance.importance``.
        names: Of the columns, ``d_x + d_c``: the decisions, then the contexts.
        ax: Where to draw; a new figure if None.
        outcome: The name of the outcome with its unit.

    Returns:
        The axes.

    Raises:
        BotorchTensorDimensionError: Another number of names than of columns.

    Example:
        >>> import torch
        >>> from botorch_drbo import RobustOptimizer
        >>> from botorch_drbo.plotting import plot_importance
        >>> from botorch_drbo.recommendation.importance import importance
        >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
        >>> few = {"num_restarts": 1, "raw_samples": 8, "surrogate": "botorch"}
        >>> opt = RobustOptimizer("erbo", unit, unit, **few)
        >>> X, C = torch.rand(2, 12, 1, dtype=torch.double)
        >>> opt.tell(X, C, -(X - C).square())
        >>> found = importance(opt.model, opt.space, opt.recommend().context_set)
        >>> plot_importance(found, ["dose (g)", "age"], outcome="effect").get_xlabel()
        'typical difference of effect'
    """
    if len(names) != len(found.mean):
        raise BotorchTensorDimensionError(
            f"`names` must have {len(found.mean)} entries, got {len(names)}."
        )
    ax = given_or_new(ax)
    order: list[int] = found.mean.argsort().tolist()
    mean, possible = (as_array(part[order]) for part in (found.mean, found.possible))
    places = range(len(order))
    ax.barh(places, mean, color=COLOURS[0], label="by the mean of the models")
    ax.plot(possible, places, "o", color=COLOURS[1], label="what may be true")
    ax.set_yticks(places, [names[j] for j in order])
    ax.set(xlabel=f"typical difference of {outcome}", xlim=(0.0, None))
    ax.legend(frameon=False, loc="lower right")
    return ax


def _plain_log_scale(ax: Axes) -> None:
    """Ticks at 1, 2 and 5 of each power of ten, written as plain numbers."""
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_locator(NullLocator())


def plot_surface(
    function: Callable[[Tensor, Tensor], Tensor],
    bounds: Tensor,
    context_bounds: Tensor,
    ax: Axes | None = None,
    *,
    X: Tensor | None = None,
    C: Tensor | None = None,
    context_set: ContextSet | None = None,
    decision: float | None = None,
    num: int = 101,
    value_label: str = "f(x, c)",
) -> Axes:
    r"""Draw ``f`` over one decision and one context, with the data and the context set.

    The decision runs along the horizontal axis, the context along the vertical one. The
    context set, if given, stands to the right of the picture with the same vertical
    axis.

    Args:
        function: Maps decisions ``N x 1`` and contexts ``N x 1`` to ``N`` (or ``N x
            1``)
            values: a test function's ``evaluate``, or a model's posterior mean.
        bounds: Bounds of the decision, ``2 x 1``.
        context_bounds: Bounds of the context, ``2 x 1``.
        ax: Where to draw; a new figure if None.
        X: Decisions of the observations, ``t x 1``.
        C: Contexts of the observations, ``t x 1``.
        context_set: A context set with one context dimension.
        decision: A decision to mark with a vertical line, e.g. the recommended one.
        num: Points along each side of the grid.
        value_label: The text beside the colour bar.

    Returns:
        The axes of the surface.

    Raises:
        BotorchTensorDimensionError: More than one decision or context dimension, or
            ``X`` and ``C`` of different lengths.
        InputDataError: Only one of ``X`` and ``C``.

    Example:
        >>> import torch
        >>> from botorch_drbo.plotting import plot_surface
        >>> unit = torch.tensor([[0.0], [1.0]])
        >>> ax = plot_surface(lambda x, c: -((x - c) ** 2), unit, unit, num=11)
        >>> ax.get_xlabel()
        'decision x'
    """
    check_bounds(bounds, "bounds", num_columns=1)
    check_bounds(context_bounds, "context_bounds", num_columns=1)
    if (X is None) != (C is None):
        raise InputDataError("Give both `X` and `C`, or neither.")
    if context_set is not None and context_set.dim != 1:
        raise BotorchTensorDimensionError(
            f"`context_set` must have one dimension, got {context_set.dim}."
        )
    ax = given_or_new(ax)
    x = torch.linspace(bounds[0].item(), bounds[1].item(), num, dtype=bounds.dtype)
    c = torch.linspace(
        context_bounds[0].item(), context_bounds[1].item(), num, dtype=bounds.dtype
    )
    grid_c, grid_x = torch.meshgrid(c, x, indexing="ij")  # num x num each
    with torch.no_grad():
        values = function(grid_x.reshape(-1, 1), grid_c.reshape(-1, 1))
    filled = ax.contourf(
        x.numpy(),
        c.numpy(),
        as_array(values.reshape(num, num)),
        levels=24,
        cmap="cividis",
    )
    if X is not None and C is not None:
        check_points(X, "X", num_columns=1)
        check_points(C, "C", num_columns=1)
        if X.shape[0] != C.shape[0]:
            raise BotorchTensorDimensionError(
                f"`X` and `C` must have as many rows, got {X.shape[0]} and "
                f"{C.shape[0]}."
            )
        ax.scatter(
            as_array(X)[:, 0],
            as_array(C)[:, 0],
            s=28,
            color="white",
            edgecolors="black",
            linewidths=0.8,
            label="observations",
            zorder=3,
        )
    if decision is not None:
        ax.axvline(decision, color="white", linewidth=3.0, zorder=2)
        ax.axvline(
            decision,
            color=COLOURS[1],
            linewidth=1.6,
            zorder=2.1,
            label="marked decision",
        )
    ax.set(xlabel="decision x", xlim=(x[0].item(), x[-1].item()))
    ax.set(ylabel="context c", ylim=(c[0].item(), c[-1].item()))
    bar_left = 1.03
    if context_set is not None:
        side = ax.inset_axes((1.03, 0.0, 0.2, 1.0), sharey=ax)
        draw_atoms(context_set, side, context_bounds[:, 0])
        side.tick_params(labelleft=False)
        side.set(xlabel="context\ndensity", xticks=[])
        bar_left = 1.27
    bar = ax.inset_axes((bar_left, 0.0, 0.045, 1.0))
    ax.figure.colorbar(filled, cax=bar, label=value_label)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    return ax


def plot_model_check(
    check: ModelCheck, ax: Axes | None = None, *, outcome: str | None = None
) -> Axes:
    r"""Draw each outcome against its prediction from other rows.

    Dots on the diagonal are predicted exactly. Bars are 95% intervals; outcomes outside
    their interval, whose bars miss the diagonal, have another colour. The three rows
    with the largest errors are labelled with the numbers of their trials. A row whose
    outcome would squeeze all others into a corner stands at the edge, with its value.

    Args:
        check: From ``RobustOptimizer.check`` or ``NamedOptimizer.check``.
        ax: Where to draw; a new figure if None.
        outcome: The name of the outcome with its unit, for the labels; by default its
            column's.

    Returns:
        The axes.

    Example:
        >>> import torch
        >>> from botorch_drbo import RobustOptimizer
        >>> from botorch_drbo.plotting import plot_model_check
        >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
        >>> opt = RobustOptimizer("erbo", unit, unit)
        >>> X, C = torch.rand(2, 12, 1).double()
        >>> opt.tell(X, C, -(X - C).square())
        >>> plot_model_check(opt.check(), outcome="yield (t)").get_ylabel()
        'yield (t)'
    """
    ax = given_or_new(ax)
    predicted, outcomes = as_array(check.predicted), as_array(check.outcomes)
    lower, upper = as_array(check.lower), as_array(check.upper)
    missed = (outcomes < lower) | (outcomes > upper)
    groups = {
        "inside the 95% interval": (~missed, COLOURS[0], "o"),
        "outside": (missed, COLOURS[1], "s"),
    }
    for label, (rows, colour, marker) in groups.items():
        ax.errorbar(
            predicted[rows],
            outcomes[rows],
            # The interval of the outcome, drawn where the prediction stands.
            xerr=[(predicted - lower)[rows], (upper - predicted)[rows]],
            fmt=marker,
            color=colour,
            markersize=4,
            linewidth=0.8,
            label=f"{label}: {int(rows.sum())}",
        )
    far = _squeezing(outcomes)
    near = np.delete(np.stack([predicted, outcomes]), [] if far is None else far, 1)
    ends = [near.min(), near.max()]
    if far is not None:
        # Fits that were told of it may predict anything: of those the most are shown.
        ends, name = [near[1].min(), near[1].max()], check.trials[far]
        room = 0.25 * (ends[1] - ends[0])
        low, high = np.quantile(near[0], (0.1, 0.9))
        limits = (min(ends[0], low) - room, max(ends[1], high) + room)
        ax.set(xlim=limits, ylim=(ends[0] - room, ends[1] + room))
        is_high = outcomes[far] > ends[1]
        hidden = int(((near[0] < limits[0]) | (near[0] > limits[1])).sum())
        others = f", as are {hidden} others" if hidden else ""
        ax.annotate(
            f"{check.row_name} {name} ({shown(float(outcomes[far]))}) is outside the "
            f"picture{others}",
            (0.98, 0.99 if is_high else 0.01),
            xycoords="axes fraction",
            ha="right",
            va="top" if is_high else "bottom",
        )
    ax.plot(ends, ends, color="0.5", linewidth=1.0, zorder=0)
    for trial in check.worst:
        i = check.trials.index(trial)
        if i == far:
            continue
        ax.annotate(
            str(trial),
            (predicted[i], outcomes[i]),
            xytext=(4, 4),
            textcoords="offset points",
            annotation_clip=True,
        )
    outcome = check.outcome_name if outcome is None else outcome
    ax.set(xlabel=f"{outcome}, predicted from the other rows", ylabel=outcome)
    ax.set_title(textwrap.fill(check.words(), 72), fontsize="medium")
    ax.legend()  # on its own ground: bars are long
    return ax


_SQUEEZES = 3.0  # ranges of all others


def _squeezing(outcomes: NDArray[np.float64]) -> int | None:
    """Which outcome alone makes the picture several times as wide; None if none does.

    Shapes: ``outcomes``: ``t``.
    """
    far = int(np.abs(outcomes - np.median(outcomes)).argmax())
    others = np.delete(outcomes, far)
    if len(others) < FEW_OUTCOMES - 1:
        return None
    return far if 0.0 < _SQUEEZES * np.ptp(others) < np.ptp(outcomes) else None


def _begins_with(policy: Any, contexts: Any) -> bool:
    """Whether the first columns of a table are a tensor of contexts; it has more."""
    if not isinstance(contexts, Tensor) or contexts.ndim != 2:
        return False
    first = [column_of(policy, j, "", "decisions") for j in range(policy.shape[1])]
    return len(first) > contexts.shape[1] and all(
        np.allclose(found.values, numbers, equal_nan=True)
        if found.categories is None
        else len({*zip(found.values, numbers, strict=True)})  # a number for each
        == len({*numbers})
        == len(found.categories)
        for found, numbers in zip(first, as_array(contexts).T, strict=False)
    )


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
            ``NamedOptimizer.policy``; a tensor, a DataFrame or a dictionary of columns.
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
    if isinstance(contexts, Mapping):
        import pandas as pd

        contexts = pd.DataFrame(contexts)
    if len(contexts) != len(decisions):
        raise BotorchTensorDimensionError(
            f"`contexts` and `decisions` must have as many rows, got {len(contexts)} "
            f"and {len(decisions)}."
        )
    if hasattr(decisions, "columns") and _begins_with(decisions, contexts):
        contexts = decisions.iloc[:, : contexts.shape[-1]]  # now by their names
    if hasattr(contexts, "columns") and hasattr(decisions, "columns"):
        both = [name for name in contexts.columns if name in decisions.columns]
        # What was not known of the contexts is an empty column of the policy.
        decisions = decisions.drop(columns=both).dropna(axis="columns", how="all")
    seen = column_of(contexts, column, "context c", "contexts")
    chosen = column_of(decisions, decision, "decision x", "decisions")
    ax = given_or_new(ax, grid=True)
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
    if seen.categories is not None:
        name_ticks(ax, range(len(seen.categories)), seen.categories)
    if chosen.categories is not None:
        ax.set_yticks(range(len(chosen.categories)), chosen.categories)
    xlabel, ylabel = labels or (seen.name, chosen.name)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    return ax
