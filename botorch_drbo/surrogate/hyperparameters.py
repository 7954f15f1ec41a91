"""Hyper-parameters that are known, or drawn from their posterior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, final

import numpy as np
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from gpytorch.constraints import Positive
from gpytorch.kernels import RBFKernel
from gpytorch.likelihoods import GaussianLikelihood
from scipy.special import logsumexp
from torch import Tensor

from botorch_drbo._validation import check_choice, check_count, check_positive, option
from botorch_drbo.posterior.ensemble import ModelEnsemble
from botorch_drbo.problem.search_space import Categories
from botorch_drbo.surrogate.base import (
    ModelData,
    Surrogate,
    model_inputs,
    num_columns,
    scaled_model,
)
from botorch_drbo.surrogate.evidence import Array, LogPosterior
from botorch_drbo.surrogate.gaussian_process import (
    KERNELS,
    GaussianProcess,
    maxima,
    model_with,
    ranges,
    usual_lengthscale,
)
from botorch_drbo.surrogate.inducing_points import MAX_EXACT, fit_rows


@final
@dataclass(frozen=True)
class FixedHyperparameters(Surrogate):
    r"""A Gaussian process prior that is known: zero mean, Gaussian kernel.

    .. math:: k(z, z') = s \exp\big( -\tfrac12 \sum_j (u_j - u'_j)^2 / \ell_j^2 \big)

    with ``u`` the joint input scaled to the unit cube by its bounds. A recipe with this
    option neither fits hyper-parameters nor standardises outcomes. Use it for
    experiments on samples of a known prior: results then do not depend on the fit, and
    a step takes less time.

    Args:
        lengthscale: ``l``, in sides of the boxes: one number, or one for each decision
            and context variable, decisions first.
        noise_variance: The variance of the observation noise, in squared units of y,
            of outcomes that came without a variance of their own.
        outputscale: ``s``, the prior variance of the outcome, in squared units of y.

    Raises:
        InputDataError: A value that is not a positive finite number.

    Example:
        >>> from botorch_drbo.surrogate import FixedHyperparameters
        >>> FixedHyperparameters(lengthscale=[0.1, 0.3], noise_variance=0.01)
        FixedHyperparameters(lengthscale=(0.1, 0.3), noise_variance=0.01, ...)
    """

    lengthscale: float | tuple[float, ...]
    noise_variance: float
    outputscale: float = option(1.0, check_positive)

    def __post_init__(self) -> None:
        """Check the numbers."""
        if isinstance(self.lengthscale, (tuple, list)):
            lengthscales = tuple(self.lengthscale)
            # JSON makes a list of it, which would leave the object mutable.
            object.__setattr__(self, "lengthscale", lengthscales)
        else:
            lengthscales = (self.lengthscale,)
        if not lengthscales:
            raise InputDataError("`lengthscale` must have at least one number.")
        super().__post_init__()
        for lengthscale in lengthscales:
            check_positive(lengthscale, "lengthscale")
        check_positive(self.noise_variance, "noise_variance")

    @property
    def is_refitted(self) -> bool:
        """False: nothing is fitted."""
        return False

    def fit(self, data: ModelData) -> SingleTaskGP:
        r"""Condition the prior on data; nothing is fitted."""
        return self.model(
            data.inputs,
            data.outcomes,
            data.bounds,
            data.inputs.shape[-1] if data.num_joint is None else data.num_joint,
            data.Yvar,
            data.categories,
        )

    def model(
        self,
        inputs: Tensor,
        outcomes: Tensor,
        bounds: Tensor,
        num_joint: int,
        Yvar: Tensor | None = None,
        categories: Categories | None = None,
    ) -> SingleTaskGP:
        r"""Condition the prior on data.

        Args:
            inputs: ``t x d``: ``[x, c]``, or decisions alone.
            outcomes: ``t x 1``.
            bounds: What is scaled to the unit cube, ``2 x d``.
            num_joint: How many decision and context variables there are. A model of
                decisions alone takes the first lengthscales.
            Yvar: The variances of the noise in the outcomes, ``t x 1``, in place of
                ``noise_variance``; None for that.
            categories: Inputs that are categories, and how many there are; each of
                the one-hot columns of one has its lengthscale.

        Returns:
            The model, in the dtype of the inputs.

        Raises:
            BotorchTensorDimensionError: Another number of lengthscales.
        """
        lengthscale = torch.tensor(self.lengthscale, dtype=torch.double)
        if lengthscale.ndim and len(lengthscale) != num_joint:
            raise BotorchTensorDimensionError(
                f"`lengthscale` has {len(lengthscale)} numbers for {num_joint} "
                "decision and context variables. Give one number, or one for each."
            )
        d, categories = inputs.shape[-1], categories or {}
        widths = num_columns(d, categories)
        kernel = RBFKernel(ard_num_dims=int(widths.sum()))
        likelihood = None  # one for the given variances
        if Yvar is None:
            # The default constraint would not let the noise below 1e-4.
            likelihood = GaussianLikelihood(noise_constraint=Positive())
        size = torch.tensor(self.outputscale, dtype=torch.double).sqrt().to(outcomes)
        # In units of the prior: GPyTorch's absolute tolerances expect order one.
        model = scaled_model(
            inputs,
            outcomes,
            torch.zeros_like(size),
            size,
            Yvar,
            likelihood=likelihood,
            covar_module=kernel,
            input_transform=model_inputs(bounds, categories),
        ).to(inputs)
        each = lengthscale.expand(num_joint)[:d].repeat_interleave(widths)
        kernel.lengthscale = each.to(inputs)
        if likelihood is not None:
            ratio = self.noise_variance / self.outputscale
            likelihood.noise = torch.tensor(ratio, dtype=torch.double).to(inputs)
        return model.eval()


_DEGREES = 5.0  # of freedom of the proposals: with tails heavier than the posterior's
_STEP = 1e-3  # of the differences that make a Hessian, in logarithms
_WIDEST = 1.5  # standard deviation of a proposal, in logarithms
_APART = 0.5  # in logarithms: maxima nearer than this are one


@final
@dataclass(frozen=True)
class HyperparameterDraws(Surrogate):
    r"""An ensemble with hyper-parameters drawn from their posterior.

    .. math:: p(f \mid y) = \int p(f \mid y, \theta)\, p(\theta \mid y)\, d\theta
        \approx \frac1K \sum_k p(f \mid y, \theta_k)

    ``num_proposals`` logarithms of hyper-parameters are drawn from Student's t around
    each maximum of the posterior density (Laplace's approximation with heavier tails)
    and weighted by posterior over proposal; systematic resampling makes ``num_draws``
    of equal weight of them. The constant mean is drawn too, given the others. ``seed``
    determines all draws.

    Args:
        kernel: That of ``GaussianProcess``, whose priors these are.
        num_draws: The models, ``K``.
        num_proposals: The candidates among which these are drawn.
        seed: Decides the draws.
        max_exact: With more outcomes the model uses inducing points: see
            ``inducing_points.fit_rows``.

    Raises:
        InputDataError: An unknown kernel, or a number that is not a positive integer.

    Example:
        >>> from botorch_drbo.surrogate import HyperparameterDraws
        >>> HyperparameterDraws(num_draws=4).is_ensemble
        True
    """

    kernel: str = option("matern52", partial(check_choice, choices=sorted(KERNELS)))
    num_draws: int = option(8, check_count)
    num_proposals: int = option(256, check_count)
    seed: int = option(0, partial(check_count, minimum=0))
    max_exact: int = option(MAX_EXACT, check_count)

    @property
    def is_ensemble(self) -> bool:
        """True."""
        return True

    @property
    def num_models(self) -> int:
        """One for each draw."""
        return self.num_draws

    def fit(self, data: ModelData) -> Model:
        r"""Draw the hyper-parameters."""
        return fit_rows(data, self.max_exact, self._fit)

    def _fit(self, data: ModelData) -> ModelEnsemble:
        generator = np.random.default_rng(self.seed)
        d = data.inputs.shape[-1]
        family = GaussianProcess(self.kernel).family(d)
        posterior = LogPosterior(family, data, marginal=True)
        draws = self.draws(posterior, usual_lengthscale(d), generator)
        models = []
        for logarithms in draws:
            found = posterior(logarithms)
            # The mean was integrated out of the density: given the others it is normal.
            mean = generator.normal(found.mean, found.mean_precision**-0.5)
            models.append(model_with(data, posterior, logarithms, mean))
        return ModelEnsemble(models)

    def draws(
        self,
        posterior: LogPosterior,
        lengthscale: float,
        generator: np.random.Generator,
    ) -> Array:
        r"""Draw logarithms of hyper-parameters from their posterior.

        Args:
            posterior: The density of the logarithms.
            lengthscale: A typical lengthscale, from which the search for maxima starts.
            generator: Decides the draws.

        Returns:
            ``num_draws x size``.
        """
        # Importance sampling: Student t around each maximum as proposal, resampled by
        # weights.
        proposals = _proposals(posterior, maxima(posterior, lengthscale))
        numbers = generator.integers(len(proposals), size=self.num_proposals)
        points = np.stack([proposals[number].draw(generator) for number in numbers])
        # The prior is cut off where fits are: a draw outside has weight zero.
        lower, upper = np.array(ranges(posterior)).T
        inside = ((points >= lower) & (points <= upper)).all(-1)
        densities = [
            posterior(point).log_density if possible else -np.inf
            for point, possible in zip(points, inside, strict=True)
        ]
        proposed = np.stack([proposal.log_density(points) for proposal in proposals])
        # Weights of the mixture of all proposals, not of the one that drew: they are
        # bounded where maxima overlap.
        weights = np.array(densities) - logsumexp(proposed, axis=0)
        if not np.isfinite(weights).any():  # a few proposals, all of them out of reach
            return np.repeat(proposals[0].centre[None], self.num_draws, 0)
        shares = np.exp(weights - logsumexp(weights))
        # Systematic resampling: one uniform number for all draws, which varies less
        # than a number for each.
        places = (np.arange(self.num_draws) + generator.uniform()) / self.num_draws
        chosen = np.searchsorted(shares.cumsum(), places)
        return points[chosen.clip(max=len(points) - 1)]


class _StudentT(NamedTuple):
    """Around a centre, with ``spread = root root'``."""

    centre: Array
    root: Array

    def draw(self, generator: np.random.Generator) -> Array:
        # Student t: a normal number over the root of a chi-squared one.
        scale = (generator.chisquare(_DEGREES) / _DEGREES) ** -0.5
        return self.centre + scale * self.root @ generator.normal(size=len(self.root))

    def log_density(self, points: Array) -> Array:
        """Of ``N x size`` points; up to a constant that all of this size share."""
        scaled = np.linalg.solve(self.root, (points - self.centre).T)
        power = 0.5 * (_DEGREES + len(self.root))
        distance = np.square(scaled).sum(0) / _DEGREES
        return -power * np.log1p(distance) - np.linalg.slogdet(self.root)[1]


def _proposals(posterior: LogPosterior, found: Sequence[Array]) -> list[_StudentT]:
    """Around each maximum, as wide as the posterior is there."""
    centres: list[Array] = []
    # Two starts often end in the same maximum, which would count twice.
    for centre in found:
        if all(np.linalg.norm(centre - other) > _APART for other in centres):
            centres.append(centre)
    return [_StudentT(centre, _root(posterior, centre)) for centre in centres]


def _root(posterior: LogPosterior, centre: Array) -> Array:
    """Of one over the curvature of the density, where that is not too flat."""
    steps = _STEP * np.eye(len(centre))
    # Central differences of an exact gradient: errors of the square of the step.
    hessian = np.stack(
        [
            (posterior(centre + step).gradient - posterior(centre - step).gradient)
            / (2.0 * _STEP)
            for step in steps
        ]
    )
    # Flat directions, and those that curve upwards, have a bounded width.
    curvature, axes = np.linalg.eigh(-0.5 * (hessian + hessian.T))
    return axes / np.sqrt(curvature.clip(min=_WIDEST**-2))
