"""Where the runs play: points by a rule without a generator, and an outcome."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from botorch_drbo import ContextSet, RobustOptimizer
from botorch_drbo.surrogate import FixedHyperparameters
from tests.transcripts.transcript import Answers

SHORT: dict[str, Any] = {"num_restarts": 1, "raw_samples": 8, "max_iterations": 5}
KNOWN = {
    **SHORT,
    "hyperparameters": FixedHyperparameters(lengthscale=0.4, noise_variance=1e-3),
}
ONE = {**SHORT, "surrogate": "botorch"}
BOUNDS = torch.tensor([[-1.0, 0.0], [3.0, 1.0]], dtype=torch.double)
CONTEXT_BOUNDS = torch.tensor([[10.0, 0.0], [12.0, 5.0]], dtype=torch.double)
FORECAST = ContextSet(
    torch.tensor([[10.2, 1.0], [10.9, 1.5], [11.8, 4.0]], dtype=torch.double),
    torch.tensor([0.5, 0.3, 0.2], dtype=torch.double),
)


def spread(rows: int, columns: int, shift: int = 0) -> Tensor:
    """Points of the unit cube, ``rows x columns``."""
    roots = torch.tensor([2.0, 3.0, 5.0, 7.0, 11.0, 13.0], dtype=torch.double).sqrt()
    counts = torch.arange(1 + shift, rows + 1 + shift, dtype=torch.double)
    return (counts.unsqueeze(-1) * roots[:columns]) % 1.0


def decisions(rows: int, shift: int = 0) -> Tensor:
    low, high = BOUNDS
    return low + spread(rows, 2, shift) * (high - low)


def contexts(rows: int, shift: int = 0) -> Tensor:
    """They drift: later ones lie higher."""
    low, high = CONTEXT_BOUNDS
    unit = spread(rows, 4, shift)[:, 2:]
    return low + (0.7 * unit + 0.03 * min(shift, 10)) * (high - low)


def outcome(x: Tensor, c: Tensor) -> Tensor:
    gap = x[:, :1] - 2.0 * (c[:, :1] - 10.5)
    return torch.cos(gap) - 0.3 * (x[:, 1:] - 0.1 * c[:, 1:]).square()


def optimizer(name: str, **options: Any) -> RobustOptimizer:
    settings = {"num_initial": 3, "seed": 7, **KNOWN, **options}
    return RobustOptimizer(name, BOUNDS, CONTEXT_BOUNDS, **settings)


def tell_some(opt: RobustOptimizer, rows: int = 7, **more: Any) -> RobustOptimizer:
    """Data from elsewhere."""
    x, c = decisions(rows), contexts(rows)
    opt.tell(x, c, outcome(x, c), closes_pending=False, **more)
    return opt


def informed(name: str, **options: Any) -> RobustOptimizer:
    return tell_some(optimizer(name, **options))


def rounds(opt: RobustOptimizer, num: int, begin: int = 0, **known: Any) -> Answers:
    """Ask, meet a context, tell."""
    for t in range(begin, begin + num):
        x, c = opt.ask(**known), contexts(1, t).to(opt.space.bounds)
        yield "ask", x
        opt.tell(x, c, outcome(x, c))
