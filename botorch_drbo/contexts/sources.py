"""Where context sets come from: laws, grids, density estimates, forgetting."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor
from torch.distributions import Distribution, Independent, MultivariateNormal

from botorch_drbo._validation import check_count, check_finite, check_positive
from botorch_drbo.sampling import sobol_inside


def law_samples(law: Distribution, num: int, seed: int | None) -> tuple[Tensor, Tensor]:
    """Sample a law.

    Shapes: returns ``n x d_c``.
    """
    # One discarded draw tells the law's dimension, dtype and device; not every law has
    # a mean or parameters to ask. With a seed it leaves the global state alone.
    probe = _draw(law, 1, seed=0)  # 1 x d_c
    samples = _quantile_samples(law, num, probe, seed)
    return _draw(law, num, seed) if samples is None else samples, probe


def _draw(law: Distribution, num: int, seed: int | None) -> Tensor:
    """Return ``num x d_c`` random draws; with a seed no global generator is changed."""
    # `fork_rng` restores the generators. They are seeded one by one, because
    # `torch.manual_seed` would also reach devices that are not initialised yet.
    cuda = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with torch.random.fork_rng(
        devices=list(cuda), enabled=seed is not None, device_type="cuda"
    ):
        if seed is not None:
            torch.default_generator.manual_seed(seed)
            for index in cuda:
                torch.cuda.default_generators[index].manual_seed(seed)
        draws = law.sample(torch.Size([num]))
    if draws.ndim == 1:
        draws = draws.unsqueeze(-1)
    if draws.ndim != 2:
        raise BotorchTensorDimensionError(
            "`distribution` must be the law of a scalar or of a `d_c`-dim vector, got "
            f"batch shape {tuple(law.batch_shape)} and event shape "
            f"{tuple(law.event_shape)}."
        )
    return draws


def _quantile_samples(
    law: Distribution, num: int, probe: Tensor, seed: int | None
) -> Tensor | None:
    """Return ``num x d_c`` quasi-random samples, or None if the law has no inverse."""
    while isinstance(law, Independent):
        law = law.base_dist
    # In float64, see `sobol_inside`; torch promotes float32 laws.
    base = sobol_inside(num, probe.shape[1], seed).to(probe.device)
    if isinstance(law, MultivariateNormal):
        return law.loc.double() + torch.special.ndtri(base) @ law.scale_tril.double().mT
    if law.event_shape:
        return None
    try:
        return law.icdf(base)
    except NotImplementedError:  # how torch says that a law has no quantile function
        return None


def grid_counts(num_points: int | Sequence[int], dim: int) -> list[int]:
    """The number of coordinates of each dimension, checked."""
    if isinstance(num_points, Sequence):
        if len(num_points) != dim:
            raise BotorchTensorDimensionError(
                f"`num_points` must have {dim} entries, one per column of `bounds`, or "
                f"be one number for all, got {list(num_points)}."
            )
        return [check_count(m, "num_points") for m in num_points]
    return [check_count(num_points, "num_points")] * dim


def product_grid(bounds: Tensor, counts: Sequence[int]) -> Tensor:
    """All combinations of equally spaced coordinates, the last column running fastest.

    Shapes: ``bounds``: ``2 x d_c``, returns ``prod(counts) x d_c``.
    """
    axes = [_axis(bounds[:, j], m) for j, m in enumerate(counts)]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).flatten(0, -2)


def nearest_on_grid(points: Tensor, bounds: Tensor, counts: Sequence[int]) -> Tensor:
    """Which grid point is nearest, one dimension at a time; ties go to the lower one.

    Shapes: ``points``: ``t x d_c``, ``bounds``: ``2 x d_c``.
    """
    flat = torch.zeros(len(points), dtype=torch.long, device=bounds.device)
    for j, m in enumerate(counts):
        position = (points[:, j] - bounds[0, j]) / (bounds[1, j] - bounds[0, j])
        index = (position * (m - 1) - 0.5).ceil().long().clamp(0, m - 1)
        flat = flat * m + index
    return flat


def _axis(bounds: Tensor, num: int) -> Tensor:
    """Return ``num`` equally spaced coordinates of one dimension, ends included."""
    if num == 1:
        return bounds.mean().unsqueeze(0)
    unit = torch.linspace(0.0, 1.0, num, dtype=bounds.dtype, device=bounds.device)
    return torch.lerp(bounds[0], bounds[1], unit)


def half_life_weights(num: int, half_life: float, like: Tensor) -> Tensor:
    """Weights :math:`2^{-a_i / h}` by age, scaled to sum to one."""
    h = check_positive(half_life, "half_life")
    age = torch.arange(num - 1, -1, -1, dtype=torch.double, device=like.device)
    weights = torch.exp2(-age / h)
    return (weights / weights.sum()).to(like)


def effective_size(weights: Tensor) -> float:
    r"""How many equal weights say as much: :math:`1 / \sum_i p_i^2`."""
    return 1.0 / weights.double().square().sum().item()


def weighted_variance(points: Tensor, weights: Tensor) -> Tensor:
    r"""The variance per column without bias, for weights that say how much to trust.

    .. math:: \frac{\sum_i p_i (c_i - \bar c)^2}{1 - \sum_i p_i^2}

    With equal weights this is the sample variance, divisor ``n - 1``.

    Shapes: ``points``: ``n x d``.
    """
    points, weights = points.double(), weights.double()
    squares = weights @ (points - weights @ points).square()
    rest = 1.0 - weights.square().sum()
    return torch.where(rest > 0, squares / rest.clamp_min(1e-300), 0.0)


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

    Shapes: ``observed``: ``t x d_c``, ``bounds``: ``2 x d_c``, returns ``n x d_c``.
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
        kernel = torch.searchsorted(weights.double().cumsum(0), base[:, 0].contiguous())
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
    flat = (spread <= 1e-12 * observed.abs().amax(0)).nonzero().flatten().tolist()
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
