"""Work on many rows in bounded memory."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

DEFAULT_MEMORY_BUDGET = 2**30
CACHE_BYTES = 2**23  # of the temporaries of one block: what a processor's cache holds

Rows = tuple[Tensor, ...]


def in_blocks(
    function: Callable[[Tensor], Rows], rows: Tensor, bytes_per_row: int, budget: int
) -> Rows:
    r"""Evaluate a function of rows, as many rows at a time as there is memory for.

    Where a gradient is wanted and one block does not do, each block is computed again
    in the backward pass instead of being kept.

    Args:
        function: From rows ``m x ...`` to tensors of ``m`` rows; a row of the result
            depends on its own row only.
        rows: ``N x ...``.
        bytes_per_row: The temporaries of one row, forward and backward.
        budget: Bytes for the temporaries of one block.

    Returns:
        What ``function(rows)`` returns.
    """
    graph = torch.is_grad_enabled() and rows.requires_grad
    if not graph and rows.device.type == "cpu":
        budget = min(budget, CACHE_BYTES)  # without a graph small blocks cost nothing
    blocks = rows.split(max(1, budget // max(1, bytes_per_row)))
    if len(blocks) == 1:
        return function(rows)
    if not graph:
        parts = [function(block) for block in blocks]
    else:
        # GPyTorch fills caches at its first call; the second pass over a block must
        # meet the same state as the first, or the checkpoint refuses it.
        with torch.no_grad():
            function(rows[:1])
        parts = [checkpoint(function, block, use_reentrant=False) for block in blocks]
    return tuple(map(torch.cat, zip(*parts, strict=True)))
