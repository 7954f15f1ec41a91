"""Named variables with kinds, units and constraints."""

from botorch_drbo.space.constraints import LinearConstraint
from botorch_drbo.space.recommendation import NamedRecommendation
from botorch_drbo.space.space import Space
from botorch_drbo.space.variables import (
    Category,
    Continuous,
    Integer,
    Log,
    Ordinal,
    Variable,
)

__all__ = [
    "Category",
    "Continuous",
    "Integer",
    "LinearConstraint",
    "Log",
    "NamedRecommendation",
    "Ordinal",
    "Space",
    "Variable",
]
