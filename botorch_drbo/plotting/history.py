"""What an optimizer has seen, in the order in which it was told."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from botorch.exceptions.errors import InputDataError
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from torch import Tensor

from botorch_drbo._validation import check_finite
from botorch_drbo.plotting.columns import Column, column_of
from botorch_drbo.plotting.style import COLOURS, MARKERS, as_array, given_or_new


class HasHistory(Protocol):
    """What :func:`plot_history` reads from an optimizer.

    If its variables have names, also its ``named_space``: the history is a table then.
    """

    @property
    def history(self) -> Any:
        """The observations so far: an ``ObservedHistory``, or a DataFrame."""
        ...


class ObservedHistory(Protocol):
    """Decisions, contexts and outcomes, one row per observation."""

    @property
    def X(self) -> Tensor:
        """Decisions, ``t x d_x``."""
        ...

    @property
    def C(self) -> Tensor:
        """Contexts, ``t x d_c``."""
        ...

    @property
    def Y(self) -> Tensor:
        """Outcomes, ``t x 1``."""
        ...


def plot_history(
    optimizer: HasHistory,
    ax: Axes | None = None,
    *,
    quantity: str = "outcome",
    window: int = 5,
) -> Axes:
    r"""Draw what an optimizer has seen, in the order in which it was told.

    Args:
        optimizer: A ``RobustOptimizer``, or anything with a ``history`` of ``X``,
            ``C``, ``Y``.
        ax: Where to draw; a new figure if None.
        quantity: ``"outcome"``: each outcome in the user's own sign, and the mean of
            the last ``window``; ``"decision"`` or ``"context"``: one kind of marker per
            variable, in the user's units; or the name of one variable alone, which is
            ``x1, x2, ...`` or ``c1, c2, ...`` where variables have no names.
        window: How many outcomes the moving mean covers; at the start it covers those
            that there are.

    Returns:
        The axes. Trials without an outcome are not shown.

    Raises:
        InputDataError: An empty history, an unknown quantity, or a window below 1.

    Example:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> from botorch_drbo.plotting import plot_history
        >>> X, C, Y = torch.rand(9, 2), torch.rand(9, 1), torch.rand(9, 1)
        >>> data = SimpleNamespace(X=X, C=C, Y=Y)
        >>> ax = plot_history(SimpleNamespace(history=data))
        >>> ax.get_xlabel()
        'observation'
    """
    seen = _observed(optimizer)
    steps = np.arange(1, len(seen.outcome.values) + 1)
    if len(steps) == 0:
        raise InputDataError(
            "The history is empty: tell the optimizer an outcome first."
        )
    if window < 1:
        raise InputDataError(f"`window` must be at least 1, got {window}.")
    shown = _shown(seen, quantity)
    ax = given_or_new(ax)
    if shown is None:
        _draw_outcomes(ax, steps, seen.outcome, window)
    else:
        _draw_columns(ax, steps, shown, quantity)
    ax.set_xlabel("observation")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(alpha=0.25)
    # Above the axes: observations fill the whole of them.
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False)
    return ax


class _Observed(NamedTuple):
    """The observations by variable, in the user's units."""

    decisions: list[Column]
    contexts: list[Column]
    outcome: Column


def _observed(optimizer: HasHistory) -> _Observed:
    history = optimizer.history
    space = getattr(optimizer, "named_space", None)
    if space is None:
        X, C, Y = history.X, history.C, history.Y
        check_finite(Y, "history.Y")
        return _Observed(
            [_numbered(X, j, "x") for j in range(X.shape[-1])],
            [_numbered(C, j, "c") for j in range(C.shape[-1])],
            Column("outcome", as_array(Y).reshape(-1), None),
        )
    table = history[history[space.outcome].notna()]
    decisions = [column_of(table, name, "", "history") for name in space.decisions]
    contexts = [column_of(table, name, "", "history") for name in space.contexts]
    return _Observed(
        decisions, contexts, column_of(table, space.outcome, "", "history")
    )


def _numbered(table: Tensor, j: int, letter: str) -> Column:
    return Column(f"{letter}{j + 1}", as_array(table[:, j]), None)


def _shown(seen: _Observed, quantity: str) -> list[Column] | None:
    """The columns that were asked for; None for the outcome."""
    columns = {column.name: column for column in (*seen.decisions, *seen.contexts)}
    if quantity in columns:
        return [columns[quantity]]
    if quantity in ("outcome", seen.outcome.name):
        return None
    if quantity not in ("decision", "context"):
        raise InputDataError(
            "`quantity` must be 'outcome', 'decision', 'context' or the name of a "
            f"variable, {list(columns)}, got {quantity!r}."
        )
    return seen.decisions if quantity == "decision" else seen.contexts


def _draw_outcomes(
    ax: Axes, steps: NDArray[np.int64], outcome: Column, window: int
) -> None:
    """Each outcome, and the mean of the last ones."""
    total = np.concatenate([[0.0], np.cumsum(outcome.values)])
    start = np.maximum(steps - window, 0)
    moving = (total[steps] - total[start]) / (steps - start)
    ax.scatter(
        steps, outcome.values, s=22, color=COLOURS[5], label=outcome.name, zorder=3
    )
    ax.plot(
        steps,
        moving,
        color=COLOURS[0],
        linewidth=2.0,
        label=f"mean of the last {window}",
    )
    ax.set_ylabel(outcome.name)


def _draw_columns(
    ax: Axes, steps: NDArray[np.int64], shown: list[Column], quantity: str
) -> None:
    """One kind of marker per variable; categories stand at the places of their names.

    Args:
        ax: Where to draw.
        steps: The numbers of the observations, ``t``.
        shown: The variables.
        quantity: What several of them together are called.
    """
    for i, column in enumerate(shown):
        label = column.name
        if column.categories is not None and len(shown) > 1:
            codes = (f"{j} {kind}" for j, kind in enumerate(column.categories))
            label = f"{column.name}: {', '.join(codes)}"
        ax.scatter(
            steps,
            column.values,
            s=26,
            color=COLOURS[i % len(COLOURS)],
            marker=MARKERS[i % len(MARKERS)],
            label=label,
        )
    if len(shown) == 1:
        kinds = shown[0].categories
        if kinds is not None:
            ax.set_yticks(range(len(kinds)), kinds)
        ax.set_ylabel(shown[0].name)
    else:
        ax.set_ylabel(quantity)
