"""A Wasserstein ball: the contexts moved a little, on average."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from botorch_drbo._validation import check_count
from botorch_drbo.adversaries.base import Adversary, FittedRound, SearchProblem
from botorch_drbo.adversaries.worst_case_problem import WorstCaseProblem
from botorch_drbo.ambiguity import Wasserstein
from botorch_drbo.contexts import ContextSet
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.sampling import sobol_in_box
from botorch_drbo.schedules import ContextRule, SpreadRadius, as_rule


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class WassersteinBall(Adversary):
    r"""All distributions that moving the contexts a little, on average, can reach.

    .. math:: \min \{ E_q[s(x, c)] : W_1(p, q) \le \epsilon_s \}

    ``p`` is the empirical distribution of the ``s`` contexts seen so far, or
    ``reference``. The search moves mass to the contexts of ``p`` and to a Sobol set;
    for the worst case of a recommendation the best contexts of the whole box are
    searched for. Two different categories are one apart, as far as the ends of the box
    of a number.

    Args:
        radius: A number, a schedule in the number of contexts seen, or a rule in the
            contexts themselves, by default by their spread; in units of the context box
            scaled to ``[0, 1]^d_c``.
        num_candidates: Sobol contexts in the context bounds to which probability may
            move, beside the contexts of the distribution itself.

    Raises:
        InputDataError: An option outside its range.
    """

    radius_unit: ClassVar[str] = "widths of `context_bounds`, whose diagonal it is"

    radius: ContextRule | float = SpreadRadius()
    num_candidates: int = 0

    def __post_init__(self) -> None:
        """Check that the radius is a rule and the number of candidates a count."""
        as_rule(self.radius, "radius")
        check_count(self.num_candidates, "num_candidates", minimum=0)

    def diameter(self, space: SearchSpace) -> float:
        r"""The diagonal of the context box, in its sides."""
        return space.context_diameter

    def search_problem(self, state: FittedRound) -> SearchProblem:
        r"""The data, the Sobol contexts with weight zero, and the ball."""
        space, data = state.space, state.contexts()
        num = self.num_candidates  # none cannot be drawn, only left out
        candidates = sobol_in_box(max(1, num), space.context_support, state.seed)[:num]
        if space.context_values:
            candidates = space.snap_contexts(candidates).unique(dim=0)
        contexts = ContextSet(
            torch.cat([data.points, candidates]),
            torch.cat([data.weights, torch.zeros_like(candidates[:, 0])]),
        )
        listed, ball = self._around(contexts, state).on_its_list()
        return SearchProblem(contexts=listed, ambiguity_set=ball)

    def worst_case_problem(self, state: FittedRound) -> WorstCaseProblem:
        r"""The ball around the data, with the whole box of contexts in reach."""
        return self._around(state.contexts(), state)

    def _around(self, contexts: ContextSet, state: FittedRound) -> WorstCaseProblem:
        space, radius = state.space, state.radius(self.radius)

        def ball(points: Tensor) -> Wasserstein:
            return Wasserstein(radius, space.context_distances(points, points))

        return WorstCaseProblem(
            contexts=contexts,
            ball=ball,
            between=space.context_distances,
            box=space.context_support,
            values=space.context_values,
            categories=tuple(space.context_categories),
        )
