"""The posterior moments of one decision, as functions of the context."""

from __future__ import annotations

import torch
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo.posterior.ensemble import ModelEnsemble
from botorch_drbo.posterior.exact import ExactPosterior
from botorch_drbo.posterior.joint import joint_moments
from botorch_drbo.posterior.view import MEANS_ALONE_FROM
from botorch_drbo.recommendation.worst_case import Score


def mean_at(model: Model, x: Tensor) -> Score:
    r"""The mean at one decision as a function of the context.

    .. math:: c \mapsto \mu(x, c)

    Of Gaussian processes of many outcomes without the variances, which cost a product
    with a ``t x t`` matrix per context.

    Args:
        model: A BoTorch model of one output, or an ensemble.
        x: The decision, ``d_x``.

    Returns:
        From contexts ``n x d_c`` to means ``n``, differentiable in the contexts.

    Example:
        >>> from botorch.models import SingleTaskGP
        >>> Z = torch.rand(5, 2, dtype=torch.double)
        >>> mean = mean_at(SingleTaskGP(Z, Z.sum(-1, True)), Z[0, :1])
        >>> mean(torch.rand(7, 1, dtype=torch.double)).shape
        torch.Size([7])
    """
    members = model.members if isinstance(model, ModelEnsemble) else [model]
    exact = [
        # No slopes in the context are asked of it, so no column is named.
        ExactPosterior(member, range(0))
        for member in members
        if isinstance(member, SingleTaskGP)
        and len(member.train_targets) >= MEANS_ALONE_FROM
        and ExactPosterior.supports(member, None)
    ]
    if len(exact) < len(members):
        return lambda contexts: moments_at(model, x, contexts)[0]

    def mean(contexts: Tensor) -> Tensor:
        Z = torch.cat([x.expand(len(contexts), -1), contexts], -1)
        return torch.stack([each.means(Z.to(each.dtype)) for each in exact]).mean(0)

    return mean


def moments_at(model: Model, x: Tensor, contexts: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance at one decision ``d_x`` and ``n x d_c`` contexts, ``n``."""
    return joint_moments(model, torch.cat([x.expand(len(contexts), -1), contexts], -1))
