"""Mean and variance of any model at joint inputs, for code that needs no view."""

from __future__ import annotations

from typing import cast

from botorch.models.model import Model
from botorch.posteriors import GPyTorchPosterior
from torch import Tensor

from botorch_drbo.posterior.gpytorch_settings import any_variance


def joint_moments(model: Model, Z: Tensor) -> tuple[Tensor, Tensor]:
    r"""Posterior mean and variance, input by input.

    Of an ensemble of ``S`` models those of the mixture,

    .. math:: \mu = \frac1S \sum_s \mu_s, \qquad
        \sigma^2 = \frac1S \sum_s \big( \sigma_s^2 + (\mu_s - \mu)^2 \big)

    Args:
        model: A BoTorch model of one output.
        Z: Joint inputs, ``n x d``.

    Returns:
        Mean and variance, ``n`` each; both can be differentiated.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> Z = torch.rand(5, 2, dtype=torch.double)
        >>> mean, variance = joint_moments(SingleTaskGP(Z, Z.sum(-1, True)), Z)
        >>> mean.shape, variance.shape
        (torch.Size([5]), torch.Size([5]))
    """
    with any_variance():
        posterior = cast(GPyTorchPosterior, model.posterior(Z.unsqueeze(-2)))
        mean = posterior.mean.flatten(1)  # n (x S) x 1 x 1 to n x S
        variance = posterior.variance.flatten(1)
    middle = mean.mean(-1, keepdim=True)
    return middle.squeeze(-1), (variance + (mean - middle).square()).mean(-1)
