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
from botorch_drbo.kernels.correlations import (
    RationalQuadratic,
    correlation,
    correlation_and_slope,
    is_smooth,
)
from botorch_drbo.kernels.split_kernel import KernelSide, SplitComponent
from botorch_drbo.kernels.stationary import StationaryKernel, stationary_kernel

__all__ = [
    "ContextKernel",
    "KernelComponent",
    "KernelSide",
    "RationalQuadratic",
    "SplitComponent",
    "StationaryFactor",
    "StationaryKernel",
    "context_components",
    "correlation",
    "correlation_and_slope",
    "curvature_at_zero",
    "is_smooth",
    "kernel_components",
    "stationary_kernel",
]
