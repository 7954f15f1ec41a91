"""The posterior moments of one decision, as functions of the context."""

from __future__ import annotations

from collections.abc import Callable

from botorch.models.model import Model
from torch import Tensor

from botorch_drbo.posterior import marginal_posterior
from botorch_drbo.posterior.view import View
from botorch_drbo.recommendation.worst_case import Score


def mean_at(model: Model, x: Tensor) -> Score:
    """The mean at one decision ``d_x``: contexts ``n x d_c`` to ``n``."""
    view = _view(model, x)
    return lambda contexts: view.at(contexts).means().flatten(1).mean(-1)


def moments_at(model: Model, x: Tensor) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Mean and variance at one decision ``d_x``: ``n x d_c`` to ``n`` each.

    Of an ensemble those of the mixture, as of ``joint_moments``.
    """
    view = _view(model, x)

    def moments(contexts: Tensor) -> tuple[Tensor, Tensor]:
        mean, variance = (part.flatten(1) for part in view.at(contexts).moments())
        middle = mean.mean(-1, keepdim=True)
        return middle.squeeze(-1), (variance + (mean - middle).square()).mean(-1)

    return moments


def _view(model: Model, x: Tensor) -> View:
    """With the roles exchanged: the decision stays, and contexts are varied."""
    return marginal_posterior(model, range(len(x))).over(x.detach().unsqueeze(0))
