"""Work on many rows in bounded memory."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
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
    r"""Evaluate a function of rows, as many rows at a time as there is memory for.

    Where a gradient is wanted and one block does not do, each block is computed again
    in the backward pass instead of being kept.

    Args:
        function: From rows ``m x ...``, and the shared tensors, to tensors of ``m``
            rows; a row of the result depends on its own row only.
        rows: ``N x ...``.
        bytes_per_row: The temporaries of one row, forward and backward.
        budget: Bytes for the temporaries of one block.
        shared: What all rows share, where a gradient in it may be wanted.
        parts: Of a row's temporaries, that are worked on one after another, such as
            sample paths: so large a share of them should fit the processor's cache.

    Returns:
        What ``function(rows, *shared)`` returns.
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
