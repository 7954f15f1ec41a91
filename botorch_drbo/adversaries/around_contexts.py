"""Any ambiguity set around the contexts seen, with a radius that may change."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import final

from botorch_drbo.adversaries.base import Adversary, FittedRound, SearchProblem
from botorch_drbo.adversaries.judge import Judge
from botorch_drbo.ambiguity import AmbiguitySet, TotalVariation
from botorch_drbo.ambiguity.base import check_ambiguity_set
from botorch_drbo.schedules import Schedule, as_schedule


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class AroundContexts(Adversary):
    r"""Any ambiguity set around the contexts seen, or around ``reference``.

    .. math:: \min \{ E_q[s(x, c)] : d(p, q) \le \epsilon \}

    Args:
        ambiguity_set: The set; a copy is made for each radius. One that knows its
            contexts (the kernel matrix of ``MaximumMeanDiscrepancy``, the cost of
            ``Wasserstein``, most descriptions in cvxpy) needs a ``reference`` on those
            contexts.
        radius: A number, or a schedule in the number of contexts seen; None for the
            radius of the set.

    Raises:
        InputDataError: An option outside its range.
    """

    ambiguity_set: AmbiguitySet = field(default_factory=lambda: TotalVariation(0.2))
    radius: Schedule | float | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        check_ambiguity_set(self.ambiguity_set)
        if self.radius is not None:
            as_schedule(self.radius, "radius")

    def search_problem(self, state: FittedRound) -> SearchProblem:
        r"""The contexts seen, or the reference, and the set."""
        return SearchProblem(
            contexts=state.contexts(), ambiguity_set=self.sized_set(state)
        )

    def judge(self, state: FittedRound) -> Judge:
        r"""The same, and the whole box of contexts if the set reaches it."""
        return Judge.of(state.contexts(), self.sized_set(state), state.space)

    def sized_set(self, state: FittedRound) -> AmbiguitySet:
        """The set with the radius of this round."""
        if self.radius is None:
            return copy.deepcopy(self.ambiguity_set)  # one round knows of no other
        return self.ambiguity_set.with_radius(state.radius(self.radius))
