"""Ask, tell, recommend; save and resume."""

from botorch_drbo.optimizer.loop import RobustOptimizer
from botorch_drbo.optimizer.trials import Trial

__all__ = ["RobustOptimizer", "Trial"]
