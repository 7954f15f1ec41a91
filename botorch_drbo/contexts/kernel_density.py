"""Gaussian kernel density estimates of the observed contexts."""

from __future__ import annotations

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo._validation import check_finite
from botorch_drbo.contexts.forgetting import effective_size, weighted_variance
from botorch_drbo.sampling import sobol_inside

# Smallest bandwidth of a kernel density estimate, in side lengths of the bounds. It
# matters for one observation, or for a coordinate that never changed: there Silverman's
# rule gives zero (or rounding noise), and a zero bandwidth is no density.
BANDWIDTH_FLOOR = 1e-4


def kernel_density_samples(
    observed: Tensor,
    weights: Tensor | None,
    num_samples: int,
    bounds: Tensor | None,
    bandwidth: float | Tensor | None,
    seed: int | None,
) -> Tensor:
    """Draw from a mixture of Gaussians, one at each observation.

    Args:
        observed: ``t x d_c``.
        weights: Of the observations, ``t``, summing to one; None for equal ones.
        num_samples: How many, ``n``.
        bounds: The box, ``2 x d_c``, or None.
        bandwidth: Standard deviations of the kernels; None for Silverman's rule.
        seed: Decides the draws.

    Returns:
        Samples ``n x d_c``, float64, not clipped.

    Raises:
        InputDataError: A bandwidth that is not positive, or no scale for one.
        BotorchTensorDimensionError: A bandwidth of another length.
    """
    t, dim = observed.shape
    # All in float64, whatever the user's dtype: see `sobol_inside`.
    centres = observed.detach().double()  # t x d_c
    if bandwidth is None:
        scale = silverman_bandwidth(centres, bounds, weights)
    else:
        scale = _check_bandwidth(bandwidth, dim).to(centres)
    base = sobol_inside(num_samples, dim + 1, seed).to(centres)  # n x (1 + d_c)
    if weights is None:
        kernel = (base[:, 0] * t).long()  # n
    else:
        cumulative = weights.double().cumsum(0)
        kernel = torch.searchsorted(cumulative, base[:, 0].contiguous())
    kernel = kernel.clamp_max(t - 1)
    return centres[kernel] + scale * torch.special.ndtri(base[:, 1:])  # n x d_c


def silverman_bandwidth(
    observed: Tensor, bounds: Tensor | None, weights: Tensor | None = None
) -> Tensor:
    """Return Silverman's bandwidth per dimension (``d_c``), not below the floor."""
    t, dim = observed.shape
    size = float(t)
    if weights is not None:
        spread = weighted_variance(observed, weights).sqrt()
        size = effective_size(weights)
    else:
        # The divisor t - 1 leaves 0 / 0 for one observation: no spread is known.
        spread = observed.std(0) if t > 1 else torch.zeros_like(observed[0])
    scale = (4.0 / (dim + 2) / size) ** (1.0 / (dim + 4)) * spread
    if bounds is not None:
        return torch.maximum(scale, BANDWIDTH_FLOOR * (bounds[1] - bounds[0]).to(scale))
    # Equal values can leave a spread of rounding size: compare with theirs.
    largest = observed.abs().amax(0)
    flat = (spread <= 1e-12 * largest).nonzero().flatten().tolist()
    if flat:
        raise InputDataError(
            f"`observed` ({t} rows) has no spread in columns {flat}, so there is no "
            "scale for a bandwidth. Pass `bounds` or `bandwidth`."
        )
    return scale


def _check_bandwidth(bandwidth: float | Tensor, dim: int) -> Tensor:
    """Return ``bandwidth`` as a positive ``d_c``-dim tensor."""
    if not isinstance(bandwidth, Tensor):
        bandwidth = torch.as_tensor(bandwidth, dtype=torch.double)
    check_finite(bandwidth, "bandwidth")
    if bandwidth.ndim > 1 or bandwidth.numel() not in (1, dim):
        raise BotorchTensorDimensionError(
            f"`bandwidth` must be a number or have {dim} entries, one per context "
            f"dimension, got shape {tuple(bandwidth.shape)}."
        )
    if (bandwidth <= 0).any():
        raise InputDataError(
            f"`bandwidth` must be positive, got {bandwidth.tolist()}. For the observed "
            "contexts themselves use `ContextSet.empirical`."
        )
    return bandwidth.detach().expand(dim)
