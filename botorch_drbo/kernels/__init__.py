"""Reads GPyTorch's kernels as sums of products of stationary factors.

It handles columns, lengthscales, rows and slopes, without models or contexts.
"""

__all__: list[str] = []
