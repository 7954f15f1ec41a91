"""The decision that is recommended: the best by the posterior mean."""

from __future__ import annotations

from dataclasses import replace

import torch
from botorch.acquisition import AcquisitionFunction
from torch import Tensor

from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.adversaries import FittedRound, WorstCaseProblem
from botorch_drbo.adversaries.worst_case_problem import with_unlisted
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.problem.feasible import feasible
from botorch_drbo.recommendation.chance_constraint import (
    ChanceConstraint,
    best_feasible,
)
from botorch_drbo.recommendation.decision_moments import mean_at
from botorch_drbo.recommendation.worst_case import worst_case
from botorch_drbo.search.candidates import best_of_many, score
from botorch_drbo.search.maximise import Effort, maximise

_MAX_ROUNDS = 5  # of a search for a decision and for the contexts that hurt it
_GAIN = 1e-4  # of the range of the outcome: a lower worst case is not worth a round


def best_by(
    acqf: AcquisitionFunction,
    state: FittedRound,
    chance: ChanceConstraint | None,
    candidates: Tensor | None,
    effort: Effort,
) -> tuple[Tensor, Tensor, float | None]:
    r"""The best decision for a function.

    Args:
        acqf: Of ``b x 1 x d_x`` decisions.
        state: The round.
        chance: What the decision has to meet; None for nothing.
        candidates: The decisions to choose from, ``m x d_x``; None for all.
        effort: How hard a maximum is looked for.

    Returns:
        The decision, ``d_x``, its value, and the probability that it is feasible.
    """
    space = state.space
    # A list is evaluated, not searched.
    if candidates is not None:
        if chance is not None:
            return best_feasible(acqf, chance, space, candidates, None)
        values = score(acqf, candidates)
        return candidates[values.argmax()], values.max(), None
    # Rounding may have put what was told a little outside of the bounds.
    tried = state.history.X.unique(dim=0).clamp(space.bounds[0], space.bounds[1])
    tried = tried[feasible(space, tried)]
    if chance is not None:
        return best_feasible(acqf, chance, space, tried, effort)
    # The best tried so far is a start too: the answer is not worse than it. Of more
    # than 64 it is the best of those that come first in the ranking.
    start = None
    if len(tried):
        start = best_of_many(acqf, tried).reshape(1, 1, -1)
    maxima, values = maximise(acqf, space, effort, start)
    # The search ran in the unit cube: the way back rounds.
    maxima = maxima.clamp(space.bounds[0], space.bounds[1])
    best = values.argmax()
    return maxima[best], values[best], None


def incumbents(
    objective: AcquisitionFunction, chance: ChanceConstraint, state: FittedRound
) -> tuple[FittedRound, float]:
    r"""What the next decision has to be better than.

    Those tried that are feasible by the models; while there are none the worst one
    tried, so that any decision is a gain and feasibility decides.

    Args:
        objective: Of the posterior mean.
        chance: What a decision has to meet.
        state: The round, with at least one outcome.

    Returns:
        The round with them as baseline, and the best value among them.
    """
    tried = state.history.X.unique(dim=0)
    values = score(objective, tried)
    # By the models, not by what was measured: one lucky trial does not make a decision
    # safe.
    reached = chance.probability(tried) >= chance.level
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
) -> tuple[Tensor, Tensor, float | None, ContextSet]:
    r"""The decision with the best worst case of the posterior mean.

    A search needs a list of contexts. If the worst case over the box is lower than on
    the list, the contexts that make it so are added, and the search starts again.

    Args:
        state: The round.
        problem: What the worst case is a minimum over.
        chance: What the decision has to meet; None for nothing.
        candidates: The decisions to choose from, ``m x d_x``; None for all.
        effort: How hard a maximum is looked for.

    Returns:
        The decision, ``d_x``, its value, the probability that it meets the
        constraints, and the contexts on which it has the best worst case.
    """
    # The exchange method of semi-infinite programming (Blankenship and Falk 1976): a
    # maximum of a minimum over infinitely many contexts. Solve it for a list of
    # contexts, find the worst ones for that solution, add them, and solve again.
    contexts, ball = problem.on_a_full_list(state.seed)
    for _ in range(_MAX_ROUNDS):
        objective = UncertaintyObjective(ball)
        acqf = DistributionallyRobustUCB(state.model, 0.0, contexts, objective)
        # Restricted problem: its value is an upper bound, since contexts are missing
        # from the minimum.
        x, value, reached = best_by(acqf, state, chance, candidates, effort)
        mean = mean_at(state.model, x)
        with torch.no_grad():
            values = mean(contexts.points)
        # Separation oracle: the worst distribution for this decision, over the whole
        # box.
        harder, robust = worst_case(problem, mean, seed=state.seed)
        # Both bounds agree up to a share of the range: no context off the list matters.
        if value - robust.value <= _GAIN * (values.max() - values.min()):
            break
        # The cut joins the list, with reference weight zero.
        contexts = with_unlisted(contexts, harder.points)
        ball = problem.ball(contexts.points)
    return x, value, reached, contexts
