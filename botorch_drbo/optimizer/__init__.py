"""Ask, tell, recommend; save and resume."""

from botorch_drbo.optimizer.named import NamedOptimizer
from botorch_drbo.optimizer.robust import RobustOptimizer
from botorch_drbo.optimizer.trials import Trial

__all__ = ["NamedOptimizer", "RobustOptimizer", "Trial"]
