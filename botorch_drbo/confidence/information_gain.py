"""How much observations say about a function, and the noise that a model gives them."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.models import SingleTaskGP
from botorch.models.model import Model, ModelList
from botorch.models.transforms.outcome import Standardize
from gpytorch.constraints import Positive
from gpytorch.kernels import Kernel
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from torch import Tensor

from botorch_drbo._validation import (
    check_count,
    check_finite,
    check_points,
    check_positive,
)
from botorch_drbo.posterior.ensemble import ModelEnsemble
from botorch_drbo.posterior.exact import ExactPosterior
from botorch_drbo.posterior.training import outcome_map, training_system


def noise_precision(model: Model) -> Tensor:
    r"""Sum the precisions of a model's training outcomes.

    .. math:: \sum_{i=1}^t \frac{1}{\sigma_i^2}

    with :math:`\sigma_i^2` the noise variance of outcome ``i``, in squared units of y:
    an outcome transform is undone. With equal noise it is :math:`t / \sigma^2`.
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
    """The largest standard deviation of the noise in a model's training outcomes."""
    unit = outcome_map(model, None)[0]
    return (unit * training_system(model).noise.max().sqrt()).item()


def with_noise_ratio(model: SingleTaskGP, noise_ratio: float) -> SingleTaskGP:
    r"""A copy of a model that gives its outcomes another noise.

    The noise variance becomes :math:`\lambda` times the outputscale, that of every
    outcome; kernel, prior mean and data stay. :math:`\lambda` is the regulariser of the
    papers' posterior, which need not be the variance of the real noise.
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


# Variances that differ by less are equal: a tie goes to the first point on every
# machine, and not to whichever rounding favours.
_RELATIVE_TIE, _ABSOLUTE_TIE = 1e-9, 1e-14


class GreedyVariance:
    r"""Posterior variances of a list of points while observations are added to it.

    .. math:: i_t = \arg\max_{i} \sigma^2_{t-1}(z_i), \qquad
        \sigma^2_t(z) = \sigma^2_{t-1}(z) - v_t(z)^2

    with ``v_t`` the row that the observation at :math:`z_{i_t}` adds to
    ``L^-1 k(Z_t, z)``, where ``L`` is the Cholesky factor of the covariance of the
    noisy observations so far:

    .. math:: v_t(z) = \frac{k(z_{i_t}, z) - \sum_{s < t} v_s(z_{i_t}) v_s(z)}
        {\sqrt{\sigma^2_{t-1}(z_{i_t}) + \text{noise}}}

    This is a partial Cholesky factorisation with diagonal pivots, one row for each
    observation. A step evaluates one row of the kernel and costs ``O(N t)``; nothing is
    factored again. A variance does not depend on outcomes, so a whole batch can be
    chosen before the first of its outcomes is in. A point may be observed more than
    once.

    Shapes: ``points``: ``N x d``.
    """

    def __init__(
        self, kernel: Kernel, points: Tensor, noise_variance: float | Tensor
    ) -> None:
        if len(kernel.batch_shape):
            raise UnsupportedError(
                f"The kernel is a batch of kernels (batch_shape "
                f"{tuple(kernel.batch_shape)}). Pass one kernel."
            )
        noise = float(noise_variance)
        if not 0.0 < noise < float("inf"):
            raise InputDataError(
                f"`noise_variance` must be positive and finite, got {noise}. For "
                "outcomes without noise give a small number, such as 1e-6."
            )
        self._kernel = cast(Callable[..., Any], kernel)
        self._points = check_points(points, "points").detach()
        self._noise = noise
        with torch.no_grad():
            prior = self._kernel(self._points, diag=True)  # N
        self._variance = prior.detach().double().clone()
        self._tie = _ABSOLUTE_TIE * self._variance.max()
        self._rows = self._variance.new_empty(0, len(points))  # grows by doubling
        self._indices: list[int] = []
        self._gains: list[float] = []

    @property
    def variance(self) -> Tensor:
        """The posterior variance of each point, ``N``, float64."""
        return self._variance.clamp_min(0.0)

    @property
    def indices(self) -> tuple[int, ...]:
        """The points observed so far, in order."""
        return tuple(self._indices)

    @property
    def variances_observed(self) -> Tensor:
        """The variance of each of them just before it was observed, ``t``."""
        return self._variance.new_tensor(self._gains)

    def best(self, among: Tensor | None = None) -> int:
        """The point of the largest variance; of equal ones the first."""
        variance = self._variance
        if among is not None:
            if not bool(among.any()):
                raise InputDataError("`among` leaves no point to choose from.")
            variance = torch.where(among, variance, -torch.inf)
        largest = variance.max()
        threshold = largest - _RELATIVE_TIE * largest.abs() - self._tie
        return int((variance >= threshold).nonzero()[0])

    def observe(self, index: int) -> None:
        """Add one noisy observation of a point: ``O(N t)``."""
        n, t = len(self._variance), len(self._indices)
        if not 0 <= index < n:
            raise InputDataError(f"`index` must be 0 to {n - 1}, got {index}.")
        if t == len(self._rows):
            enlarged = self._rows.new_empty(max(16, 2 * t), n)
            enlarged[:t] = self._rows
            self._rows = enlarged
        with torch.no_grad():
            point = self._points[index].unsqueeze(0)
            row = self._kernel(point, self._points).to_dense().squeeze(0).double()
        factor = self._rows[:t]
        point_variance = self._variance[index].clamp_min(0.0)
        # v_t = (k(z_i, .) - sum_s v_s(z_i) v_s) / sqrt(sigma^2(z_i) + noise)
        row = row - factor[:, index] @ factor  # N
        self._rows[t] = row / (point_variance + self._noise).sqrt()
        self._variance -= self._rows[t].square()
        self._indices.append(index)
        self._gains.append(point_variance.item())

    def extend(self, num: int, among: Tensor | None = None) -> list[int]:
        """Choose and observe, one by one."""
        chosen: list[int] = []
        for _ in range(check_count(num, "num")):
            chosen.append(self.best(among))
            self.observe(chosen[-1])
        return chosen


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
    return root.diagonal(dim1=-2, dim2=-1).log().sum(-1).to(covariance)


def model_information_gain(model: SingleTaskGP) -> Tensor:
    """The information gain of a model's own training data.

    See ``information_gain``; kernel, outputscale, noise and (transformed) inputs are
    read from the model. The outcomes and their transform do not matter.
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
    """What ``maximum_information_gain`` found."""

    # The information gain after 1, 2, ... observations, ``num``, float64.
    gains: Tensor
    # The candidates observed, in order, ``num``; some more than once.
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
