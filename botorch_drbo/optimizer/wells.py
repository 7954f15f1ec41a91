"""Wells: pairs of a decision and a context, where both are chosen."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from botorch_drbo.optimizer.trials import Trial
from botorch_drbo.problem import SearchSpace


def wells_of(trials: Iterable[Trial], space: SearchSpace) -> Tensor:
    """The pairs that trials are about, ``m x (d_x + d_c)``, withdrawn ones left out."""
    rows = []
    for trial in trials:
        c = next(
            (
                c
                for c in (trial.c, trial.chosen_context, trial.known_context)
                if c is not None
            ),
            None,
        )
        if trial.status != "withdrawn" and c is not None:
            pair = torch.cat([trial.x, c])
            rows += [pair] if pair.isfinite().all() else []
    return torch.stack(rows) if rows else space.joint_bounds[:0]
