"""A small problem, the loop that every test of the optimizer runs, and its journal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.recipes.base import says_how_to_model
from tests.products import FEW, one_model


class Toy:
    """Two decision variables, one context in other units, a smooth outcome."""

    bounds = torch.tensor([[0.0, -1.0], [1.0, 1.0]], dtype=torch.double)
    context_bounds = torch.tensor([[0.0], [10.0]], dtype=torch.double)
    budget = {"num_restarts": 2, "raw_samples": 32, "max_iterations": 8}

    def make(self, algorithm: str = "erbo", **options: Any) -> RobustOptimizer:
        """An optimizer with a small budget; three decisions of design."""
        few = FEW.get(algorithm, {})
        if algorithm != "wdrbo_exact" and not says_how_to_model(options):
            few = {**few, **one_model(algorithm)}
        settings = {"num_initial": 3, **self.budget, **few, **options}
        if algorithm == "regret_balancing":  # rewards in [0, 1], unless it is told
            settings = {"reward_range": (-2.0, 2.0), **settings}
        return RobustOptimizer(algorithm, self.bounds, self.context_bounds, **settings)

    def outcome(self, x: Tensor, c: Tensor) -> Tensor:
        """The outcome of ``m x 2`` decisions in ``m x 1`` contexts, ``m x 1``."""
        return -(x[:, :1] - c / 10.0).square() - x[:, 1:].square()

    def contexts(self, num: int) -> Tensor:
        """The first contexts of the world, ``num x 1``."""
        generator = torch.Generator().manual_seed(0)
        return 10.0 * torch.rand(num, 1, generator=generator, dtype=torch.double)

    def run(self, opt: RobustOptimizer, first: int, last: int) -> list[Tensor]:
        """Rounds ``first`` to ``last - 1``; returns what was asked."""
        stream, asked = self.contexts(last), []
        for i in range(first, last):
            x = opt.ask()
            asked.append(x)
            c = stream[i : i + 1]
            opt.tell(x, c, self.outcome(x, c))
        return asked


@pytest.fixture
def toy() -> Toy:
    return Toy()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a journal may be."""
    return tmp_path / "run.jsonl"


@pytest.fixture
def finished(toy: Toy, path: Path) -> Path:
    """A journal of a design of three rounds, and one decision pending."""
    with toy.make("random", journal=path) as opt:
        toy.run(opt, 0, 3)
        opt.ask()
    return path
