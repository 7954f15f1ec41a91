"""The outcomes that an optimizer has seen, in the order in which it was told."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from botorch.exceptions.errors import InputDataError
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from botorch_drbo._validation import check_finite
from botorch_drbo.plotting.style import COLOURS, as_array, given_or_new

_WINDOW = 5  # outcomes of a moving mean; at the start it covers those that there are


class HasHistory(Protocol):
    """What :func:`plot_history` reads from an optimizer.

    If its variables have names, also its ``named_space``: the history is a table then.
    """

    @property
    def history(self) -> Any:
        """The observations so far: with outcomes ``Y``, ``t x 1``, or a DataFrame."""
        ...


def plot_history(optimizer: HasHistory, ax: Axes | None = None) -> Axes:
    r"""Draw the outcomes that an optimizer has seen, in their order.

    Args:
        optimizer: A ``RobustOptimizer``, or anything with a ``history`` of
            outcomes ``Y``.
        ax: Where to draw; a new figure if None.

    Returns:
        The axes: each outcome in the user's own sign, and the mean of the last five.
        Trials without an outcome are not shown.

    Raises:
        InputDataError: An empty history.

    Example:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> from botorch_drbo.plotting import plot_history
        >>> data = SimpleNamespace(Y=torch.rand(9, 1))
        >>> ax = plot_history(SimpleNamespace(history=data))
        >>> ax.get_xlabel()
        'observation'
    """
    history, space = optimizer.history, getattr(optimizer, "named_space", None)
    name = "outcome" if space is None else space.outcome
    if space is None:
        outcomes = as_array(check_finite(history.Y, "history.Y")).reshape(-1)
    else:
        outcomes = history[name].dropna().to_numpy(dtype=float)
    steps = np.arange(1, len(outcomes) + 1)
    if len(steps) == 0:
        raise InputDataError(
            "The history is empty: tell the optimizer an outcome first."
        )
    total = np.concatenate([[0.0], np.cumsum(outcomes)])
    start = np.maximum(steps - _WINDOW, 0)
    moving = (total[steps] - total[start]) / (steps - start)
    ax = given_or_new(ax)
    ax.scatter(steps, outcomes, s=22, color=COLOURS[5], label=name, zorder=3)
    label = f"mean of the last {_WINDOW}"
    ax.plot(steps, moving, color=COLOURS[0], linewidth=2.0, label=label)
    ax.set(xlabel="observation", ylabel=name)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(alpha=0.25)
    # Above the axes: observations fill the whole of them.
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False)
    return ax
