"""Kernels: the one reader of GPyTorch's, as sums of products of stationary factors.

Knows no models and no contexts' meaning: columns, lengthscales, rows and slopes.
"""

from botorch_drbo.kernels.components import (
    KernelComponent,
    StationaryFactor,
    curvature_at_zero,
    kernel_components,
)
from botorch_drbo.kernels.context_kernel import ContextKernel, context_components
from botorch_drbo.kernels.correlations import correlation, correlation_and_slope
from botorch_drbo.kernels.split_kernel import KernelSide, SplitComponent
from botorch_drbo.kernels.stationary import (
    StationaryKernel,
    is_stationary,
    stationary_kernel,
)

__all__ = [
    "ContextKernel",
    "KernelComponent",
    "KernelSide",
    "SplitComponent",
    "StationaryFactor",
    "StationaryKernel",
    "context_components",
    "correlation",
    "correlation_and_slope",
    "curvature_at_zero",
    "is_stationary",
    "kernel_components",
    "stationary_kernel",
]
