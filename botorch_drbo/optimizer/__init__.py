"""Ask, tell, recommend; save and resume."""

from botorch_drbo.optimizer.loop import RobustOptimizer

__all__ = ["RobustOptimizer"]
