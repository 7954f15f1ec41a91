"""A Wasserstein ball: the contexts moved a little, on average."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, final

import torch

from botorch_drbo._validation import check_count, option
from botorch_drbo.adversaries.base import (
    Adversary,
    FittedRound,
    GroundMetric,
    SearchProblem,
    WorstCaseProblem,
    on_fibres,
)
from botorch_drbo.ambiguity import Wasserstein
from botorch_drbo.contexts import ContextSet
from botorch_drbo.problem.round import checked, in_widths
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.sampling import sobol_in_box
from botorch_drbo.schedules import SpreadRadius
from botorch_drbo.schedules.radii import Radius, as_radius

_MOST_ON_A_FIBRE = 64  # Sobol contexts, where a column does not move


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

    With a radius by column, ``{"temp": 6, "weather": 0.1}``, the distance of each
    column is divided by its own radius, and the ball has the radius one: all of the
    mass may move by six degrees, or a tenth of it to another weather, or less of both.
    Columns that are not named do not move.

    Args:
        radius: A number, a schedule in the number of contexts seen, or a rule in the
            contexts themselves, in units of the context box scaled to ``[0, 1]^d_c``;
            ``"spread"`` for the default; or a dictionary with a radius for each column
            that may move, in its own units: for a category the share of cases in which
            it may change, for a logarithmic variable a factor. Columns without names
            are ``c1, c2, ...``. ``"sd"`` is a radius by column as well, one standard
            deviation of the contexts seen in each.
        num_candidates: Sobol contexts in the context bounds to which probability may
            move, beside the contexts of the distribution itself. Where a column does
            not move there are at least eight for each of its values.

    Raises:
        InputDataError: An option outside its range.
    """

    radius_unit: ClassVar[str] = "widths of `context_bounds`, whose diagonal it is"

    radius: Radius = SpreadRadius()
    num_candidates: int = option(0, partial(check_count, minimum=0))

    def __post_init__(self) -> None:
        """Check that the radius is one, and the number of candidates a count."""
        super().__post_init__()
        as_radius(self.radius)
        if isinstance(self.radius, Mapping):  # a copy: of plain numbers, and our own
            object.__setattr__(self, "radius", checked(self.radius))

    def diameter(self, space: SearchSpace) -> float | None:
        r"""The diagonal of the context box, in its sides or in the radius by column."""
        if isinstance(self.radius, Mapping):
            return GroundMetric(space, in_widths(self.radius, space)).diameter
        return None if self.radius == "sd" else space.context_diameter

    def ground_metric(self, state: FittedRound) -> GroundMetric:
        r"""The distance between contexts, in a round.

        Args:
            state: The round.
        """
        return GroundMetric(state.space, state.column_radii(self.radius))

    def search_problem(self, state: FittedRound) -> SearchProblem:
        r"""The data, the Sobol contexts with weight zero, and the ball."""
        space, data = state.space, state.contexts()
        fixed = self.ground_metric(state).fixed
        num = self.num_candidates  # none cannot be drawn, only left out
        drawn = max(_MOST_ON_A_FIBRE if fixed else 1, num)
        candidates = sobol_in_box(drawn, space.context_support, state.seed)
        if not fixed:
            candidates = candidates[:num]
        if space.context_values:
            candidates = space.snap_contexts(candidates).unique(dim=0)
        if fixed:
            candidates = on_fibres(data.points, candidates, fixed, num)
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
        metric = self.ground_metric(state)
        # Mass comes from contexts with weight alone: of thousands that fill the box
        # none needs a row of the cost.
        sources = int(contexts.weights.nonzero().max()) + 1

        return WorstCaseProblem(
            contexts=contexts,
            ball=lambda points: Wasserstein(
                radius, metric.distances(points[:sources], points)
            ),
            between=metric.distances,
            box=space.context_support,
            values=space.context_values,
            categories=tuple(space.context_categories),
            fixed=metric.fixed,
            within=metric.words(radius),
            by_column=metric.radii is not None,
        )
