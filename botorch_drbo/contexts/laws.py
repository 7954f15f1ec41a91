"""Samples of a known law of the contexts, quasi-random where it can be inverted."""

from __future__ import annotations

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor
from torch.distributions import Distribution, Independent, MultivariateNormal

from botorch_drbo.sampling import sobol_inside


def law_samples(law: Distribution, num: int, seed: int | None) -> tuple[Tensor, Tensor]:
    """Sample a law.

    Args:
        law: A torch distribution of a scalar or of a ``d_c``-dim vector.
        num: How many, ``n``.
        seed: Decides the draws; None follows torch's generators.

    Returns:
        Samples ``n x d_c``; and one draw ``1 x d_c``, which tells the dtype of the law.

    Raises:
        BotorchTensorDimensionError: A law of matrices, or a batch of laws of vectors.
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
        factor = law.scale_tril.double()
        return law.loc.double() + torch.special.ndtri(base) @ factor.mT
    if law.event_shape:
        return None
    try:
        return law.icdf(base)
    except NotImplementedError:  # how torch says that a law has no quantile function
        return None
