"""How much a decision is still worth when the distribution of the context shifts."""

from __future__ import annotations

from matplotlib.axes import Axes

from botorch_drbo.calibrate.profile import RobustnessProfile
from botorch_drbo.plotting.style import COLOURS, DASHES, as_array, given_or_new


def plot_robustness_profile(
    profile: RobustnessProfile,
    ax: Axes | None = None,
    *,
    label: str = "decision",
    other_label: str = "other decision",
    xlabel: str = "radius: how far the contexts may shift",
    ylabel: str = "worst-case value",
) -> Axes:
    r"""Draw the worst-case value of a decision against the radius.

    With it the other decision and the target, if the profile has them, and a dotted
    line at the radius from which the decision falls behind the one or below the other.

    Args:
        profile: From ``RobustOptimizer.robustness_profile`` or
            ``calibrate.robustness_profile``.
        ax: Where to draw; a new figure if None.
        label: The name of the decision in the legend.
        other_label: The name of the other decision.
        xlabel: The label of the radius, with its unit.
        ylabel: The label of the vertical axis, with its unit.

    Returns:
        The axes.

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import TotalVariation
        >>> from botorch_drbo.calibrate import robustness_profile
        >>> from botorch_drbo.plotting import plot_robustness_profile
        >>> f, p = torch.tensor([10.0, 0.0]), torch.tensor([0.5, 0.5])
        >>> radii = torch.linspace(0.0, 1.0, 11)
        >>> profile = robustness_profile(f, p, TotalVariation(0.0), radii, target=4.0)
        >>> ax = plot_robustness_profile(profile, label="bold")
        >>> [text.get_text() for text in ax.get_legend().get_texts()]
        ['bold', 'target', 'below the target from 0.2']
    """
    ax = given_or_new(ax)
    radii = as_array(profile.radii)
    ax.plot(radii, as_array(profile.values), color=COLOURS[0], lw=2.0, label=label)
    if profile.other_values is not None:
        ax.plot(
            radii,
            as_array(profile.other_values),
            color=COLOURS[1],
            linestyle=DASHES[1],
            lw=2.0,
            label=other_label,
        )
    if profile.target is not None:
        ax.axhline(
            profile.target,
            color=COLOURS[2],
            linestyle=DASHES[3],
            lw=1.5,
            label="target",
        )
    crossings = {
        "behind the other": (profile.falls_behind, COLOURS[1]),
        "below the target": (profile.falls_below, COLOURS[2]),
    }
    for what, (radius, colour) in crossings.items():
        if radius is not None:
            ax.axvline(
                radius,
                color=colour,
                linestyle=":",
                lw=1.5,
                label=f"{what} from {radius:.3g}",
            )
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.margins(x=0.01)
    ax.grid(alpha=0.25)
    ax.legend(frameon=False)
    return ax
