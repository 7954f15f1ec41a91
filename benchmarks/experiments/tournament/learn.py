"""One learning run: contexts of the law of the data, decisions of one method."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from benchmarks.experiments.tournament.cases import CASES, DRIFT, METHODS, Size
from benchmarks.run.storage import Row, RunKey
from benchmarks.run.world import World
from benchmarks.study.cases import INITIAL
from benchmarks.study.laws import LawOfTheData
from benchmarks.study.play import play
from botorch_drbo.problem import History
from botorch_drbo.recipes import Recipe
from botorch_drbo.sampling import derive_seed


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
    resumable: ClassVar[bool] = True

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
        recipe, space = self.algorithm(), case.space(function)
        drift = None
        if case.drifts:
            data = LawOfTheData(function)
            progress = torch.linspace(0, DRIFT, size.contexts, dtype=torch.double)
            drift = progress[:, None] * data.deviation * data.adverse_direction()

        # Seeds are those of an optimiser that is told the first decisions.
        def seed_of(step: int) -> int | None:
            asked = step - INITIAL
            return None if asked < 0 else derive_seed(self.seed, 1, asked)

        def recommended(row: Row, told: History) -> Row:
            if told.t not in size.checkpoints:
                return {"recommended": None}
            seed = derive_seed(self.seed, 2, max(0, told.t - INITIAL))
            x = recipe.recommend(told, space, seed=seed).x
            return {"recommended": x.tolist()}

        yield from play(
            recipe,
            space,
            World(function, self.case, self.seed, salt=""),
            done,
            size.contexts,
            seed_of=seed_of,
            after=recommended,
            drift=drift,
        )


def tasks_of(size: Size, methods: Sequence[str]) -> list[Task]:
    """All runs; seed by seed, so that a tournament stopped half way has whole seeds."""
    return [
        Task(case, method, seed, size)
        for seed in range(size.seeds)
        for case in size.cases
        for method in methods
        if CASES[case].d_c <= METHODS[method].max_contexts
    ]
