"""The decisions of the initial design, before there is a model."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_drbo.optimizer.ledger import Ledger
from botorch_drbo.problem import SearchSpace
from botorch_drbo.problem.feasible import joint_sample, sample
from botorch_drbo.sampling import sobol_in_box
from botorch_drbo.search.candidates import best_rows, redrawn


class InitialDesign:
    """A scrambled Sobol sequence of what may be decided, or a shuffled list.

    Args:
        space: The boxes of decisions and contexts.
        num_initial: How many decisions the design has.
        seed: Decides the scrambling and the shuffling.
        joint: Whether the sequence is one of decisions and contexts together.
    """

    def __init__(
        self, space: SearchSpace, num_initial: int, seed: int, *, joint: bool = False
    ) -> None:
        self._space = space
        self._num_initial = num_initial
        self._seed = seed
        self._joint = joint

    def share(self, q: int, ledger: Ledger, *, needs_data: bool) -> int:
        """How many of the next ``q`` decisions belong to the design.

        Args:
            q: How many decisions are asked for.
            ledger: What has been asked and told so far.
            needs_data: Whether the algorithm can propose nothing before an outcome.
        """
        t = len(ledger.standing.complete)
        waits = needs_data and t == 0
        if waits and self._num_initial > 0:
            return q
        missing = self._num_initial - t - len(ledger.pending)
        return min(max(missing, 0), q)

    def points(self, first: int, num: int, failed: Tensor) -> Tensor:
        """Points ``first, first + 1, ...`` of the Sobol sequence, ``num x d_x``.

        Where values are few a point can be one that has ``failed``: it is replaced.
        """
        x = self._sequence(first, num)[:, : self._space.d_x]
        return redrawn(x, failed, self._space, self._seed, first)

    def contexts(self, x: Tensor, num_asked: int) -> Tensor:
        """The contexts that belong to decisions, ``q x d_x`` to ``q x d_c``.

        Args:
            x: Decisions.
            num_asked: How many points of the sequence may have been asked for.

        Returns:
            Contexts; rows of NaN for decisions whose context the world decides.
        """
        box, d_x = self._space.joint_bounds, self._space.d_x
        found = x.new_full((len(x), self._space.d_c), torch.nan).to(box)
        if self._joint and num_asked:
            pairs = self._sequence(0, num_asked)
            same = (x.to(box).unsqueeze(1) == pairs[:, :d_x]).all(-1)  # q x num_asked
            known = same.any(-1)
            found[known] = pairs[same[known].int().argmax(-1), d_x:]
        return found

    def chosen_contexts(self, first: int, num: int) -> Tensor:
        """Contexts ``num x d_c`` for a laboratory, of points ``first, first + 1, ...``.

        Those of the joint sequence, or of a sequence of their own.
        """
        if self._joint:
            return self._sequence(first, num)[:, self._space.d_x :]
        box = self._space.context_bounds
        if num == 0:
            return box[:0]
        points = sobol_in_box(num, box, self._seed + 1, skip=first)
        return self._space.snap_contexts(points)

    def _sequence(self, first: int, num: int) -> Tensor:
        """``num x d_x``, or ``num x (d_x + d_c)``."""
        space = self._space
        bounds = space.joint_bounds if self._joint else space.bounds
        if num == 0:
            return bounds[:0]
        if not space.is_box or (self._joint and space.context_values):
            points = joint_sample if self._joint else sample
            return points(space, first + num, self._seed)[first:]
        return sobol_in_box(num, bounds, self._seed, skip=first)

    def rows(self, candidates: Tensor, first: int, num: int, taken: Tensor) -> Tensor:
        """The same for a list: it is shuffled once, and ``first`` rows are behind."""
        m = len(candidates)
        generator = torch.Generator().manual_seed(self._seed)
        position = torch.randperm(m, generator=generator)
        wait = ((position - first) % m).to(candidates.device)
        return best_rows(candidates, -wait, num, taken)
