"""The decisions that are made before there is a model to make them."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_drbo.algorithms import SearchSpace
from botorch_drbo.algorithms.candidates import best_rows
from botorch_drbo.optimizer.ledger import Ledger
from botorch_drbo.sampling import sobol_in_box


class InitialDesign:
    """A scrambled Sobol sequence in the box, or a shuffled list of decisions.

    Args:
        space: The boxes of decisions and contexts.
        num_initial: How many decisions the design has.
        seed: Decides the scrambling and the shuffling.
    """

    def __init__(self, space: SearchSpace, num_initial: int, seed: int) -> None:
        self._space = space
        self._num_initial = num_initial
        self._seed = seed

    def share(self, q: int, ledger: Ledger, *, needs_data: bool) -> int:
        """How many of the next ``q`` decisions belong to the design.

        Args:
            q: How many decisions are asked for.
            ledger: What has been asked and told so far.
            needs_data: Whether the algorithm can propose nothing before an outcome.
        """
        waits = needs_data and ledger.history.t == 0
        if waits and self._num_initial > 0:
            return q
        missing = self._num_initial - ledger.history.t - len(ledger.X_pending)
        return min(max(missing, 0), q)

    def points(self, first: int, num: int) -> Tensor:
        """Points ``first, first + 1, ...`` of the Sobol sequence, ``num x d_x``."""
        bounds = self._space.bounds
        if num == 0:
            return bounds[:0]
        return sobol_in_box(num, bounds, self._seed, skip=first)

    def rows(
        self, candidates: Tensor, first: int, num: int, X_pending: Tensor
    ) -> Tensor:
        """The same for a list: it is shuffled once, and ``first`` rows are behind."""
        m = len(candidates)
        generator = torch.Generator().manual_seed(self._seed)
        place = torch.randperm(m, generator=generator)
        wait = ((place - first) % m).to(candidates.device)
        return best_rows(candidates, -wait, num, X_pending)
