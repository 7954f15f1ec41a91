"""Recommendations: the worst case of a decision, alternatives, constraints."""

from botorch_drbo.recommendation.comparison import Comparison
from botorch_drbo.recommendation.model_check import ModelCheck
from botorch_drbo.recommendation.promise import Promise
from botorch_drbo.recommendation.recommendation import Recommendation

__all__ = ["Comparison", "ModelCheck", "Promise", "Recommendation"]
