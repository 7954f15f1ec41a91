"""A kernel density estimate of the contexts, and a ball around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from torch import Tensor

from botorch_drbo._validation import check_count, option
from botorch_drbo.adversaries.base import Adversary, FittedRound, SearchProblem
from botorch_drbo.adversaries.worst_case_problem import WorstCaseProblem
from botorch_drbo.ambiguity import NoAmbiguity, TotalVariation
from botorch_drbo.contexts import ContextSet
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.sampling import sobol_in_box
from botorch_drbo.schedules import KernelDensityRadius, Schedule
from botorch_drbo.schedules.radius import as_size

_DENSITY = "it smooths the contexts seen to a density"


def _check_size(radius: Schedule | float | None, name: str) -> None:
    if radius is not None:
        as_size(radius, name)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class KernelDensity(Adversary):
    r"""A kernel density estimate of the contexts, and no other distribution.

    .. math:: \frac{1}{n} \sum_{i=1}^n s(x, \tilde c_i), \qquad
        \tilde c_i \sim \hat p_{\mathrm{KDE}}

    with Silverman's bandwidth and ``n`` quasi-random draws, made anew at each call.
    With ``reference`` there is nothing to estimate.

    Args:
        num_contexts: ``n``, the number of draws from the density estimate.
    """

    context_order: ClassVar[str | None] = _DENSITY
    believes_reference: ClassVar[bool] = True

    num_contexts: int = option(1024, check_count)

    def worst_case_problem(self, state: FittedRound) -> WorstCaseProblem:
        r"""The density estimate, taken at its word."""
        contexts = density_estimate(state, self.num_contexts)
        return WorstCaseProblem.of(contexts, NoAmbiguity(), state.space)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class KernelDensityBall(Adversary):
    r"""A total variation ball around a kernel density estimate of the contexts.

    .. math:: \min \{ E_q[s(x, c)] : \| q - \hat p_{\mathrm{KDE}} \|_1 \le \epsilon_s \}

    The adversary takes probability from the draws with the highest scores, and may put
    it anywhere in the context bounds: on the lowest score of the draws and of a Sobol
    set beside them. For the worst case of a recommendation the lowest score of the box
    is searched for from there.

    Args:
        radius: A number, or a schedule in the number of contexts seen; None for the
            paper's ``KernelDensityRadius``, ``s^(-2 / (4 + d_c))``.
        num_contexts: Draws from the density estimate.
        num_outside: Sobol contexts in the context bounds, where the lowest score is
            looked for beside the draws.
    """

    context_order: ClassVar[str | None] = _DENSITY
    radius_unit: ClassVar[str] = "total variation, twice the share of mass that moves"

    radius: Schedule | float | None = option(None, _check_size)
    num_contexts: int = option(1024, check_count)
    num_outside: int = option(1024, check_count)

    def diameter(self, space: SearchSpace) -> float:
        r"""That of total variation."""
        return density_ball(0.0).diameter

    def search_problem(self, state: FittedRound) -> SearchProblem:
        r"""The draws and the ball; the Sobol contexts outside."""
        return SearchProblem(
            contexts=density_estimate(state, self.num_contexts),
            ambiguity_set=self._ball(state),
            outside=self._outside(state),
        )

    def worst_case_problem(self, state: FittedRound) -> WorstCaseProblem:
        r"""The ball around the draws, with the whole box of contexts in reach."""
        contexts = self.search_problem(state).listed()
        return WorstCaseProblem.of(contexts, self._ball(state), state.space)

    def _ball(self, state: FittedRound) -> TotalVariation:
        schedule = KernelDensityRadius(state.space.d_c)
        return density_ball(
            state.radius(schedule if self.radius is None else self.radius)
        )

    def _outside(self, state: FittedRound) -> Tensor:
        space = state.space
        outside = sobol_in_box(self.num_outside, space.context_support, state.seed)
        return space.snap_contexts(outside)


def density_ball(radius: float | Tensor) -> TotalVariation:
    """The ball of DRBO-KDE around a density estimate."""
    return TotalVariation(radius)


def density_estimate(state: FittedRound, num_contexts: int) -> ContextSet:
    """Draws from the density estimate, or the reference if there is one."""
    seen, space = state.contexts(), state.space
    if state.reference is not None:
        return seen
    density = ContextSet.kernel_density(
        seen.points if state.half_life is None else seen,
        num_samples=num_contexts,
        bounds=space.context_bounds,
        seed=state.seed,
    )
    if not space.context_values:
        return density
    return ContextSet(space.snap_contexts(density.points), density.weights)
