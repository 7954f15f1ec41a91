"""The contexts seen: their weights, any set around them, a box around their mean."""

from __future__ import annotations

import copy
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, final

import torch

from botorch_drbo._validation import check_count, check_flag, option
from botorch_drbo.adversaries.base import (
    Adversary,
    FittedRound,
    SearchProblem,
    WorstCaseProblem,
)
from botorch_drbo.adversaries.wasserstein import WassersteinBall
from botorch_drbo.ambiguity import (
    AmbiguitySet,
    FullSimplex,
    NoAmbiguity,
    TotalVariation,
)
from botorch_drbo.ambiguity.base import check_ambiguity_set
from botorch_drbo.contexts import ContextSet
from botorch_drbo.problem.round import ColumnRadii, checked
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.sampling import sobol
from botorch_drbo.schedules import Schedule
from botorch_drbo.schedules.radii import as_size


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Empirical(Adversary):
    r"""The empirical distribution of the contexts, or ``reference``, and no other.

    .. math:: \min_q E_q[s(x, c)] = \sum_i p_i\, s(x, c_i)
    """

    believes_reference: ClassVar[bool] = True

    def worst_case_problem(self, state: FittedRound) -> WorstCaseProblem:
        r"""The distribution itself: the worst case is the expectation."""
        return WorstCaseProblem.of(state.contexts(), NoAmbiguity(), state.space)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class EveryDistribution(Adversary):
    r"""Every distribution on the contexts seen, or on those of ``reference``.

    .. math:: \min_i s(x, c_i)

    Contexts that are not among them do not count, also not for the worst case of a
    recommendation, unless each context column takes some values only: then every
    combination counts.
    """

    def worst_case_problem(self, state: FittedRound) -> WorstCaseProblem:
        r"""The lowest score of the contexts."""
        return WorstCaseProblem.of(state.contexts(), FullSimplex(), state.space)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class AroundContexts(Adversary):
    r"""Any ambiguity set around the contexts seen, or around ``reference``.

    .. math:: \min \{ E_q[s(x, c)] : d(p, q) \le \epsilon \}

    Args:
        ambiguity_set: The set; a copy is made for each radius. One that knows its
            contexts (the kernel matrix of ``MaximumMeanDiscrepancy``, the cost of
            ``Wasserstein``, most descriptions in cvxpy) needs a ``reference`` on those
            contexts. ``Wasserstein(radius)`` without a cost takes the distances of the
            contexts of each round, in their own units.
        radius: A number, or a schedule in the number of contexts seen; None for the
            radius of the set. Of ``Wasserstein`` without a cost also a radius for each
            column that may move, in its own units, as for ``WassersteinBall``.
        contexts_complete: Whether the contexts of the ``reference``, or else those
            seen, are all that there are. Otherwise a set that lets mass go anywhere
            (``TotalVariation``, ``ChiSquared``) has the whole box of contexts in reach:
            in the search a list that fills it, in the worst case of a recommendation
            every context. Contexts of which each column takes some values only
            (integers, ordinals, categories) are listed by the space itself.

    Raises:
        InputDataError: An option outside its range.
    """

    ambiguity_set: AmbiguitySet = field(default_factory=lambda: TotalVariation(0.2))
    radius: Schedule | float | ColumnRadii | None = None
    contexts_complete: bool = option(False, check_flag)

    def __post_init__(self) -> None:
        """Check the set, the radius and that completeness is a boolean."""
        super().__post_init__()
        check_ambiguity_set(self.ambiguity_set)
        if isinstance(self.radius, Mapping) and _takes_columns(self.ambiguity_set):
            object.__setattr__(self, "radius", checked(self.radius))
        elif self.radius is not None:
            as_size(self.radius)

    @property
    def fixed_radius(self) -> float | None:
        """The radius if it is a number: by default that of the set."""
        if self.radius is None:
            return self.ambiguity_set.radius.item()
        return super().fixed_radius

    def diameter(self, space: SearchSpace) -> float | None:
        r"""That of the set, or of a ball with a radius by column."""
        if isinstance(self.radius, Mapping):
            return WassersteinBall(radius=self.radius).diameter(space)
        return self.ambiguity_set.diameter

    def search_problem(self, state: FittedRound) -> SearchProblem:
        r"""The contexts seen, or the reference, others in reach, and the set."""
        contexts, ball = self.worst_case_problem(state).on_a_full_list(state.seed)
        return SearchProblem(contexts=contexts, ambiguity_set=ball)

    def worst_case_problem(self, state: FittedRound) -> WorstCaseProblem:
        r"""The same set, with the box in reach unless the contexts are complete."""
        if isinstance(self.radius, Mapping):
            problem = WassersteinBall(radius=self.radius).worst_case_problem(state)
            return replace(problem, box=None) if self.contexts_complete else problem
        if self.radius is None:
            ball = copy.deepcopy(self.ambiguity_set)
        else:
            ball = self.ambiguity_set.with_radius(state.radius(self.radius))
        return self.worst_case_problem_of(ball, state)

    def worst_case_problem_of(
        self, ambiguity_set: AmbiguitySet, state: FittedRound
    ) -> WorstCaseProblem:
        r"""Another set around the same contexts, and the same contexts in reach."""
        return WorstCaseProblem.of(
            state.contexts(),
            ambiguity_set,
            state.space,
            contexts_complete=self.contexts_complete,
        )


def _takes_columns(ambiguity_set: AmbiguitySet) -> bool:
    """Whether it is made of the distances of its contexts, whatever these are."""
    one = torch.zeros(1, 1, dtype=torch.double)
    is_exact = ambiguity_set.original() is ambiguity_set
    return is_exact and ambiguity_set.at(one) is not ambiguity_set


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class StandardDeviationBox(Adversary):
    r"""Every distribution on the box of one standard deviation around the mean.

    .. math:: \min \{ s(x, c) : m - \sigma_c \le c \le m + \sigma_c \}

    ``m`` and :math:`\sigma_c` are the mean and the population standard deviation, per
    coordinate, of the contexts seen so far, or of ``reference``. The box is clipped to
    the context bounds and filled with a Sobol set. (The public code of the two papers
    that compare with it samples ``[m - 3 s, m - s]`` instead.) For the worst case of a
    recommendation the lowest score in the box is searched for from that set.

    Args:
        num_contexts: Sobol points in the box; 1,024 in the experiments.
    """

    context_order: ClassVar[str | None] = (
        "its contexts are a mean and a standard deviation around it"
    )

    num_contexts: int = option(1024, check_count)

    def worst_case_problem(self, state: FittedRound) -> WorstCaseProblem:
        r"""Every distribution on the box."""
        space, data = state.space, state.contexts()
        lower, upper = space.context_bounds
        # A mean of equal numbers may differ from them by rounding.
        low = space.with_known((data.mean - data.std).clamp(lower, upper))
        high = space.with_known((data.mean + data.std).clamp(lower, upper))
        unit = sobol(self.num_contexts, space.d_c, state.seed).to(low)
        box = space.snap_contexts(torch.stack([low, high]))
        ends = box.tolist()
        return WorstCaseProblem(
            contexts=ContextSet(space.snap_contexts(low + unit * (high - low))),
            ball=lambda points: FullSimplex(),
            box=box,
            values={
                j: column[
                    bisect_left(column, ends[0][j]) : bisect_right(column, ends[1][j])
                ]
                for j, column in space.context_values.items()
            },
        )
