"""Calibration of the radius: from data, from scenarios or from a budget."""

from botorch_drbo.calibrate.budget import choice_from, from_budget, robustness_profile
from botorch_drbo.calibrate.scenarios import from_data, from_scenarios, scaled, shifted

__all__ = [
    "choice_from",
    "from_budget",
    "from_data",
    "from_scenarios",
    "robustness_profile",
    "scaled",
    "shifted",
]
