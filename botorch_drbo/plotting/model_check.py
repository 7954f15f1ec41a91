"""Outcomes against their predictions from other rows."""

from __future__ import annotations

from matplotlib.axes import Axes

from botorch_drbo.plotting.style import COLOURS, as_array, given_or_new
from botorch_drbo.recommendation import ModelCheck


def plot_model_check(
    check: ModelCheck, ax: Axes | None = None, *, outcome: str = "outcome"
) -> Axes:
    r"""Draw each outcome against its prediction from other rows.

    Dots on the diagonal are predicted exactly. Bars are 95% intervals; outcomes outside
    their interval, whose bars miss the diagonal, have another colour. The three rows
    with the largest errors are labelled with the numbers of their trials.

    Args:
        check: From ``RobustOptimizer.check`` or ``NamedOptimizer.check``.
        ax: Where to draw; a new figure if None.
        outcome: The name of the outcome with its unit, for the labels.

    Returns:
        The axes.

    Example:
        >>> import torch
        >>> from botorch_drbo import RobustOptimizer
        >>> from botorch_drbo.plotting import plot_model_check
        >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
        >>> opt = RobustOptimizer("erbo", unit, unit)
        >>> X, C = torch.rand(2, 12, 1).double()
        >>> opt.tell(X, C, -(X - C).square())
        >>> plot_model_check(opt.check(), outcome="yield (t)").get_ylabel()
        'yield (t)'
    """
    ax = given_or_new(ax)
    predicted, outcomes = as_array(check.predicted), as_array(check.outcomes)
    lower, upper = as_array(check.lower), as_array(check.upper)
    missed = (outcomes < lower) | (outcomes > upper)
    groups = {
        "inside the 95% interval": (~missed, COLOURS[0], "o"),
        "outside": (missed, COLOURS[1], "s"),
    }
    for label, (rows, colour, marker) in groups.items():
        ax.errorbar(
            predicted[rows],
            outcomes[rows],
            # The interval of the outcome, drawn where the prediction stands.
            xerr=[(predicted - lower)[rows], (upper - predicted)[rows]],
            fmt=marker,
            color=colour,
            markersize=4,
            linewidth=0.8,
            label=f"{label}: {int(rows.sum())}",
        )
    ends = [min(predicted.min(), outcomes.min()), max(predicted.max(), outcomes.max())]
    ax.plot(ends, ends, color="0.5", linewidth=1.0, zorder=0)
    for trial in check.worst:
        i = check.trials.index(trial)
        ax.annotate(
            str(trial),
            (predicted[i], outcomes[i]),
            xytext=(4, 4),
            textcoords="offset points",
        )
    ax.set(xlabel=f"{outcome}, predicted from the other rows", ylabel=outcome)
    ax.set_title(check.words(), fontsize="medium")
    ax.legend()  # on its own ground: bars are long
    return ax
