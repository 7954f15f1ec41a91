"""How much a model's training outcomes say, by the noise that the model gives them."""

from __future__ import annotations

from typing import cast

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model, ModelList
from botorch.models.transforms.outcome import Standardize
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from torch import Tensor


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
    if isinstance(model, ModelList):
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
