"""How posteriors are computed: in blocks of bounded memory, with exact settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from gpytorch.settings import min_variance
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

DEFAULT_MEMORY_BUDGET = 2**30
CACHE_BYTES = 2**22  # of the temporaries of one block: what a processor's cache holds

Rows = tuple[Tensor, ...]


def in_blocks(
    function: Callable[..., Rows],
    rows: Tensor,
    bytes_per_row: int,
    budget: int,
    *shared: Tensor,
    parts: int = 1,
) -> Rows:
    """Evaluate a function of rows, as many rows at a time as there is memory for.

    Where a gradient is wanted and one block does not do, each block is computed again
    in the backward pass instead of being kept.

    Shapes: ``function``: ``m x ...``, ``rows``: ``N x ...``.
    """
    leaves = (rows, *shared)
    graph = torch.is_grad_enabled() and any(leaf.requires_grad for leaf in leaves)
    if not graph and rows.device.type == "cpu":
        # Without a graph small blocks cost nothing.
        budget = min(budget, parts * CACHE_BYTES)
    blocks = rows.split(max(1, budget // max(1, bytes_per_row)))
    if len(blocks) == 1:
        return function(rows, *shared)
    if not graph:
        found = [function(block, *shared) for block in blocks]
    else:
        # GPyTorch fills caches at its first call; the second pass over a block must
        # meet the same state as the first, or the checkpoint refuses it.
        with torch.no_grad():
            function(rows[:1], *shared)
        found = [
            checkpoint(function, block, *shared, use_reentrant=False)
            for block in blocks
        ]
    return tuple(map(torch.cat, zip(*found, strict=True)))


class SmoothDistances(TorchFunctionMode):
    """Inside this context ``torch.cdist`` can be differentiated twice.

    GPyTorch's Matern kernels call ``torch.cdist``, for which PyTorch has a first
    derivative only; the gradient of a Lipschitz constant needs the second.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func is torch.cdist:
            difference = args[0].unsqueeze(-2) - args[1].unsqueeze(-3)
            return difference.square().sum(-1).clamp_min(1e-30).sqrt()
        return func(*args, **(kwargs or {}))


def any_variance() -> min_variance:
    """Inside it GPyTorch does not raise variances to 1e-10, which is in units of y."""
    return min_variance(0.0, 0.0, 0.0)
