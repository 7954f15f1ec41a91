"""Figures; every function accepts and returns matplotlib axes.

matplotlib comes with the extra ``benchmarks``. ``import botorch_drbo`` does not import
this module, so the library works without matplotlib.
"""

from botorch_drbo.plotting.compare import plot_compare
from botorch_drbo.plotting.history import plot_history
from botorch_drbo.plotting.model_check import plot_model_check
from botorch_drbo.plotting.policy import plot_policy
from botorch_drbo.plotting.profile import plot_robustness_profile
from botorch_drbo.plotting.regret import plot_regret
from botorch_drbo.plotting.style import COLOURS, DASHES, MARKERS
from botorch_drbo.plotting.surface import plot_surface
from botorch_drbo.plotting.worst_case import plot_worst_case

__all__ = [
    "COLOURS",
    "DASHES",
    "MARKERS",
    "plot_compare",
    "plot_history",
    "plot_model_check",
    "plot_policy",
    "plot_regret",
    "plot_robustness_profile",
    "plot_surface",
    "plot_worst_case",
]
