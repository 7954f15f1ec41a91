"""The noise that a model gives its training outcomes: read, and replaced."""

from __future__ import annotations

import copy
from typing import cast

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.model import Model, ModelList
from botorch.models.transforms.outcome import Standardize
from gpytorch.constraints import Positive
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from torch import Tensor

from botorch_drbo._validation import check_positive
from botorch_drbo.posterior.ensemble import ModelEnsemble
from botorch_drbo.posterior.training import outcome_map, training_system


def noise_precision(model: Model) -> Tensor:
    r"""Sum the precisions of a model's training outcomes.

    .. math:: \sum_{i=1}^t \frac{1}{\sigma_i^2}

    with :math:`\sigma_i^2` the noise variance of outcome ``i``, in squared units of y:
    an outcome transform is undone. With equal noise it is :math:`t / \sigma^2`.

    Args:
        model: A GPyTorch model of BoTorch with a Gaussian likelihood, with learned or
            with given noise, and at most a ``Standardize`` outcome transform.

    Returns:
        One number for each output, ``m``; of an ensemble, one for each model, ``S``.

    Raises:
        UnsupportedError: Another likelihood or outcome transform.

    Example:
        >>> from botorch.models import SingleTaskGP
        >>> Z = torch.rand(5, 2, dtype=torch.double)
        >>> given = torch.full((5, 1), 0.25, dtype=torch.double)
        >>> Y = Z.sum(dim=-1, keepdim=True)
        >>> noise_precision(SingleTaskGP(Z, Y, given, outcome_transform=None))
        tensor([20.], dtype=torch.float64)
    """
    if isinstance(model, ModelList | ModelEnsemble):
        return torch.cat([noise_precision(cast(Model, m)) for m in model.models])
    likelihood = getattr(model, "likelihood", None)
    if not isinstance(likelihood, GaussianLikelihood | FixedNoiseGaussianLikelihood):
        raise UnsupportedError(
            "`misspecification` needs the noise of each outcome: a model with a "
            "GaussianLikelihood or a FixedNoiseGaussianLikelihood, got "
            f"{type(model).__name__} with {type(likelihood).__name__}."
        )
    transform = getattr(model, "outcome_transform", None)
    if type(transform) not in (type(None), Standardize):
        raise UnsupportedError(
            "`misspecification` is in the units of y: the outcome transform must be "
            f"`Standardize` or none, got {type(transform).__name__}."
        )
    with torch.no_grad():
        targets = cast(Tensor, model.train_targets)  # (S x m) x t
        noise = likelihood.noise.expand(targets.shape).reshape(-1, targets.shape[-1])
        if isinstance(transform, Standardize):
            scale = transform.stdvs.mT.reshape(-1, 1)  # (S x m) x 1
            noise = noise * scale.square()
        return noise.reciprocal().sum(-1)


def noise_std(model: SingleTaskGP) -> float:
    r"""The largest standard deviation of the noise in a model's training outcomes.

    Args:
        model: A ``SingleTaskGP`` with a Gaussian likelihood. It goes to eval mode.

    Returns:
        The deviation, in units of y: an outcome transform is undone.

    Example:
        >>> Z = torch.rand(5, 2, dtype=torch.double)
        >>> given = torch.full((5, 1), 0.25, dtype=torch.double)
        >>> noise_std(SingleTaskGP(Z, Z[:, :1], given, outcome_transform=None))
        0.5
    """
    unit = outcome_map(model, None)[0]
    return (unit * training_system(model).noise.max().sqrt()).item()


def with_noise_ratio(model: SingleTaskGP, noise_ratio: float) -> SingleTaskGP:
    r"""A copy of a model that gives its outcomes another noise.

    The noise variance becomes :math:`\lambda` times the outputscale, that of every
    outcome; kernel, prior mean and data stay. :math:`\lambda` is the regulariser of the
    papers' posterior, which need not be the variance of the real noise.

    Args:
        model: A ``SingleTaskGP`` with a Gaussian likelihood. It goes to eval mode.
        noise_ratio: :math:`\lambda`, relative to the outputscale, which is read as the
            largest prior variance at the training inputs.

    Returns:
        The copy, in evaluation mode.

    Raises:
        InputDataError: A ratio that is not positive and finite.

    Example:
        >>> Z = torch.rand(5, 2, dtype=torch.double)
        >>> model = SingleTaskGP(Z, Z[:, :1], outcome_transform=None)
        >>> round(noise_std(with_noise_ratio(model, 0.25)), 6)
        0.5
    """
    ratio = check_positive(noise_ratio, "noise_ratio")
    system = training_system(model)
    prior = (system.covariance.diagonal() - system.noise).max()
    clone = copy.deepcopy(model).train()  # forgets what was computed with the old noise
    # The default constraint would not let the noise below 1e-4.
    likelihood = GaussianLikelihood(noise_constraint=Positive()).to(system.inputs)
    likelihood.noise = (ratio * prior).to(system.inputs)
    clone.likelihood = likelihood.requires_grad_(False)
    return clone.eval()
