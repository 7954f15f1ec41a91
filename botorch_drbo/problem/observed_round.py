"""The state of a round for a recipe: observations, boxes, seed."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from botorch_drbo.problem.history import History
from botorch_drbo.problem.search_space import SearchSpace


@dataclass(frozen=True, eq=False)
class ObservedRound:
    r"""One round before anything is fitted.

    Attributes:
        history: What has been observed, to be maximised.
        space: The boxes of decisions and contexts.
        seed: Determines all random draws.
    """

    history: History
    space: SearchSpace
    seed: int = 0

    @property
    def failed(self) -> Tensor:
        """Decisions that are not proposed while there are others, ``m x d_x``."""
        failed = self.history.failed
        return self.space.bounds[:0] if failed is None else failed
