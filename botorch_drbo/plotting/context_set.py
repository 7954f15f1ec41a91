"""The density that a context set makes, beside the picture of a function."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from torch import Tensor

from botorch_drbo.contexts import ContextSet
from botorch_drbo.plotting.style import COLOURS, as_array


def draw_atoms(context_set: ContextSet, ax: Axes, limits: Tensor) -> None:
    """Density and ticks of contexts of one column, which runs along the upright axis.

    Args:
        context_set: The contexts, ``n x 1``.
        ax: Where to draw.
        limits: The ends of the upright axis, ``2``.
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
