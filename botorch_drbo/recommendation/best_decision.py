"""The decision that is recommended: the best by the mean, within constraints."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import NamedTuple, cast

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models import ModelListGP
from botorch.models.model import Model
from torch import Tensor
from torch.nn.functional import pad

from botorch_drbo.acquisition import DistributionallyRobustUCB, RobustFeasibility
from botorch_drbo.acquisition.feasibility import (
    as_probability,
    log_probability_of_feasibility,
)
from botorch_drbo.adversaries import FittedRound, WorstCaseProblem
from botorch_drbo.adversaries.base import listed, with_unlisted
from botorch_drbo.ambiguity import RobustValue
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import UncertaintyObjective, WorstRegret
from botorch_drbo.problem.feasible import feasible, sample
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.recommendation.price import (
    GiveUp,
    PriceLimit,
    expectation_of,
)
from botorch_drbo.recommendation.worst_case import WorstAt, moments_at, worst_case
from botorch_drbo.search.candidates import best_of_many, score
from botorch_drbo.search.maximise import Effort, maximise, with_neighbours
from botorch_drbo.search.mixed_search import climb
from botorch_drbo.search.starts import InUnitCube, hills

_MARGIN = 0.02  # of the allowed risk: what an ascent and a list of contexts leave open
_MOST_CHANCE_ROUNDS = 4  # of a search on a longer list of contexts


@dataclass(frozen=True, eq=False)
class ChanceConstraint:
    r"""The robust probability of feasibility is to be at least ``level``.

    .. math:: \min_{q \in \mathcal U} \sum_i q_i\,
        P\big( g_j(x, c_i) \ge 0 \text{ for all } j \big) \ge 1 - \delta

    Decisions are searched on a list of contexts: those of the problem, and others that
    fill its box. What is found is judged over the whole box (see ``worst_case``).
    """

    # A Gaussian process of ``[x, c]`` for each constraint.
    model: ModelListGP
    # The reference distribution, the set around it, and the contexts to which mass may
    # move.
    problem: WorstCaseProblem
    # The list, ``m x d_c``, those of the problem first.
    points: Tensor
    # ``1 - delta``.
    level: float
    # Decides what fills the box.
    seed: int

    @classmethod
    def of(
        cls, model: ModelListGP, problem: WorstCaseProblem, level: float, seed: int
    ) -> ChanceConstraint:
        """With the contexts that fill the box of the problem."""
        return cls(model, problem, listed(problem, seed), level, seed)

    @property
    def aim(self) -> float:
        """The level at which a search aims, so that what it finds reaches ``level``."""
        return 1.0 - (1.0 - _MARGIN) * (1.0 - self.level)

    @cached_property
    def feasibility(self) -> RobustFeasibility:
        """The robust probability on the list."""
        reference = self.problem.contexts.weights
        # The contexts that fill the box have no reference weight: only the adversary
        # may use them.
        weights = pad(reference, (0, len(self.points) - len(reference)))
        return RobustFeasibility(
            self.model, ContextSet(self.points, weights), self.problem.ball(self.points)
        )

    def probability(self, X: Tensor) -> Tensor:
        """The robust probability on the list, ``n x d_x`` to ``n``, without a graph."""
        with torch.no_grad():
            return self.feasibility.probability(X)

    def allows(self, X: Tensor) -> Tensor:
        """Which decisions ``n x d_x`` reach the level on the list, ``n``."""
        return self.probability(X) >= self.level

    def excess(self, X: Tensor) -> Tensor:
        """By how much decisions ``n x d_x`` exceed the aim, on a log scale, ``n``."""
        # A log is smooth where probabilities are tiny, and its slope leads out of
        # there.
        return self.feasibility(X.unsqueeze(-2)) - math.log(self.aim)

    def robust_probability(self, x: Tensor) -> tuple[ContextSet, RobustValue]:
        """The worst case of the probability at ``x``, ``d_x``, over the whole box."""

        each = [moments_at(cast(Model, member), x) for member in self.model.models]

        def probability(contexts: Tensor) -> Tensor:  # m x d_c -> m, differentiable
            # Constraints are modelled independently: probabilities multiply.
            logs = [
                log_probability_of_feasibility(*moments(contexts)) for moments in each
            ]
            return torch.stack(logs).sum(0).exp()

        contexts, robust = worst_case(self.problem, probability, seed=self.seed)
        return contexts, as_probability(robust)

    def with_contexts(self, contexts: ContextSet) -> ChanceConstraint:
        """The same with further contexts on the list."""
        seen = len(self.problem.contexts.points)
        return replace(self, points=torch.cat([self.points, contexts.points[seen:]]))


def best_feasible(
    acqf: AcquisitionFunction,
    chance: ChanceConstraint,
    space: SearchSpace,
    rows: Tensor,
    effort: Effort | None,
) -> tuple[Tensor, Tensor, float]:
    """Find the best decision among those whose robust probability reaches the level.

    The constraint on the probability is one of the space, beside those that it has
    (SLSQP, from starts that meet it). The search knows a list of contexts. If the worst
    case over the box is worse than on the list, the contexts that make it so are added,
    and the search starts again, a few times; after that the next best of what it has
    found is judged, until one reaches the level or none is left.

    Shapes: ``acqf``: ``b x 1 x d_x``, ``rows``: ``m x d_x``, from which it starts; the
    rows alone are looked at without an ``effort``.
    """
    known = _searched(acqf, chance, space, rows, effort)
    # Exchange method (Blankenship and Falk 1976): the list of contexts bounds the
    # probability of each row from above. The best row is checked over the whole box,
    # and its worst contexts join the list.
    upper_bound = rows.new_ones(len(known.rows))
    for num in count(1):  # each round rules a row out, or is the last one
        probability = known.probability.minimum(upper_bound)
        # Rows that the list already rules out are no candidates.
        values = torch.where(probability >= chance.level, known.values, -torch.inf)
        reached = bool(values.isfinite().any())
        # If no row reaches the level, the surest one is the answer.
        best = values.argmax() if reached else probability.argmax()
        # Separation oracle: the probability over the box, which is never above that of
        # the list.
        contexts, robust = chance.robust_probability(known.rows[best])
        if not reached or robust.value >= chance.level:
            break
        # The row is ruled out even if the longer list should miss it, so the loop ends.
        upper_bound[best] = robust.value
        chance = chance.with_contexts(contexts)
        # A longer list moves the feasible set, so the search is repeated; later rounds
        # only judge what is known.
        if effort is not None and num < _MOST_CHANCE_ROUNDS:
            known = _searched(acqf, chance, space, rows, effort)
            upper_bound = rows.new_ones(len(known.rows))
        else:
            known = known._replace(probability=chance.probability(known.rows))
    x = known.rows[best]
    value = values[best] if reached else score(acqf, x.unsqueeze(0))[0]
    return x, value, robust.value.item()


class _Judged(NamedTuple):
    """Decisions, ``m x d_x``, and what they are worth."""

    rows: Tensor
    values: Tensor  # m; minus infinity where the level is not reached on the list
    probability: Tensor  # m

    @classmethod
    def of(
        cls, acqf: AcquisitionFunction, chance: ChanceConstraint, rows: Tensor
    ) -> _Judged:
        probability = chance.probability(rows)
        values = torch.full_like(probability, -torch.inf)
        reached = probability >= chance.level
        if reached.any():
            values[reached] = score(acqf, rows[reached])
        return cls(rows, values, probability)

    def joined(self, other: _Judged) -> _Judged:
        return _Judged(*map(torch.cat, zip(self, other, strict=True)))


def _searched(
    acqf: AcquisitionFunction,
    chance: ChanceConstraint,
    space: SearchSpace,
    rows: Tensor,
    effort: Effort | None,
) -> _Judged:
    """The rows, and what ascents find from the best of them."""
    if effort is None:
        return _Judged.of(acqf, chance, rows)

    def climbed(
        function: AcquisitionFunction, within: SearchSpace, known: Tensor, rank: Tensor
    ) -> _Judged:
        return _Judged.of(acqf, chance, _climbed(function, within, known, rank, effort))

    # Two ascents: for the probability if nothing reaches the aim, then for the value
    # among what does.
    known = _Judged.of(acqf, chance, rows)
    if not (known.probability >= chance.aim).any():
        known = known.joined(
            climbed(chance.feasibility, space, known.rows, known.probability)
        )
    reached = known.probability >= chance.aim
    if not reached.any():
        return known
    # The level is a nonlinear constraint like those of the user, on a log scale.
    constraints = (*space.nonlinear_inequality_constraints, chance.excess)
    within = replace(space, nonlinear_inequality_constraints=constraints)
    rank = torch.where(reached, known.values, -torch.inf)
    return known.joined(climbed(acqf, within, known.rows, rank))


def _climbed(
    function: AcquisitionFunction,
    space: SearchSpace,
    known: Tensor,
    rank: Tensor,
    effort: Effort,
) -> Tensor:
    """The ends of ascents from the hills of a list of finite rank, ``m``."""
    cube = InUnitCube(function, space.bounds)
    unit = cube.to_cube(known)
    top = hills(unit, rank, effort.num_restarts)
    top = top[rank[top].isfinite()]
    return climb(
        cube,
        space,
        unit[top].unsqueeze(-2),
        max_iterations=effort.max_iterations,
    )


_MAX_ROUNDS = 5  # of a search for a decision and for the contexts that hurt it
_GAIN = 1e-4  # of the range of the outcome: a lower worst case is not worth a round
_FEW = 4  # maxima that are climbed again in the next round


class Best(NamedTuple):
    """A decision, ``d_x``, and what is known of it."""

    x: Tensor
    value: Tensor
    # The robust probability of being feasible; None without constraints.
    probability: float | None = None
    # Where ascents ended, ``r x d_x``; None of a list and with constraints on outcomes.
    maxima: Tensor | None = None
    # The function on the last list of contexts, and the worst case over the box; None
    # where something else was maximised.
    searched: tuple[DistributionallyRobustUCB, WorstAt] | None = None


def best_by(
    acqf: AcquisitionFunction,
    state: FittedRound,
    chance: ChanceConstraint | None,
    candidates: Tensor | None,
    effort: Effort,
    limit: PriceLimit | None = None,
    near: Tensor | None = None,
) -> Best:
    """The best decision for a function, among those within a price.

    Shapes: ``acqf``: ``b x 1 x d_x``, ``candidates``: ``m x d_x``, ``near``: the maxima
    of a similar function, ``r x d_x``, from which it is climbed.
    """
    space = state.space
    if near is not None:
        best = score(acqf, near).topk(min(_FEW, len(near))).indices
        near = with_neighbours(near[best], space, effort.seed)
    # A list is evaluated, not searched.
    if candidates is not None:
        candidates = candidates if limit is None else limit.rows
        if chance is not None:
            return Best(*best_feasible(acqf, chance, space, candidates, None))
        values = score(acqf, candidates)
        return Best(candidates[values.argmax()], values.max())
    if limit is not None:
        rows, within = limit.rows, limit.within(space)
        if chance is not None:
            return Best(*best_feasible(acqf, chance, within, rows, effort))
        if near is not None:
            known = best_of_many(acqf, rows).unsqueeze(0)
            rows = torch.cat([known, near[limit.allows(near)]])
        ends = _climbed(acqf, within, rows, score(acqf, rows), effort)
        ends = ends[limit.allows(ends)]
        rows = torch.cat([rows, ends])
        values = score(acqf, rows)
        best = rows[values.argmax()]
        maxima = torch.cat([best.unsqueeze(0), ends])
        return Best(best, values.max(), maxima=maxima)
    # Rounding may have put what was told a little outside of the bounds.
    tried = state.history.X.unique(dim=0).clamp(space.bounds[0], space.bounds[1])
    tried = tried[feasible(space, tried)]
    if chance is not None:
        rows = torch.cat([tried, sample(space, effort.raw_samples, effort.seed)])
        return Best(*best_feasible(acqf, chance, space, rows, effort))
    # The best tried so far is a start too: the answer is not worse than it. Of more
    # than 16 it is the best of those that come first in the ranking.
    start = None
    if len(tried):
        start = best_of_many(acqf, tried).reshape(1, 1, -1)
    maxima, values = maximise(acqf, space, effort, start, near=near)
    # The search ran in the unit cube: the way back rounds.
    maxima = maxima.clamp(space.bounds[0], space.bounds[1])
    best = values.argmax()
    return Best(maxima[best], values[best], maxima=maxima)


def incumbents(
    objective: AcquisitionFunction, chance: ChanceConstraint, state: FittedRound
) -> tuple[FittedRound, float]:
    """What the next decision has to be better than.

    Those tried that are feasible by the models; while there are none the worst one
    tried, so that any decision is a gain and feasibility decides.
    """
    tried = state.history.X.unique(dim=0)
    values = score(objective, tried)
    # By the models, not by what was measured: one lucky trial does not make a decision
    # safe.
    reached = chance.allows(tried)
    if not reached.any():
        reached[values.argmin()] = True
    history = replace(state.history, baseline=tried[reached])
    return replace(state, history=history), values[reached].max().item()


def best_worst_case(
    state: FittedRound,
    problem: WorstCaseProblem,
    chance: ChanceConstraint | None,
    candidates: Tensor | None,
    effort: Effort,
    limit: PriceLimit | None = None,
) -> Best:
    """The decision with the best worst case of the posterior mean, within a price.

    A search needs a list of contexts. If the worst case over the box is lower than on
    the list, the contexts that make it so are added, and the search starts again.

    Shapes: ``candidates``: ``m x d_x``.
    """
    # The exchange method of semi-infinite programming (Blankenship and Falk 1976): a
    # maximum of a minimum over infinitely many contexts. Solve it for a list of
    # contexts, find the worst ones for that solution, add them, and solve again.
    full = contexts, ball = problem.on_a_full_list(state.seed)
    best = None
    for _ in range(_MAX_ROUNDS):
        objective = UncertaintyObjective(ball)
        acqf = DistributionallyRobustUCB(state.model, 0.0, contexts, objective)
        # Restricted problem: its value is an upper bound, since contexts are missing
        # from the minimum.
        # The next one is hardly lower: it is climbed from the last maxima.
        near = best and best.maxima
        best = best_by(acqf, state, chance, candidates, effort, limit, near)
        # Separation oracle: the worst distribution for this decision, over the whole
        # box.
        worst = WorstAt.of(problem, state.model, best.x, seed=state.seed, full=full)
        best = best._replace(searched=(acqf, worst))
        with torch.no_grad():
            values = worst.mean(contexts.points)
        # Both bounds agree up to a share of the range: no context off the list matters.
        if best.value - worst.robust.value <= _GAIN * (values.max() - values.min()):
            break
        # The cut joins the list, with reference weight zero.
        contexts = with_unlisted(contexts, worst.contexts.points)
        ball = problem.ball(contexts.points)
    assert best is not None
    return best


CRITERIA = ("worst_case", "regret")
"""What is best in the worst of all distributions."""


class Decided(NamedTuple):
    """A decision, and what was found on the way to it."""

    found: Best
    # What of the expectation could be given up; None for all of it.
    limit: PriceLimit | None
    # The best expectation in each distribution of a family, ``K``; None if not needed.
    best_in_each: Tensor | None = None

    def worst(self, problem: WorstCaseProblem, model: Model, *, seed: int) -> WorstAt:
        """The worst case of the decision, which a search for it has found already."""
        if self.found.searched is not None:
            return self.found.searched[1]
        return WorstAt.of(problem, model, self.found.x, seed=seed)


def decided(
    state: FittedRound,
    problem: WorstCaseProblem,
    chance: ChanceConstraint | None,
    candidates: Tensor | None,
    effort: Effort,
    own_objective: Callable[[FittedRound], AcquisitionFunction] | None,
    *,
    give_up: GiveUp | None,
    criterion: str,
    best: Tensor | None = None,
) -> Decided:
    """The best decision by a worst case, a largest regret or an objective of its own.

    With a price, among the decisions that give up no more of the expectation.

    Shapes: ``candidates``: ``m x d_x``; ``best``: ``d_x``, the decision with the best
    expectation if it is known.
    """
    limit = None
    if give_up is not None:
        reached = None
        if best is None:
            expectation = expectation_of(state, problem.contexts)
            found = best_by(expectation, state, chance, candidates, effort)
            best, reached = found.x, found.probability
        # Where nothing is feasible the surest decision is the answer, at any price.
        if chance is None or reached is None or reached >= chance.level:
            limit = PriceLimit.of(
                state,
                problem.contexts,
                best,
                give_up,
                candidates,
                effort,
                None if chance is None else chance.allows,
            )
    if criterion == "regret":
        assert problem.family is not None
        best_in_each = _best_in_each(state, problem, chance, candidates, effort)
        objective = WorstRegret(problem.family, best_in_each)
        acqf = DistributionallyRobustUCB(state.model, 0.0, problem.contexts, objective)
        found = best_by(acqf, state, chance, candidates, effort, limit)
        return Decided(found, limit, best_in_each)
    if own_objective is not None:
        acqf = own_objective(state)
        found = best_by(acqf, state, chance, candidates, effort, limit)
        if acqf._log:  # a share
            found = found._replace(value=found.value.exp())
            limit = limit and replace(limit, share=acqf)
        return Decided(found, limit)
    return Decided(
        best_worst_case(state, problem, chance, candidates, effort, limit), limit
    )


def _best_in_each(
    state: FittedRound,
    problem: WorstCaseProblem,
    chance: ChanceConstraint | None,
    candidates: Tensor | None,
    effort: Effort,
) -> Tensor:
    """The best expectation in each distribution of a finite family, ``K``."""
    assert problem.family is not None
    each = [
        expectation_of(state, ContextSet(problem.contexts.points, weights))
        for weights in problem.family.distributions
    ]
    best = [best_by(alone, state, chance, candidates, effort).value for alone in each]
    return torch.stack(best)
