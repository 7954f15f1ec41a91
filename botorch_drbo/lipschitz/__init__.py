"""Lipschitz constants of a score in the context: sampled from below, proved from above.

Takes any score function; knows nothing of the acquisition functions that use it.
"""

from botorch_drbo.lipschitz.bound import (
    kernel_lipschitz_constant,
    lipschitz_upper_bound,
)
from botorch_drbo.lipschitz.sampled import LipschitzConstant

__all__ = ["LipschitzConstant", "kernel_lipschitz_constant", "lipschitz_upper_bound"]
