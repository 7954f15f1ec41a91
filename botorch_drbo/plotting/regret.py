"""The regret of several algorithms over the iterations."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from botorch.exceptions.errors import InputDataError
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from botorch_drbo._validation import check_points
from botorch_drbo.plotting.style import COLOURS, as_array, curve_style, given_or_new


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
    ax = given_or_new(ax)
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
    ax.set(xlabel="iteration", ylabel=ylabel)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.margins(x=0.01)
    ax.grid(alpha=0.25)
    many = len(regret) > len(COLOURS)
    ax.legend(
        frameon=False,
        handlelength=3.0,  # long enough to show the dashes
        ncols=2 if many else 1,
        fontsize="x-small" if many else None,
    )
    return ax
