"""Decisions drawn at random: the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from botorch_drbo.problem.feasible import sample
from botorch_drbo.recipes.fitted_state import FittedState
from botorch_drbo.recipes.robust_recipe import DelegatingRecipe, RobustRecipe
from botorch_drbo.recipes.table import TABLE
from botorch_drbo.search.candidates import best_rows, redrawn


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class RandomSearch(DelegatingRecipe):
    r"""``random``: decisions drawn uniformly from the box, or from the list.

    It needs no data. Its recommendation is that of ``erbo`` on the same history.

    Args:
        feasibility: The probability with which a recommendation must meet outcome
            constraints.

    Example:
        >>> from botorch_drbo.problem import History, SearchSpace
        >>> unit = torch.tensor([[0.0], [1.0]]).double()
        >>> nothing = torch.empty(0, 1).double()
        >>> history = History(X=nothing, C=nothing, Y=nothing, contexts=nothing)
        >>> RandomSearch().propose(history, SearchSpace(unit, unit), q=3).shape
        torch.Size([3, 1])
    """

    name: ClassVar[str] = "random"
    needs_data: ClassVar[bool] = False
    takes_constraints: ClassVar[bool] = True
    recommender: ClassVar[RobustRecipe] = TABLE["erbo"]

    feasibility: float = 0.95

    def _propose(
        self,
        state: FittedState,
        q: int,
        X_pending: Tensor | None,
        candidates: Tensor | None,
    ) -> Tensor:
        space, failed = state.space, state.failed
        # Runs under the seed; drawn on the CPU, so that every device sees the same.
        if candidates is not None:
            order = torch.randperm(len(candidates)).to(candidates.device)
            taken = failed
            if X_pending is not None:
                taken = torch.cat([taken, X_pending])
            return best_rows(candidates, order, q, taken)
        # One draw is skipped per pending decision: the same seed goes on, not again.
        skipped = 0 if X_pending is None else len(X_pending)
        if not space.is_box:
            x = sample(space, skipped + q, state.seed)[skipped:]
            return redrawn(x, failed, space, state.seed)
        unit = torch.rand(skipped + q, space.d_x, dtype=torch.double)[skipped:]
        unit = unit.to(space.bounds)
        return space.bounds[0] + unit * (space.bounds[1] - space.bounds[0])
