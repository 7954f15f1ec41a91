"""The contexts seen, with their weights, or with any weights at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from botorch_drbo.adversaries.base import Adversary, FittedRound
from botorch_drbo.adversaries.worst_case_problem import WorstCaseProblem
from botorch_drbo.ambiguity import FullSimplex, NoAmbiguity


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
