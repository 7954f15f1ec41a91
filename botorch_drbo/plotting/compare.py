"""The expected outcomes of several methods, distribution by distribution."""

from __future__ import annotations

from matplotlib.axes import Axes

from botorch_drbo.plotting.style import COLOURS, MARKERS, as_array, given_or_new
from botorch_drbo.recommendation.comparison import Comparison

_WIDTH = 0.6  # of the group of a world


def plot_compare(
    comparison: Comparison, ax: Axes | None = None, *, ylabel: str | None = None
) -> Axes:
    r"""Draw the expected outcome of each method under each distribution, with its
    interval.

    Args:
        comparison: From ``RobustOptimizer.compare`` or ``NamedOptimizer.compare``.
        ax: Where to draw; a new figure if None.
        ylabel: The label of the vertical axis, with its unit; None for the outcome.

    Returns:
        The axes.

    Example:
        >>> import torch
        >>> from botorch_drbo import RobustOptimizer
        >>> from botorch_drbo.plotting import plot_compare
        >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
        >>> few = {"num_restarts": 2, "raw_samples": 16}
        >>> opt = RobustOptimizer("erbo", unit, unit, **few)
        >>> x, c = torch.rand(2, 8, 1, dtype=torch.double)
        >>> opt.tell(x, 0.5 * c, -(x - c).square(), closes_pending=False)
        >>> ax = plot_compare(opt.compare(shifts={"c1": 0.3}))
        >>> [label.get_text() for label in ax.get_xticklabels()]
        ['as things are', 'c1 +0.3']
    """
    ax = given_or_new(ax)
    rest = 0.5 * (1.0 - comparison.level)
    middle = as_array(comparison.values.mean)
    low = as_array(comparison.values.quantile(rest))
    high = as_array(comparison.values.quantile(1.0 - rest))
    worlds, m = range(len(comparison.worlds)), len(comparison.methods)
    for i, method in enumerate(comparison.methods):
        offset = _WIDTH * ((i + 0.5) / m - 0.5)
        ax.errorbar(
            [world + offset for world in worlds],
            middle[i],
            yerr=(middle[i] - low[i], high[i] - middle[i]),
            color=COLOURS[i % len(COLOURS)],
            marker=MARKERS[i % len(MARKERS)],
            linestyle="none",
            capsize=3.0,
            label=method,
        )
    ax.set_xticks(list(worlds), comparison.worlds)
    ax.set_ylabel(f"expected {comparison.outcome}" if ylabel is None else ylabel)
    ax.legend(title=f"{comparison.level:.0%} intervals")
    return ax
