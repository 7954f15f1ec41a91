"""One learning run: contexts of the law of the data, decisions of one method."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from benchmarks.experiments.tournament.cases import (
    CASES,
    DRIFT,
    INITIAL,
    METHODS,
    Size,
)
from benchmarks.experiments.tournament.laws import LawOfTheData
from benchmarks.run.storage import Row, RunKey
from benchmarks.run.world import World
from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.recipes import Recipe


@dataclass(frozen=True)
class Task:
    """A learning run.

    Args:
        case: A key of ``CASES``.
        method: A key of ``METHODS``.
        seed: Picks contexts, noise, first decisions, and the function of a sample.
        size: How long it is, and how hard methods search.
    """

    case: str
    method: str
    seed: int
    size: Size
    resumable: ClassVar[bool] = False

    @property
    def key(self) -> RunKey:
        """Where its rows are kept."""
        return RunKey(self.case, self.method, self.seed)

    @property
    def rounds(self) -> int:
        """All outcomes, those of random decisions as well."""
        return self.size.contexts

    def header(self) -> dict[str, Any]:
        """What makes a run this run."""
        return {
            "case": self.case,
            "seed": self.seed,
            "contexts": self.size.contexts,
            "checkpoints": list(self.size.checkpoints),
            "algorithm": self.algorithm().to_dict(),
        }

    def algorithm(self) -> Recipe:
        """The recipe with its options."""
        function = CASES[self.case].make(self.seed)
        return METHODS[self.method].algorithm(function, self.size.search)

    def play(self, done: Sequence[Row]) -> Iterator[Row]:
        """A row for each outcome."""
        case, size = CASES[self.case], self.size
        function = case.make(self.seed)
        world = World(function, self.case, self.seed, salt="")
        drift = torch.zeros(size.contexts, function.d_c, dtype=torch.double)
        if case.drifts:
            data = LawOfTheData(function)
            progress = torch.linspace(0, DRIFT, size.contexts, dtype=torch.double)
            drift = progress[:, None] * data.deviation * data.adverse_direction()
        optimizer = RobustOptimizer(
            self.algorithm(),
            function.bounds,
            function.context_bounds,
            seed=self.seed,
            num_initial=0,  # the world gives the first decisions, to all the same
        )
        for step in range(size.contexts):
            asked, recommended = step >= INITIAL, None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of line searches that stop at a kink
                start = time.perf_counter()
                x = optimizer.ask() if asked else world.initial_decision(step)
                seconds = time.perf_counter() - start if asked else 0.0
                c = _clipped(world.context(step) + drift[step], function.context_bounds)
                y = world.outcome(step, x, c)
                optimizer.tell(x, c, y, closes_pending=asked)
                if step + 1 in size.checkpoints:
                    recommended = optimizer.recommend().x.tolist()
            yield {
                "iteration": step,
                "x": x.flatten().tolist(),
                "c": c.flatten().tolist(),
                "y": y.item(),
                "seconds": seconds,
                "recommended": recommended,
            }


def tasks_of(size: Size, methods: Sequence[str]) -> list[Task]:
    """All runs; seed by seed, so that a tournament stopped half way has whole seeds."""
    return [
        Task(case, method, seed, size)
        for seed in range(size.seeds)
        for case in size.cases
        for method in methods
        if CASES[case].d_c <= METHODS[method].max_contexts
    ]


def _clipped(c: Tensor, box: Tensor) -> Tensor:
    return c.clamp(box[0], box[1])
