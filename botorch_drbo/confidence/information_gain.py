"""How much a set of observations says about a function."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.models import SingleTaskGP
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_drbo._validation import check_count, check_finite
from botorch_drbo.confidence.greedy_variance import GreedyVariance
from botorch_drbo.posterior.exact import ExactPosterior
from botorch_drbo.posterior.training import training_system


def information_gain(covariance: Tensor, noise_variance: float | Tensor) -> Tensor:
    r"""The information that noisy observations hold about a Gaussian process.

    .. math:: I = \tfrac12 \log \det\big( I_t + K / \lambda \big)
        = \tfrac12 \sum_{s=1}^t \log\big( 1 + \sigma^2_{s-1}(x_s) / \lambda \big)

    Only the ratio of ``K`` to the noise counts: a kernel with outputscale ``s`` and
    noise variance ``v`` gives what the papers' normalised kernel gives with
    :math:`\lambda = v / s`. In nats; the mutual information of outcomes and function
    for Gaussian noise of variance :math:`\lambda` [Srinivas2010gpucb]_.
    [Micheli2025wdrbo]_ writes the log-determinant *without* the factor 1/2, of one
    observation fewer: its :math:`\gamma_t` is twice ours of ``t - 1`` inputs.

    Args:
        covariance: ``K``, the kernel at the inputs of the data, ``... x t x t``.
        noise_variance: :math:`\lambda` in the units of ``K``: a positive number, or
            one for each observation, ``t``.

    Returns:
        The gain, ``...``, in the dtype of ``covariance``.

    Raises:
        BotorchTensorDimensionError: Not square, or noise that does not fit.
        InputDataError: Entries that are not finite, noise that is not positive, or a
            matrix that is no covariance.

    Example:
        >>> import torch
        >>> from botorch_drbo.confidence import information_gain
        >>> information_gain(torch.eye(3), 0.5)  # three unrelated: 3/2 log(1 + 2)
        tensor(1.6479)
    """
    check_finite(covariance, "covariance")
    if covariance.ndim < 2 or covariance.shape[-1] != covariance.shape[-2]:
        raise BotorchTensorDimensionError(
            "`covariance` must be a square matrix, `... x t x t`, got shape "
            f"{tuple(covariance.shape)}."
        )
    t = covariance.shape[-1]
    noise = torch.as_tensor(noise_variance, dtype=torch.double)
    noise = noise.to(covariance.device)
    if noise.shape not in {(), (t,)}:
        raise BotorchTensorDimensionError(
            f"`noise_variance` must be a number or have {t} entries, one for each "
            f"observation, got shape {tuple(noise.shape)}."
        )
    if not bool(((noise > 0) & noise.isfinite()).all()):
        raise InputDataError(
            "`noise_variance` must be positive and finite, got "
            f"{noise_variance}. Without noise the gain is infinite."
        )
    # 1/2 log det(I + K / lambda) = sum of log L_ii, with L the Cholesky factor.
    scale = noise.expand(t).rsqrt()
    relative = scale.unsqueeze(-1) * covariance.double() * scale
    identity = torch.eye(t, dtype=torch.double, device=covariance.device)
    root, failed = torch.linalg.cholesky_ex(identity + relative)
    # All eigenvalues of I + K / lambda are at least 1, unless K is no covariance.
    symmetric = torch.allclose(covariance, covariance.mT, rtol=1e-4, atol=1e-6)
    if bool(failed.any()) or not symmetric:
        raise InputDataError(
            "`covariance` must be symmetric without negative eigenvalues: it is no "
            "covariance matrix. Pass the kernel at one list of inputs, `k(Z, Z)`."
        )
    gain = root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return gain.to(covariance)


def model_information_gain(model: SingleTaskGP) -> Tensor:
    r"""The information gain of a model's own training data.

    See ``information_gain``; kernel, outputscale, noise and (transformed) inputs are
    read from the model. The outcomes and their transform do not matter.

    Args:
        model: A ``SingleTaskGP`` with a Gaussian likelihood. It goes to eval mode.

    Returns:
        The gain, a float64 scalar.

    Raises:
        UnsupportedError: Another model.

    Example:
        >>> Z = torch.linspace(0.0, 1.0, 16, dtype=torch.double).reshape(8, 2)
        >>> print(f"{model_information_gain(SingleTaskGP(Z, Z.sum(-1, True))):.2f}")
        14.32
    """
    if not ExactPosterior.supports(model, None):
        raise UnsupportedError(
            "The information gain needs a single-output SingleTaskGP with a Gaussian "
            "likelihood and at most a Standardize outcome transform, got "
            f"{type(model).__name__}. Pass its kernel matrix to `information_gain`."
        )
    system = training_system(model)
    gain = system.root.diagonal().log().sum() - 0.5 * system.noise.log().sum()
    return gain.clamp_min(0.0)  # rounding, if the data say next to nothing


@dataclass(frozen=True, eq=False)
class GreedyInformationGain:
    r"""What ``maximum_information_gain`` found.

    Attributes:
        gains: The information gain after 1, 2, ... observations, ``num``, float64.
        indices: The candidates observed, in order, ``num``; some more than once.
    """

    gains: Tensor
    indices: Tensor

    @property
    def upper_bounds(self) -> Tensor:
        r"""Certified upper bounds of the maximum after each step, ``num``.

        The gain is submodular and does not fall, so the greedy choice reaches at least
        the fraction :math:`1 - 1/e` of the maximum.
        """
        return self.gains / (1.0 - math.exp(-1.0))


def maximum_information_gain(
    kernel: Kernel, candidates: Tensor, num: int, noise_variance: float
) -> GreedyInformationGain:
    r"""The largest information gain that ``t`` observations can have, greedily.

    .. math:: \gamma_t = \max_{x_1, \dots, x_t} \tfrac12 \log\det( I + K / \lambda )

    over the candidates, repetitions allowed. The greedy choice takes the candidate of
    the largest posterior variance at each step and comes within a factor
    :math:`1 - 1/e` of the maximum [Srinivas2010gpucb]_; it costs ``O(N t)`` per step
    (``GreedyVariance``).

    Args:
        kernel: Any GPyTorch kernel, outputscale included. The kernel of a fitted model
            takes the *transformed* inputs.
        candidates: The possible inputs, ``N x d``.
        num: ``t``, how many observations.
        noise_variance: :math:`\lambda` in the kernel's units: for a kernel with
            outputscale ``s`` this is ``s`` times the papers' :math:`\lambda`.

    Returns:
        The gain after each step and the chosen candidates.

    Raises:
        InputDataError: No candidates, a ``num`` or a ``noise_variance`` that is not
            positive.
        BotorchTensorDimensionError: Candidates that are not a matrix.
        UnsupportedError: A batch of kernels.

    Example:
        >>> import torch
        >>> from botorch_drbo.confidence import maximum_information_gain
        >>> from gpytorch.kernels import RBFKernel
        >>> line = torch.linspace(0.0, 1.0, 5, dtype=torch.double).unsqueeze(-1)
        >>> found = maximum_information_gain(RBFKernel(), line, 3, 0.01)
        >>> found.indices
        tensor([0, 4, 2])
        >>> found.gains
        tensor([2.3076, 4.5499, 5.8625], dtype=torch.float64)
    """
    check_count(num, "num")
    if isinstance(candidates, Tensor) and len(candidates) == 0:
        raise InputDataError("`candidates` is an empty list. Give at least one row.")
    greedy = GreedyVariance(kernel, candidates, noise_variance)
    indices = greedy.extend(num)
    gains = 0.5 * (greedy.variances_observed / noise_variance).log1p().cumsum(0)
    return GreedyInformationGain(
        gains=gains, indices=torch.tensor(indices, device=candidates.device)
    )
