"""Conditioning on the training data: the one place that factors their covariance."""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
from botorch.acquisition.objective import (
    PosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.models import SingleTaskGP
from botorch.models.transforms.outcome import Standardize
from botorch.sampling.pathwise.utils import get_train_inputs
from gpytorch.distributions import MultivariateNormal
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor


class TrainingSystem(NamedTuple):
    r"""The linear system of a model's training data, in standardised outcomes.

    Args:
        inputs: Training inputs, transformed, ``t x d``, in the model's dtype.
        noise: Noise variances, ``t``, float64.
        covariance: ``K + noise``, ``t x t``, float64.
        root: Its lower Cholesky factor ``L``, ``t x t``, float64.
        residual: Outcomes less the prior mean, ``t x 1``, float64.
    """

    inputs: Tensor
    noise: Tensor
    covariance: Tensor
    root: Tensor
    residual: Tensor

    @property
    def alpha(self) -> Tensor:
        """``(K + noise)^-1 (y - m)``, ``t x 1``."""
        return torch.cholesky_solve(self.residual, self.root)


def training_system(model: SingleTaskGP) -> TrainingSystem:
    r"""Factor a model's training covariance in float64; the model goes to eval mode.

    Args:
        model: A ``SingleTaskGP`` of one output with a Gaussian likelihood.

    Returns:
        The system, without a graph.
    """
    model.eval()
    with torch.no_grad():
        Z = get_train_inputs(model, transformed=True)[0]  # t x d
        prior = model.forward(Z)
        noisy = cast(MultivariateNormal, model.likelihood(prior, [Z]))
        covariance = noisy.covariance_matrix.double()  # t x t
        modelled = prior.covariance_matrix.double()
        noise = (covariance - modelled).diagonal(dim1=-2, dim2=-1)
        residual = (model.train_targets - prior.mean).double().unsqueeze(-1)
        root = psd_safe_cholesky(covariance)
    return TrainingSystem(Z, noise, covariance, root, residual)


def outcome_map(
    model: SingleTaskGP, posterior_transform: PosteriorTransform | None
) -> tuple[Tensor, Tensor]:
    r"""Find scale and offset from the model's outcome to the score's units.

    Args:
        model: A model with at most a ``Standardize`` outcome transform.
        posterior_transform: None or a ``ScalarizedPosteriorTransform``.

    Returns:
        Scale and offset, float64 scalars.
    """
    scale = torch.ones((), dtype=torch.double)
    offset = torch.zeros((), dtype=torch.double)
    transform = getattr(model, "outcome_transform", None)
    if isinstance(transform, Standardize):
        scale = transform.stdvs.detach().double().reshape(())
        offset = transform.means.detach().double().reshape(())
    if isinstance(posterior_transform, ScalarizedPosteriorTransform):
        weight = cast(Tensor, posterior_transform.weights).detach().double().reshape(())
        scale = weight * scale
        offset = posterior_transform.offset + weight * offset
    return scale, offset
