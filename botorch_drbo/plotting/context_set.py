"""The points of a context set, their weights, and the density they make."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from matplotlib.axes import Axes
from numpy.typing import NDArray
from torch import Tensor

from botorch_drbo._validation import check_bounds
from botorch_drbo.contexts import ContextSet
from botorch_drbo.plotting.style import COLOURS, as_array, given_or_new
from botorch_drbo.space import Category, Space

_AROUND = 0.6  # room beside the first category and the last one


def plot_context_set(
    context_set: ContextSet,
    ax: Axes | None = None,
    *,
    bounds: Tensor | None = None,
    dims: Sequence[int | str] | None = None,
    names: Sequence[str] | None = None,
    space: Space | None = None,
    label: str | None = None,
    colour: str = COLOURS[0],
) -> Axes:
    r"""Draw the points of a context set, their weights, and the density they make.

    With one dimension: a weighted Gaussian kernel density estimate (Scott's bandwidth,
    for the picture only) above one tick per point, whose length is its weight. With
    two: one disc per point, whose area is its weight, over the contours of that
    density. For a single category the bars are the weights of its values; with a
    category and another variable there are discs without contours.

    Args:
        context_set: The context set, ``n x d_c``.
        ax: Where to draw; a new figure if None.
        bounds: Bounds of the contexts, ``2 x d_c``: the limits of the axes. None: those
            of ``space``, or else of the points.
        dims: The one or two context dimensions to show, by place, with a ``space`` by
            name too. None: all of them, if they are at most two.
        names: Axis labels of the shown dimensions; None: those of ``space``.
        space: The space of the contexts: its names and units are used, and categories
            are shown by name.
        label: The name of the density in a legend.
        colour: The colour of points and density.

    Returns:
        The axes.

    Raises:
        BotorchTensorDimensionError: More than two dimensions and no ``dims``, or
            ``dims`` that the context set does not have, or ``names`` of another length;
            a ``space`` of another number of contexts.

    Example:
        >>> import torch
        >>> from botorch_drbo import ContextSet
        >>> from botorch_drbo.plotting import plot_context_set
        >>> demand = ContextSet.empirical(torch.rand(20, 1, dtype=torch.double))
        >>> ax = plot_context_set(demand, names=["demand"])
        >>> ax.get_xlabel()
        'demand'
        >>> from botorch_drbo import Category, Space
        >>> space = Space({"price": (1, 9)}, {"weather": Category(["sun", "rain"])})
        >>> seen = space.context_set({"weather": ["rain", "sun", "sun"]})
        >>> ax = plot_context_set(seen, space=space)
        >>> [text.get_text() for text in ax.get_xticklabels()]
        ['sun', 'rain']
    """
    variables = [] if space is None else list(space.contexts)
    every = range(context_set.dim)
    columns = [_column_index(i, variables) for i in (every if dims is None else dims)]
    shown = [i for i in columns if i in every]
    if len(shown) not in (1, 2) or len(shown) < len(columns):
        raise BotorchTensorDimensionError(
            f"Can show one or two of the {context_set.dim} context dimensions"
            f"{f', {variables}' if variables else ''}, got `dims` {dims}. Choose them, "
            "e.g. `dims=[0, 1]`."
        )
    kinds: dict[int, Sequence[str]] = {}
    if space is not None:
        context_set, own_bounds = _in_units(context_set, space)
        bounds = own_bounds if bounds is None else bounds
        kinds = {
            j: variable.choices
            for j, variable in enumerate(space.contexts.values())
            if isinstance(variable, Category)
        }
    if names is None:
        unnamed = ["c"] if len(every) == 1 else [f"c{i + 1}" for i in every]
        named = variables or [f"context {name}" for name in unnamed]
        names = [named[i] for i in shown]
    if len(names) != len(shown):
        raise BotorchTensorDimensionError(
            f"`names` must have {len(shown)} entries, got {len(names)}."
        )
    if bounds is not None:
        check_bounds(bounds, "bounds", num_columns=context_set.dim)
    ax = given_or_new(ax)
    if len(shown) == 1 and shown[0] in kinds:
        _draw_bars(context_set, shown[0], kinds[shown[0]], ax, label, colour)
        ax.set_xlabel(names[0])
        return ax
    if len(shown) == 1:
        limits = None if bounds is None else bounds[:, shown[0]]
        draw_atoms(
            context_set, ax, dim=shown[0], limits=limits, label=label, colour=colour
        )
        ax.set_xlabel(names[0])
        return ax
    points = as_array(context_set.points)[:, shown]  # n x 2
    weights = as_array(context_set.weights)  # n
    low, high = _limits(points, None if bounds is None else bounds[:, shown])
    across, up = (np.linspace(low[i], high[i], 101) for i in range(2))
    known = [kinds.get(i) for i in shown]
    density = None if any(known) else _density(points, weights, across, up)
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
    for axis, choices, limit, i in (
        (ax.xaxis, known[0], ax.set_xlim, 0),
        (ax.yaxis, known[1], ax.set_ylim, 1),
    ):
        if choices:
            axis.set_ticks(range(len(choices)), choices)
            limit(-_AROUND, len(choices) - 1 + _AROUND)
        else:
            limit(low[i], high[i])
    return ax


def _in_units(context_set: ContextSet, space: Space) -> tuple[ContextSet, Tensor]:
    """The contexts in the user's units, and their bounds, ``2 x d_c``."""
    variables = list(space.contexts.values())
    if context_set.dim != len(variables):
        raise BotorchTensorDimensionError(
            f"`space` has {len(variables)} contexts, {list(space.contexts)}, and "
            f"`context_set` {context_set.dim} columns."
        )
    limits = space.search_space.context_bounds
    points, bounds = (
        torch.stack([v.units(rows[:, j]) for j, v in enumerate(variables)], dim=-1)
        for rows in (context_set.points.to(limits), limits)
    )
    return ContextSet(points, context_set.weights.to(limits)), bounds


def _column_index(which: int | str, names: Sequence[str]) -> int:
    """The column of a name, or of a place; -1 if there is none."""
    if isinstance(which, int):
        return which
    return names.index(which) if which in names else -1


def _draw_bars(
    context_set: ContextSet,
    dim: int,
    choices: Sequence[str],
    ax: Axes,
    label: str | None,
    colour: str,
) -> None:
    """The weight of each category, also of those that have none."""
    codes = as_array(context_set.points)[:, dim].round().astype(int)
    heights = np.bincount(codes, as_array(context_set.weights), len(choices))
    ax.bar(range(len(choices)), heights, 0.6, color=colour, alpha=0.6, label=label)
    ax.set_xticks(range(len(choices)), choices)
    ax.set_xlim(-_AROUND, len(choices) - 1 + _AROUND)
    ax.set_ylabel("weight")


def draw_atoms(
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
    points = as_array(context_set.points)[:, [dim]]  # n x 1
    weights = as_array(context_set.weights)  # n
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


def _areas(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Disc areas in points squared: proportional to the weights, the largest is 60."""
    return 60.0 * weights / weights.max()


def _limits(
    points: NDArray[np.float64], bounds: Tensor | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Limits of the axes: the bounds, or the points with a margin."""
    if bounds is not None:
        return as_array(bounds[0]), as_array(bounds[1])
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
