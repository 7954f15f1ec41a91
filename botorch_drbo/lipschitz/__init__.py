"""Lipschitz constants of a score in the context: sampled lower, certified upper bounds.

The functions accept any score; they do not depend on acquisition functions.
"""

from botorch_drbo._deprecation import moved_names
from botorch_drbo.lipschitz.bound import (
    kernel_lipschitz_constant,
    lipschitz_upper_bound,
)

__all__ = ["kernel_lipschitz_constant", "lipschitz_upper_bound"]

# Public in version 0.2.0, of use to the library alone: by the module they live in.
_MOVED = {
    "LipschitzConstant": "botorch_drbo.lipschitz.sampled",
}
__getattr__ = moved_names(__name__, _MOVED)
