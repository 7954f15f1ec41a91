"""Lipschitz constants of a score in the context: sampled lower, certified upper bounds.

The functions accept any score; they do not depend on acquisition functions.
"""

from botorch_drbo.lipschitz.bound import (
    kernel_lipschitz_constant,
    lipschitz_upper_bound,
)

__all__ = ["kernel_lipschitz_constant", "lipschitz_upper_bound"]
