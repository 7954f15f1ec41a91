"""Figures of a run: its outcomes, its regret, its contexts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from botorch.exceptions.errors import InputDataError
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from torch import Tensor

from botorch_drbo._validation import check_finite, check_points
from botorch_drbo.contexts import ContextSet
from botorch_drbo.plotting.style import COLOURS, as_array, curve_style, given_or_new

_WINDOW = 5  # outcomes of a moving mean; at the start it covers those that there are


class HasHistory(Protocol):
    """What :func:`plot_history` reads from an optimizer.

    If its variables have names, also its ``named_space``: the history is a table then.
    """

    @property
    @abstractmethod
    def history(self) -> Any:
        """The observations so far: with outcomes ``Y``, ``t x 1``, or a DataFrame."""


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
    ax = given_or_new(ax, grid=True)
    ax.scatter(steps, outcomes, s=22, color=COLOURS[5], label=name, zorder=3)
    label = f"mean of the last {_WINDOW}"
    ax.plot(steps, moving, color=COLOURS[0], linewidth=2.0, label=label)
    ax.set(xlabel="observation", ylabel=name)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    # Above the axes: observations fill the whole of them.
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False)
    return ax


def plot_regret(
    regret: Mapping[str, Tensor],
    ax: Axes | None = None,
    *,
    ylabel: str = "cumulative expected regret",
) -> Axes:
    r"""Draw the mean regret of several algorithms, with a band of one standard error.

    The band is ``mean +- std / sqrt(seeds)`` with the sample standard deviation. One
    seed gives a line without a band. Curves differ by colour and dashes, and from the
    eighth on also by markers.

    Args:
        regret: Algorithm name -> ``seeds x iterations``.
        ax: Where to draw; a new figure if None.
        ylabel: The label of the vertical axis.

    Returns:
        The axes.

    Raises:
        InputDataError: No algorithm, or NaN or infinite regrets.
        BotorchTensorDimensionError: A tensor that is not ``seeds x iterations``.

    Example:
        >>> import torch
        >>> from botorch_drbo.plotting import plot_regret
        >>> runs = {"wdrbo": torch.rand(3, 10), "erbo": torch.rand(3, 10)}
        >>> ax = plot_regret({name: r.cumsum(-1) for name, r in runs.items()})
        >>> [line.get_label() for line in ax.get_lines()]
        ['wdrbo', 'erbo']
    """
    if not regret:
        raise InputDataError("`regret` is empty: give at least one algorithm.")
    ax = given_or_new(ax, grid=True)
    for i, (name, values) in enumerate(regret.items()):
        check_points(values, f"regret[{name!r}]")
        mean = as_array(values.mean(0))  # iterations
        iterations = np.arange(1, len(mean) + 1)
        style = curve_style(i)
        # About seven markers on a curve, not all at the same iterations.
        apart = max(1, len(mean) // 7)
        ax.plot(
            iterations,
            mean,
            linewidth=2.0,
            label=name,
            markevery=(i % apart, apart),
            **style,
        )
        if values.shape[0] > 1:
            error = as_array(values.std(0)) / values.shape[0] ** 0.5
            ax.fill_between(
                iterations,
                mean - error,
                mean + error,
                color=style["color"],
                alpha=0.2,
                linewidth=0,
            )
    ax.set(xlabel="iteration", ylabel=ylabel, xmargin=0.01)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    many = len(regret) > len(COLOURS)
    ax.legend(
        frameon=False,
        handlelength=3.0,  # long enough to show the dashes
        ncols=2 if many else 1,
        fontsize="x-small" if many else None,
    )
    return ax


def draw_atoms(context_set: ContextSet, ax: Axes, limits: Tensor) -> None:
    """Density and ticks of contexts of one column, which runs along the upright axis.

    Shapes: ``context_set``: ``n x 1``.
    """
    points, weights = as_array(context_set.points), as_array(context_set.weights)
    low, high = as_array(limits)
    where = np.linspace(low, high, 301)
    density = _density(points, weights, where)
    # A point mass has no density: its tick alone fills the height of the picture.
    top, share, width = 1.0, 1.0, 2.5
    if density is not None:
        top, share, width = float(density.max()), 0.15, 0.9
        ax.fill_betweenx(where, 0.0, density, color=COLOURS[0], alpha=0.25, linewidth=0)
        ax.plot(density, where, color=COLOURS[0], linewidth=1.8)
    ticks = share * top * weights / weights.max()
    ax.hlines(points[:, 0], 0.0, ticks, color=COLOURS[0], linewidth=width)
    ax.set_ylim(low, high)
    ax.set_xlim(left=0.0)


def _density(
    points: NDArray[np.float64],
    weights: NDArray[np.float64],
    grid: NDArray[np.float64],
) -> NDArray[np.float64] | None:
    """Weighted Gaussian kernel density of ``n x 1`` points; None of a point mass."""
    mean = weights @ points[:, 0]
    std = np.sqrt(weights @ (points[:, 0] - mean) ** 2)
    if std <= 1e-12 * np.abs(points).max():
        return None
    effective = 1.0 / (weights**2).sum()
    width = std * effective ** (-1.0 / 5)  # Scott's rule in one dimension
    apart = (grid[:, None] - points[:, 0]) / width  # m x n
    return np.exp(-0.5 * apart**2) @ weights / (width * np.sqrt(2 * np.pi))
