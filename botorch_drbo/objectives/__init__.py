"""Objectives: how the scores over contexts become one number per decision."""

from botorch_drbo.objectives.regret import WorstRegret
from botorch_drbo.objectives.satisficing import RobustSatisficing
from botorch_drbo.objectives.uncertainty import Objective, UncertaintyObjective

__all__ = ["Objective", "RobustSatisficing", "UncertaintyObjective", "WorstRegret"]
