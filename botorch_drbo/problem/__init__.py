"""The problem of a recipe: space, history, and what is known about a round."""

from botorch_drbo.problem.round import ConstraintData, History, Round
from botorch_drbo.problem.search_space import SearchSpace

__all__ = ["ConstraintData", "History", "Round", "SearchSpace"]
