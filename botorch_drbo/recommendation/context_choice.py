"""The context in which a laboratory evaluates a decision."""

from __future__ import annotations

import torch
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo.adversaries import WorstCaseProblem
from botorch_drbo.recommendation.decision_moments import moments_at
from botorch_drbo.recommendation.worst_case import worst_case

_PESSIMISM = 1.5  # deviations below the mean, by which a context is chosen
_CARRIES = 1e-6  # less mass in a worst case is a rounding error


def chosen_context(
    problem: WorstCaseProblem, model: Model, x: Tensor, *, seed: int
) -> Tensor:
    r"""The context where a decision may hurt most and least is known.

    Args:
        problem: Of the recipe's recommendations.
        model: Of ``[x, c]``.
        x: The decision, ``d_x``.
        seed: Determines all random draws.

    Returns:
        Of the contexts that carry the worst case of the pessimistic outcome the one
        with the largest variance, ``d_c``.
    """
    least, moments = torch.finfo(x.dtype).tiny, moments_at(model, x)

    def pessimistic(contexts: Tensor) -> Tensor:
        mean, variance = moments(contexts)
        return mean - _PESSIMISM * variance.clamp_min(least).sqrt()

    contexts, robust = worst_case(problem, pessimistic, seed=seed)
    points = contexts.points[robust.weights > _CARRIES]
    with torch.no_grad():
        variance = moments(points)[1]
    return points[variance.argmax()]
