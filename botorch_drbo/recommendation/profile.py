"""The worst case of a decision against the radius, with a box of contexts in reach."""

from __future__ import annotations

from dataclasses import replace

import torch
from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model
from torch import Tensor
from torch.nn.functional import pad

from botorch_drbo.adversaries import WorstCaseProblem
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.ambiguity.sizing import check_has_radius
from botorch_drbo.calibrate import robustness_profile
from botorch_drbo.calibrate.profile import RobustnessProfile, check_radii
from botorch_drbo.contexts import ContextSet
from botorch_drbo.recommendation.decision_moments import mean_at
from botorch_drbo.recommendation.promise import posterior_of_worst_case
from botorch_drbo.recommendation.worst_case import worst_case

_NUM_RADII, _TIMES = 25, 4.0


def profile(
    problem: WorstCaseProblem,
    model: Model,
    x: Tensor,
    other: Tensor | None,
    radii: Tensor | None,
    *,
    target: float | None,
    seed: int,
) -> RobustnessProfile:
    r"""The worst case of a problem for one decision, or for two, at other radii.

    The contexts that the adversary would go to are searched for at each radius and for
    each decision. All values are then found on all of these, so that both curves are
    convex, fall, and are comparable.

    Args:
        problem: The ball, and where its adversary may go; its radius does not count.
        model: Of ``[x, c]``, fitted.
        x: The decision, ``d_x``.
        other: One to compare with, ``d_x``, or None.
        radii: ``k``, ascending; None for steps up to four times the ball's own.
        target: A value that the decision should reach.
        seed: Decides the search.

    Raises:
        InputDataError: A ball without a radius, or radii that do not ascend.
    """
    contexts, given = problem.contexts, problem.contexts.num_points
    own = check_has_radius(problem.ball(contexts.points)).radius.item()
    if radii is not None:
        radii = check_radii(radii)
    elif own > 0.0:
        radii = torch.linspace(0.0, _TIMES * own, _NUM_RADII, dtype=torch.double)
    else:
        raise InputDataError(
            "The radius of the set is zero, and says nothing of the radii that matter: "
            "pass `radii`, for example torch.linspace(0.0, 0.5, 26)."
        )
    radii = radii.to(contexts.points.device)
    scores = [mean_at(model, row) for row in (x, other) if row is not None]
    points = contexts.points
    if problem.box is not None:
        balls = [_with_radius(problem, radius) for radius in radii]
        found = [
            worst_case(ball, score, seed=seed)[0].points[given:]
            for ball in balls
            for score in scores
        ]
        points = torch.cat([points, torch.cat(found).unique(dim=0)])
    with torch.no_grad():
        values = [score(points) for score in scores]
    found = robustness_profile(
        values[0],
        pad(contexts.weights, (0, len(points) - given)),
        problem.ball(points),
        radii,
        other_values=values[1] if len(values) > 1 else None,
        target=target,
    )
    reached = ContextSet(points, torch.full_like(points[:, 0], 1.0 / len(points)))
    belief = posterior_of_worst_case(model, x, problem, reached, radii, seed=seed)
    return replace(found, belief=belief)


def _with_radius(problem: WorstCaseProblem, radius: Tensor) -> WorstCaseProblem:
    def ball(points: Tensor) -> AmbiguitySet:
        return problem.ball(points).with_radius(radius)

    return replace(problem, ball=ball)
