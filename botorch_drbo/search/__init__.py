"""How a maximum is found: starts, ascents, lists of candidates, mixed variables."""

from botorch_drbo.search.maximise import Effort, maximise

__all__ = ["Effort", "maximise"]
