"""Which radius? From data, from scenarios, from a budget; and what a radius costs."""

from botorch_drbo.calibrate.budget import choice_from, from_budget
from botorch_drbo.calibrate.data import from_data
from botorch_drbo.calibrate.profile import RobustnessProfile, robustness_profile
from botorch_drbo.calibrate.scenarios import from_scenarios, scaled, shifted

__all__ = [
    "RobustnessProfile",
    "choice_from",
    "from_budget",
    "from_data",
    "from_scenarios",
    "robustness_profile",
    "scaled",
    "shifted",
]
