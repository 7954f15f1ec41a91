"""What is promised of a decision: its worst case, its rivals, its constraints."""

from botorch_drbo.recommendation.recommendation import Recommendation

__all__ = ["Recommendation"]
