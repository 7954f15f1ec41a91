"""Seeds that are derived, never shared: the caller's generators are left alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def derive_seed(*entropy: int) -> int:
    r"""Mix non-negative integers to one seed, the same on every machine.

    Args:
        entropy: For instance the user's seed, a purpose and a counter.

    Returns:
        An integer in ``[0, 2**32)``.

    Example:
        >>> derive_seed(0, 1) == derive_seed(0, 1)
        True
        >>> derive_seed(0, 1) == derive_seed(1, 0)
        False
    """
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])


@contextmanager
def isolated_rng(seed: int, device: torch.device) -> Iterator[None]:
    """Run a block under a seed and give torch's generators back as they were.

    Args:
        seed: The seed within the block.
        device: Its generator is seeded too if it is a CUDA device.
    """
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        # Not torch.manual_seed: that would reseed every CUDA device of the caller.
        torch.default_generator.manual_seed(seed)
        if devices:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield
