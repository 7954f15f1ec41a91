"""Quasi-random points: the one place where Sobol sequences are drawn."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine


def sobol(
    num: int,
    dim: int,
    seed: int | None = None,
    *,
    skip: int = 0,
    scramble: bool = True,
) -> Tensor:
    """Sobol points in the unit cube, zero included.

    Args:
        num: How many; powers of two are best.
        dim: The columns.
        seed: The seed of the scrambling; None to draw it from torch's generator, which
            is otherwise not used.
        skip: How many points of the sequence are left out at its start.
        scramble: False for the sequence itself, which begins at zero.

    Returns:
        ``num x dim``, float64, on the CPU: multiples of ``2^-30``.
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

    Args:
        num: How many; powers of two are best.
        dim: The columns.
        seed: As for ``sobol``.

    Returns:
        ``num x dim``, float64, on the CPU. Keep them in float64: in float32 a
        coordinate near one rounds to one, and its normal quantile is infinite.
    """
    # The engine's points are multiples of 2^-30: take the centre of each cell.
    return sobol(num, dim, seed) + 2.0**-31


def sobol_in_box(
    num: int, bounds: Tensor, seed: int | None, *, skip: int = 0
) -> Tensor:
    """Scrambled Sobol points in a box.

    Args:
        num: How many; powers of two are best.
        bounds: The box, ``2 x d``.
        seed: As for ``sobol``.
        skip: How many points of the sequence are left out at its start.

    Returns:
        ``num x d``, in the dtype and on the device of ``bounds``, never outside it.
    """
    lower, upper = bounds
    unit = sobol(num, bounds.shape[-1], seed, skip=skip).to(bounds)
    return (lower + unit * (upper - lower)).clamp(lower, upper)
