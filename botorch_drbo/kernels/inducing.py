"""Kernels of rank ``m`` from another kernel at inducing points."""

from __future__ import annotations

from gpytorch.kernels import InducingPointKernel, Kernel


def prior_kernel(kernel: Kernel) -> Kernel:
    r"""The kernel of the function itself, before any of its data are summed up.

    Args:
        kernel: Any kernel of GPyTorch.

    Returns:
        Of an ``InducingPointKernel`` the kernel that it approximates; any other one as
        it is.

    Example:
        >>> import torch
        >>> from gpytorch.kernels import RBFKernel
        >>> from gpytorch.likelihoods import GaussianLikelihood
        >>> rbf = RBFKernel()
        >>> few = InducingPointKernel(rbf, torch.rand(3, 1), GaussianLikelihood())
        >>> prior_kernel(few)
        RBFKernel(
          (raw_lengthscale_constraint): Positive()
        )
    """
    return kernel.base_kernel if isinstance(kernel, InducingPointKernel) else kernel
