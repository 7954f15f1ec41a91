"""Figures; every function accepts and returns matplotlib axes.

matplotlib comes with the extra ``benchmarks``. ``import botorch_drbo`` does not import
this module, so the library works without matplotlib.
"""

from botorch_drbo.plotting.history import plot_history, plot_regret
from botorch_drbo.plotting.model import (
    plot_importance,
    plot_model_check,
    plot_policy,
    plot_slice,
    plot_surface,
)
from botorch_drbo.plotting.robustness import (
    plot_compare,
    plot_price,
    plot_robustness_profile,
    plot_worst_case,
)
from botorch_drbo.plotting.scope import plot_scope
from botorch_drbo.plotting.style import COLOURS, DASHES, MARKERS

__all__ = [
    "COLOURS",
    "DASHES",
    "MARKERS",
    "plot_compare",
    "plot_history",
    "plot_importance",
    "plot_model_check",
    "plot_policy",
    "plot_price",
    "plot_regret",
    "plot_robustness_profile",
    "plot_scope",
    "plot_slice",
    "plot_surface",
    "plot_worst_case",
]
