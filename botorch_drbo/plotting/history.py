"""What an optimizer has seen, in the order in which it was told."""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np
from botorch.exceptions.errors import InputDataError
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from botorch_drbo._validation import check_finite
from botorch_drbo.plotting.style import COLOURS, MARKERS, as_array, given_or_new


class HasHistory(Protocol):
    """What :func:`plot_history` reads from an optimizer."""

    @property
    def history(self) -> ObservedHistory:
        """The observations so far."""
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
    quantity: Literal["outcome", "decision", "context"] = "outcome",
    window: int = 5,
) -> Axes:
    r"""Draw what an optimizer has seen, in the order in which it was told.

    Args:
        optimizer: A ``RobustOptimizer``, or anything with a ``history`` of ``X``,
            ``C``, ``Y``.
        ax: Where to draw; a new figure if None.
        quantity: ``"outcome"``: each outcome in the user's own sign, and the mean of
            the last ``window``; ``"decision"`` or ``"context"``: one kind of marker per
            dimension, in the user's units.
        window: How many outcomes the moving mean covers; at the start it covers those
            that there are.

    Returns:
        The axes.

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
    history = optimizer.history
    steps = np.arange(1, history.X.shape[0] + 1)
    if len(steps) == 0:
        raise InputDataError(
            "The history is empty: tell the optimizer something first."
        )
    if window < 1:
        raise InputDataError(f"`window` must be at least 1, got {window}.")
    ax = given_or_new(ax)
    if quantity == "outcome":
        check_finite(history.Y, "history.Y")
        outcomes = as_array(history.Y).reshape(-1)  # t
        total = np.concatenate([[0.0], np.cumsum(outcomes)])
        start = np.maximum(steps - window, 0)
        moving = (total[steps] - total[start]) / (steps - start)
        ax.scatter(steps, outcomes, s=22, color=COLOURS[5], label="outcome", zorder=3)
        ax.plot(
            steps,
            moving,
            color=COLOURS[0],
            linewidth=2.0,
            label=f"mean of the last {window}",
        )
        ax.set_ylabel("outcome")
    elif quantity in ("decision", "context"):
        letter, values = (
            ("x", history.X) if quantity == "decision" else ("c", history.C)
        )
        for i, column in enumerate(as_array(values).T):
            ax.scatter(
                steps,
                column,
                s=26,
                color=COLOURS[i % len(COLOURS)],
                marker=MARKERS[i % len(MARKERS)],
                label=letter if values.shape[-1] == 1 else f"{letter}[{i}]",
            )
        ax.set_ylabel(quantity)
    else:
        raise InputDataError(
            f"`quantity` must be 'outcome', 'decision' or 'context', got {quantity!r}."
        )
    ax.set_xlabel("observation")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(alpha=0.25)
    # Above the axes: observations fill the whole of them.
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False)
    return ax
