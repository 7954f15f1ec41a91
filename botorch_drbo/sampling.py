"""Random numbers: derived seeds, and the one place where Sobol points are drawn.

The same holds for torch's default dtype, in which Sobol points, priors and constraints
are made before they are brought to the dtype of the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

import numpy as np
import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

_TURN = RLock()  # blocks may be nested


def derive_seed(*entropy: int) -> int:
    """Mix non-negative integers to one seed, the same on every machine."""
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])


@contextmanager
def standard_dtype() -> Iterator[None]:
    """Run a block under float32 as default dtype, which torch has at its start.

    Many constants of BoTorch and GPyTorch are rounded to the default dtype before they
    meet data in float64: under another default a decision moves in its eighth digit.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def isolated_rng(seed: int, device: torch.device) -> Iterator[None]:
    """Run a block under a seed, the standard dtype and with gradients; leave no trace.

    Torch's generators and its default dtype are given back as they were. They belong to
    the process, as GPyTorch's settings do, so that threads take turns: without that a
    setting of one (that a prior is asked for) would stay for all. Fits and ascents need
    gradients, also where the user has switched them off.
    """
    devices = [device] if device.type == "cuda" else []
    with (
        _TURN,
        torch.random.fork_rng(devices=devices),
        standard_dtype(),
        torch.enable_grad(),
    ):
        # Not torch.manual_seed: that would reseed every CUDA device of the caller.
        torch.default_generator.manual_seed(seed)
        if devices:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


def sobol(
    num: int,
    dim: int,
    seed: int | None = None,
    *,
    skip: int = 0,
    scramble: bool = True,
) -> Tensor:
    """Sobol points in the unit cube, zero included.

    Shapes: returns ``num x dim``.
    """
    engine = SobolEngine(dim, scramble=scramble, seed=seed)
    if skip:
        return engine.fast_forward(skip).draw(num, dtype=torch.double)
    points = engine.draw(num, dtype=torch.double)
    # The engine rounds its first point to the default dtype, in float32 even up to one.
    points[0] = engine.shift.double() / 2**engine.MAXBIT
    return points


def sobol_inside(num: int, dim: int, seed: int | None) -> Tensor:
    """Scrambled Sobol points strictly inside the unit cube, for quantile functions.

    Shapes: returns ``num x dim``.
    """
    # The engine's points are multiples of 2^-30: take the centre of each cell.
    return sobol(num, dim, seed) + 2.0**-31


def sobol_in_box(
    num: int, bounds: Tensor, seed: int | None, *, skip: int = 0
) -> Tensor:
    """Scrambled Sobol points in a box.

    Shapes: ``bounds``: ``2 x d``, returns ``num x d``.
    """
    lower, upper = bounds
    unit = sobol(num, bounds.shape[-1], seed, skip=skip).to(bounds)
    return (lower + unit * (upper - lower)).clamp(lower, upper)
