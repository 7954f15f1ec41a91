"""Pictures of a robust optimisation; every function takes and returns matplotlib axes.

matplotlib comes with the extra ``benchmarks``. ``import botorch_drbo`` does not import
this module, so the library works without matplotlib.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

import numpy as np
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from torch import Tensor

from botorch_drbo._validation import check_bounds, check_finite, check_points
from botorch_drbo.contexts import ContextSet

# Okabe and Ito's colours: told apart with every common kind of colour blindness, and in
# this order also by lightness where neighbours meet. The dashes help in grey print.
COLOURS: tuple[str, ...] = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
)
DASHES: tuple[str | tuple[int, tuple[int, ...]], ...] = (
    "-",
    (0, (6, 2)),
    (0, (2, 1)),
    (0, (6, 2, 1, 2)),
    (0, (1, 1)),
    (0, (8, 2, 2, 2, 2, 2)),
    (0, (4, 4)),
)
MARKERS: tuple[str, ...] = ("o", "^", "s", "D", "v", "P", "X")


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
    decision_label: str = "marked decision",
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
        decision_label: The name of that line in the legend.
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
            f"`context_set` must have one dimension, got {context_set.dim}. Draw it "
            "alone with `plot_context_set`."
        )
    ax = _axes(ax)
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
        _array(values.reshape(num, num)),
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
            _array(X)[:, 0],
            _array(C)[:, 0],
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
            label=decision_label,
        )
    ax.set_xlabel("decision x")
    ax.set_ylabel("context c")
    ax.set_xlim(x[0].item(), x[-1].item())
    ax.set_ylim(c[0].item(), c[-1].item())
    bar_left = 1.03
    if context_set is not None:
        side = ax.inset_axes((1.03, 0.0, 0.2, 1.0), sharey=ax)
        _draw_atoms(context_set, side, dim=0, limits=context_bounds[:, 0], upright=True)
        side.tick_params(labelleft=False)
        side.set_xlabel("context\ndensity")
        side.set_xticks([])
        bar_left = 1.27
    bar = ax.inset_axes((bar_left, 0.0, 0.045, 1.0))
    ax.figure.colorbar(filled, cax=bar, label=value_label)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    return ax


def plot_context_set(
    context_set: ContextSet,
    ax: Axes | None = None,
    *,
    bounds: Tensor | None = None,
    dims: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    label: str | None = None,
    colour: str = COLOURS[0],
) -> Axes:
    r"""Draw the points of a context set, their weights, and the density they make.

    With one dimension: a weighted Gaussian kernel density estimate (Scott's bandwidth,
    for the picture only) above one tick per point, as long as its weight. With two: one
    disc per point, its area as its weight, over the contours of that density.

    Args:
        context_set: The context set, ``n x d_c``.
        ax: Where to draw; a new figure if None.
        bounds: Bounds of the contexts, ``2 x d_c``: the limits of the axes.
        dims: The one or two context dimensions to show. None: all of them, if they are
            at most two.
        names: Axis labels of the shown dimensions.
        label: The name of the density in a legend.
        colour: The colour of points and density.

    Returns:
        The axes.

    Raises:
        BotorchTensorDimensionError: More than two dimensions and no ``dims``, or
            ``dims`` that the context set has not, or ``names`` of another length.

    Example:
        >>> import torch
        >>> from botorch_drbo import ContextSet
        >>> from botorch_drbo.plotting import plot_context_set
        >>> demand = ContextSet.empirical(torch.rand(20, 1, dtype=torch.double))
        >>> ax = plot_context_set(demand, names=["demand"])
        >>> ax.get_xlabel()
        'demand'
    """
    shown = tuple(range(context_set.dim)) if dims is None else tuple(dims)
    if len(shown) not in (1, 2) or not all(0 <= i < context_set.dim for i in shown):
        raise BotorchTensorDimensionError(
            f"Can show one or two of the {context_set.dim} context dimensions, got "
            f"`dims` {dims}. Choose them, e.g. `dims=[0, 1]`."
        )
    if names is None:
        names = (
            ["context c"]
            if context_set.dim == 1
            else [f"context c[{i}]" for i in shown]
        )
    if len(names) != len(shown):
        raise BotorchTensorDimensionError(
            f"`names` must have {len(shown)} entries, got {len(names)}."
        )
    if bounds is not None:
        check_bounds(bounds, "bounds", num_columns=context_set.dim)
    ax = _axes(ax)
    if len(shown) == 1:
        limits = None if bounds is None else bounds[:, shown[0]]
        _draw_atoms(
            context_set, ax, dim=shown[0], limits=limits, label=label, colour=colour
        )
        ax.set_xlabel(names[0])
        return ax
    points = _array(context_set.points)[:, list(shown)]  # n x 2
    weights = _array(context_set.weights)  # n
    low, high = _limits(points, None if bounds is None else bounds[:, list(shown)])
    across, up = (np.linspace(low[i], high[i], 101) for i in range(2))
    density = _density(points, weights, across, up)
    if density is not None:
        ax.contour(across, up, density, levels=6, colors=colour, alpha=0.45)
    ax.scatter(
        points[:, 0],
        points[:, 1],
        s=_areas(weights),
        color=colour,
        edgecolors="white",
        linewidths=0.5,
        label=label,
        zorder=3,
    )
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])
    return ax


def plot_regret(
    regret: Mapping[str, Tensor],
    ax: Axes | None = None,
    *,
    ylabel: str = "cumulative expected regret",
    band: bool = True,
) -> Axes:
    r"""Draw the mean regret of several algorithms, with a band of one standard error.

    The band is ``mean +- std / sqrt(seeds)`` with the sample standard deviation. One
    seed gives a line without a band.

    Args:
        regret: Algorithm name -> ``seeds x iterations``.
        ax: Where to draw; a new figure if None.
        ylabel: The label of the vertical axis.
        band: Whether to draw the bands.

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
    ax = _axes(ax)
    for i, (name, values) in enumerate(regret.items()):
        check_points(values, f"regret[{name!r}]")
        mean = _array(values.mean(0))  # iterations
        iterations = np.arange(1, len(mean) + 1)
        colour = COLOURS[i % len(COLOURS)]
        ax.plot(
            iterations,
            mean,
            color=colour,
            linestyle=DASHES[i % len(DASHES)],
            linewidth=2.0,
            label=name,
        )
        if band and values.shape[0] > 1:
            error = _array(values.std(0)) / values.shape[0] ** 0.5
            ax.fill_between(
                iterations,
                mean - error,
                mean + error,
                color=colour,
                alpha=0.2,
                linewidth=0,
            )
    ax.set_xlabel("iteration")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylabel(ylabel)
    ax.margins(x=0.01)
    ax.grid(alpha=0.25)
    ax.legend(frameon=False)
    return ax


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
    ax = _axes(ax)
    if quantity == "outcome":
        check_finite(history.Y, "history.Y")
        outcomes = _array(history.Y).reshape(-1)  # t
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
        for i, column in enumerate(_array(values).T):
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


