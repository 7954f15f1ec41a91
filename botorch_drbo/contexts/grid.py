"""Product grids over a box of contexts."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_drbo._validation import check_count


def grid_counts(num_points: int | Sequence[int], dim: int) -> list[int]:
    """The number of coordinates of each dimension, checked.

    Args:
        num_points: One number for all, or ``dim`` numbers.
        dim: The columns of the grid.

    Returns:
        ``dim`` counts.

    Raises:
        BotorchTensorDimensionError: Another number of entries.
        InputDataError: An entry that is not a positive integer.
    """
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

    Args:
        bounds: ``2 x d_c``.
        counts: Coordinates of each column.

    Returns:
        ``prod(counts) x d_c``.
    """
    axes = [_axis(bounds[:, j], m) for j, m in enumerate(counts)]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).flatten(0, -2)


def nearest_on_grid(points: Tensor, bounds: Tensor, counts: Sequence[int]) -> Tensor:
    """Which grid point is nearest, one dimension at a time; ties go to the lower one.

    Args:
        points: ``t x d_c``, inside the bounds.
        bounds: ``2 x d_c``.
        counts: Coordinates of each column.

    Returns:
        Row numbers of ``product_grid(bounds, counts)``, ``t``.
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
