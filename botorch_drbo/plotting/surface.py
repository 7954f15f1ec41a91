"""A function over one decision and one context."""

from __future__ import annotations

from collections.abc import Callable

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from matplotlib.axes import Axes
from torch import Tensor

from botorch_drbo._validation import check_bounds, check_points
from botorch_drbo.contexts import ContextSet
from botorch_drbo.plotting.context_set import draw_atoms
from botorch_drbo.plotting.style import COLOURS, as_array, given_or_new


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
