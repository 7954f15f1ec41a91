"""True properties of a function: the scale of its losses, the spread of outcomes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import torch
from torch import Tensor

from benchmarks.development.cases import CASES
from benchmarks.study.cases import Case
from benchmarks.study.laws import Ball, LawOfTheData
from benchmarks.study.truth import Scale, best_decision, truths
from botorch_drbo.sampling import sobol
from botorch_drbo.schedules import SpreadRadius
from botorch_drbo.test_functions import RobustTestFunction
from botorch_drbo.test_functions.base import find_optimum

NUM_CONTEXTS = 2**11  # of the true law, in all expectations
_NUM_GUESSES = 2**8  # decisions of a blind guess
_NUM_PAIRS = 2**6  # decisions, and contexts, whose outcomes give the spread
_TOLD = 15  # contexts that set the radius of the worst case


@dataclass(frozen=True, eq=False)
class Truth:
    """A function of the development set, known everywhere.

    Args:
        case: A row of ``CASES``.
        function: Its function under one seed.
    """

    case: Case
    function: RobustTestFunction = field(repr=False)

    def expected(self, X: Tensor) -> Tensor:
        """The expected outcomes of decisions ``M x d_x`` under the true law, ``M``."""
        return self.function.expected_value(X, num=NUM_CONTEXTS)

    def worst(self, X: Tensor) -> Tensor:
        """Their lowest expectations over the ball around the true law, ``M``."""
        return self.ball.value(self.function, X)

    @cached_property
    def ball(self) -> Ball:
        """The ball of ``wdrbo_exact`` around the true law, for 15 contexts."""
        scale = SpreadRadius().scale
        return LawOfTheData(self.function).ball(
            scale * math.sqrt(self.function.d_c / _TOLD)
        )

    @cached_property
    def guesses(self) -> Tensor:
        """Random decisions, ``M x d_x``."""
        return self.case.decisions(
            self.function, sobol(_NUM_GUESSES, self.function.d_x, 0)
        )

    @cached_property
    def best(self) -> Tensor:
        """The best decision under the true law, ``d_x``."""
        if not self.case.categories:
            return self.function.optimal_decision
        found = [
            part.whole(torch.tensor([find_optimum(part).decision]).double())
            for part in self._parts()
        ]
        X = torch.cat(found)
        return X[self.expected(X).argmax()]

    @cached_property
    def scale(self) -> Scale:
        """Of expected outcomes."""
        best = self.expected(self.best.unsqueeze(0))
        return Scale(best.item(), self.expected(self.guesses).mean().item())

    @cached_property
    def worst_scale(self) -> Scale:
        """Of worst cases."""
        best = max(
            best_decision(part.of(self.worst), part.bounds, part.start(self.best))[0]
            for part in self._parts()
        )
        return Scale(best, self.worst(self.guesses).mean().item())

    @cached_property
    def outcomes(self) -> Tensor:
        """Outcomes of random decisions in contexts of the true law, ascending."""
        X = self.guesses[:_NUM_PAIRS]
        C = self.function.true_contexts(_NUM_PAIRS)
        return self.function.table(X, C).flatten().sort().values

    @property
    def deviation(self) -> float:
        """Their standard deviation."""
        return self.outcomes.std().item()

    def _parts(self) -> list[_Part]:
        """The box of decisions, once for each combination of categories."""
        columns = self.case.categories
        return [
            _Part(self, dict(zip(columns, values, strict=True)))
            for values in product(*(range(count) for count in columns.values()))
        ]


class _Part:
    """The function in the columns that are no categories, these at given values.

    Args:
        truth: The function.
        values: The categories, by column.
    """

    def __init__(self, truth: Truth, values: dict[int, int]) -> None:
        self.truth, self.values = truth, values
        self._left = [j for j in range(truth.function.d_x) if j not in values]
        self.bounds = truth.function.bounds[:, self._left]

    def whole(self, X: Tensor) -> Tensor:
        """Decisions ``... x d`` with their categories, ``... x d_x``."""
        columns = {j: X[..., i] for i, j in enumerate(self._left)}
        fixed = {j: torch.full_like(X[..., 0], k) for j, k in self.values.items()}
        ordered = {**columns, **fixed}
        return torch.stack([ordered[j] for j in sorted(ordered)], dim=-1)

    def start(self, x: Tensor) -> Tensor:
        """A decision ``d_x`` without its categories, ``1 x d``."""
        return x[self._left].unsqueeze(0)

    def of(self, value: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        """A function of whole decisions, of the columns that are left."""
        return lambda X: value(self.whole(X))

    def expected_value(self, X: Tensor, num: int) -> Tensor:
        """As ``find_optimum`` asks for it."""
        return self.truth.function.expected_value(self.whole(X), num=num)


truth_of = truths(CASES, lambda case, seed: Truth(case, case.make(seed)))
"""What is true of a case under a seed."""