def _axes(ax: Axes | None) -> Axes:
    """The given axes, or those of a new figure that makes room for its own labels."""
    if ax is not None:
        return ax
    return plt.subplots(figsize=(6.4, 4.2), layout="constrained")[1]


def _array(values: Tensor) -> NDArray[np.float64]:
    return values.detach().cpu().double().numpy()


def _areas(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Disc areas in points squared: proportional to the weights, the largest is 60."""
    return 60.0 * weights / weights.max()


def _limits(
    points: NDArray[np.float64], bounds: Tensor | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Limits of the axes: the bounds, or the points with a margin."""
    if bounds is not None:
        return _array(bounds[0]), _array(bounds[1])
    low, high = points.min(0), points.max(0)
    margin = np.where(high > low, 0.15 * (high - low), 0.5)
    return low - margin, high + margin


def _density(
    points: NDArray[np.float64],
    weights: NDArray[np.float64],
    *grids: NDArray[np.float64],
) -> NDArray[np.float64] | None:
    """Weighted Gaussian kernel density on the product of one or two ``grids``.

    Returns ``m`` values, or ``m_2 x m_1`` for two grids (the second runs down the rows,
    as contour plots want it), or None if a dimension has no spread.
    """
    mean = weights @ points
    std = np.sqrt(weights @ (points - mean) ** 2)  # d
    if (std <= 1e-12 * np.abs(points).max(0)).any():
        return None
    effective = 1.0 / (weights**2).sum()
    bandwidth = std * effective ** (
        -1.0 / (points.shape[1] + 4)
    )  # Scott, per dimension
    kernels = []
    for grid, column, width in zip(grids, points.T, bandwidth, strict=True):
        apart = (grid[:, None] - column) / width  # m x n
        kernels.append(np.exp(-0.5 * apart**2) / (width * np.sqrt(2 * np.pi)))
    if len(kernels) == 1:
        return kernels[0] @ weights
    return (kernels[1] * weights) @ kernels[0].T


def _draw_atoms(
    context_set: ContextSet,
    ax: Axes,
    *,
    dim: int,
    limits: Tensor | None,
    upright: bool = False,
    label: str | None = None,
    colour: str = COLOURS[0],
) -> None:
    """Density and ticks of one dimension; ``upright`` puts the context on y."""
    points = _array(context_set.points)[:, [dim]]  # n x 1
    weights = _array(context_set.weights)  # n
    low, high = _limits(points, None if limits is None else limits.unsqueeze(-1))
    where = np.linspace(low[0], high[0], 301)
    density = _density(points, weights, where)
    # A point mass has no density: its tick alone fills the height of the picture.
    top = 1.0 if density is None else float(density.max())
    ticks = (0.15 if density is not None else 1.0) * top * weights / weights.max()
    if density is not None and upright:
        ax.fill_betweenx(where, 0.0, density, color=colour, alpha=0.25, linewidth=0)
        ax.plot(density, where, color=colour, linewidth=1.8, label=label)
    elif density is not None:
        ax.fill_between(where, 0.0, density, color=colour, alpha=0.25, linewidth=0)
        ax.plot(where, density, color=colour, linewidth=1.8, label=label)
    rug_label, width = (label or "", 2.5) if density is None else ("", 0.9)
    if upright:
        ax.hlines(
            points[:, 0], 0.0, ticks, color=colour, linewidth=width, label=rug_label
        )
        ax.set_ylim(low[0], high[0])
        ax.set_xlim(left=0.0)
    else:
        ax.vlines(
            points[:, 0], 0.0, ticks, color=colour, linewidth=width, label=rug_label
        )
        ax.set_ylabel("weight" if density is None else "density")
        ax.set_xlim(low[0], high[0])
        ax.set_ylim(bottom=0.0)
