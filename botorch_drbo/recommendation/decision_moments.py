"""The posterior moments of one decision, as functions of the context."""

from __future__ import annotations

import torch
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo.posterior.joint import joint_moments
from botorch_drbo.recommendation.worst_case import Score


def mean_at(model: Model, x: Tensor) -> Score:
    """The mean at one decision ``d_x``: contexts ``n x d_c`` to ``n``."""
    return lambda contexts: moments_at(model, x, contexts)[0]


def moments_at(model: Model, x: Tensor, contexts: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance at one decision ``d_x`` and ``n x d_c`` contexts, ``n``."""
    return joint_moments(model, torch.cat([x.expand(len(contexts), -1), contexts], -1))
