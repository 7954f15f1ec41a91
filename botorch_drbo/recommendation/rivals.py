"""A recommendation against the other decisions, at larger radii than its own."""

from __future__ import annotations

from dataclasses import replace

import torch
from botorch.models.model import Model
from torch import Tensor
from torch.nn.functional import pad

from botorch_drbo.adversaries import WorstCaseProblem
from botorch_drbo.adversaries.worst_case_problem import listed
from botorch_drbo.contexts import ContextSet
from botorch_drbo.posterior import marginal_posterior
from botorch_drbo.problem.feasible import feasible
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.recommendation.chance_constraint import ChanceConstraint
from botorch_drbo.recommendation.stability import Stability, overtaken
from botorch_drbo.search.candidates import without
from botorch_drbo.search.separation import SEPARATION

_MOST_RIVALS = 32


def rivals_of(
    x: Tensor,
    told: Tensor,
    space: SearchSpace,
    chance: ChanceConstraint | None,
    candidates: Tensor | None,
) -> tuple[Tensor, str]:
    r"""The decisions that a recommendation is compared with.

    Args:
        x: What is recommended, ``d_x``.
        told: Decisions that have an outcome, ``t x d_x``.
        space: The boxes of decisions and contexts.
        chance: What a decision has to meet; None for nothing.
        candidates: The decisions to choose from, ``m x d_x``; None for all.

    Returns:
        The others, ``m x d_x``, and where these come from, in words.
    """
    rivals = told.unique(dim=0)
    rivals = rivals[feasible(space, rivals)]
    lower, upper = space.bounds
    rivals = rivals[((rivals - x).abs() > SEPARATION * (upper - lower)).any(-1)]
    origin = f"told, more than {SEPARATION} of a side away; none nearer or untried"
    if candidates is not None:
        rivals, origin = without(candidates, x.unsqueeze(0)), "of the list"
    if chance is not None:  # others are no rivals
        rivals = rivals[chance.probability(rivals) >= chance.level]
        origin = f"that meet the constraints, {origin}"
    return rivals, origin


def against_rivals(
    problem: WorstCaseProblem,
    found: ContextSet,
    model: Model,
    x: Tensor,
    rivals: Tensor,
    origin: str,
    *,
    seed: int,
) -> Stability[Tensor] | None:
    r"""Compare a decision with others at larger and larger radii.

    On the contexts of the recommendation and a sample of the box: so the worst cases of
    the others are a little too good, and the radius is a little too small rather than
    too large. Of many rivals those with the best expectation and those with the best
    single worst outcome are compared, 32 in all.

    Args:
        problem: The ball, and where its adversary may go.
        found: The contexts of the worst case of the decision.
        model: Of ``[x, c]``.
        x: The decision, ``d_x``.
        rivals: The others, ``m x d_x``.
        origin: Where these come from, in words: "told", "of the list".
        seed: Decides the sample of the box.

    Returns:
        None if the ball has no radius or a radius of zero, or if there are no rivals.
    """
    if not len(rivals):
        return None
    ball = problem.ball(found.points)
    if not ball.has_radius or ball.radius.item() == 0.0:
        return None
    points, weights = found.points, found.weights
    if problem.box is not None and not problem.fills_box:
        sample = listed(problem, seed)[problem.contexts.num_points :]
        points = torch.cat([points, sample])
        weights, ball = pad(weights, (0, len(sample))), problem.ball(points)
    d = x.shape[-1] + points.shape[-1]
    columns = range(x.shape[-1], d)
    with torch.no_grad():
        view = marginal_posterior(model, columns).over(points)
        values = view.at(torch.cat([x.unsqueeze(0), rivals])).means()
    if values.ndim > 2:  # of an ensemble
        values = values.mean(-2)
    best = _most_dangerous(values[1:], weights)
    total = f"{len(rivals)} decision{'s' if len(rivals) > 1 else ''} {origin}"
    compared = total if len(best) == len(rivals) else f"{len(best)} of {total}"
    stability = overtaken(ball, weights, values[0], values[1:][best], rivals[best])
    return replace(stability, compared=compared, by_column=problem.by_column)


def _most_dangerous(values: Tensor, weights: Tensor) -> Tensor:
    """Rows ``k`` of ``m x n`` values, in order: best expected, and best lowest."""
    if len(values) <= _MOST_RIVALS:
        return torch.arange(len(values), device=values.device)
    half = _MOST_RIVALS // 2
    expected = (values @ weights.to(values)).topk(half).indices
    rest = values.amin(-1)
    rest[expected] = -torch.inf
    return torch.cat([expected, rest.topk(half).indices]).sort().values
