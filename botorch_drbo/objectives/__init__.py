"""Objectives: how the scores over contexts become one number per decision."""

from botorch_drbo.objectives.by_name import NamedObjective
from botorch_drbo.objectives.satisficing import RobustSatisficing
from botorch_drbo.objectives.uncertainty import (
    Objective,
    UncertaintyObjective,
    WorstRegret,
)

__all__ = [
    "NamedObjective",
    "Objective",
    "RobustSatisficing",
    "UncertaintyObjective",
    "WorstRegret",
]
