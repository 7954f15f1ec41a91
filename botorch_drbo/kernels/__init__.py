"""Reads GPyTorch's kernels as sums of products of stationary factors.

It handles columns, lengthscales, rows and slopes, without models or contexts.
"""

from botorch_drbo._deprecation import moved_names

__all__: list[str] = []

# Public in version 0.2.0, of use to the library alone: by the module they live in.
_MOVED = {
    "ContextKernel": "botorch_drbo.kernels.context_kernel",
    "KernelComponent": "botorch_drbo.kernels.components",
    "KernelSide": "botorch_drbo.kernels.split_kernel",
    "SplitComponent": "botorch_drbo.kernels.split_kernel",
    "StationaryFactor": "botorch_drbo.kernels.components",
    "StationaryKernel": "botorch_drbo.kernels.stationary",
    "context_components": "botorch_drbo.kernels.context_kernel",
    "correlation": "botorch_drbo.kernels.correlations",
    "correlation_and_slope": "botorch_drbo.kernels.correlations",
    "curvature_at_zero": "botorch_drbo.kernels.components",
    "kernel_components": "botorch_drbo.kernels.components",
    "stationary_kernel": "botorch_drbo.kernels.stationary",
}
__getattr__ = moved_names(__name__, _MOVED)
