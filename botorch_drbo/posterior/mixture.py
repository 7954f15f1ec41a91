"""Predicted numbers: joint moments, expectations over contexts, mixtures of models."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast, final

import torch
from botorch.models.model import Model
from botorch.posteriors import GPyTorchPosterior, Posterior
from botorch.utils.probability.utils import phi
from gpytorch.distributions import MultivariateNormal
from scipy.special import ndtri_exp
from torch import Tensor

from botorch_drbo._validation import check_level
from botorch_drbo.posterior.blocks import any_variance
from botorch_drbo.posterior.factory import marginal_posterior


def joint_moments(model: Model, Z: Tensor) -> tuple[Tensor, Tensor]:
    r"""Posterior mean and variance, input by input.

    Of an ensemble of ``S`` models those of the mixture,

    .. math:: \mu = \frac1S \sum_s \mu_s, \qquad
        \sigma^2 = \frac1S \sum_s \big( \sigma_s^2 + (\mu_s - \mu)^2 \big)

    Shapes: ``Z``: ``n x d``.
    """
    with any_variance():
        posterior = cast(GPyTorchPosterior, model.posterior(Z.unsqueeze(-2)))
        mean = posterior.mean.flatten(1)  # n (x S) x 1 x 1 to n x S
        variance = posterior.variance.flatten(1)
    middle = mean.mean(-1, keepdim=True)
    return middle.squeeze(-1), (variance + (mean - middle).square()).mean(-1)


_MAX_HALVINGS = 80  # of a bracket: more than float64 can tell apart


@final
@dataclass(frozen=True, eq=False)
class GaussianMixture:
    r"""The mixture of ``S`` equally likely Gaussians, of one number or of many.

    .. math:: F(v) = \frac1S \sum_s \Phi\Big( \frac{v - \mu_s}{\sigma_s} \Big)

    Of a single Gaussian process ``S`` is one. A deviation of zero is a point mass.
    """

    # Those of the Gaussians, ``S x ...``.
    means: Tensor
    # Their standard deviations, ``S x ...``.
    deviations: Tensor

    @property
    def mean(self) -> Tensor:
        """The mean of the mixture, ``...``."""
        return self.means.mean(0)

    @property
    def deviation(self) -> Tensor:
        """The standard deviation of the mixture, ``...``."""
        between = (self.means - self.mean).square()
        return (self.deviations.square() + between).mean(0).sqrt()

    @property
    def expected_gain(self) -> Tensor:
        r"""The expectation of what is above zero, ``...``.

        :math:`E[\max(V, 0)] = \frac1S \sum_s \mu_s \Phi(z_s) + \sigma_s \phi(z_s)`
        with :math:`z_s = \mu_s / \sigma_s`.
        """
        deviations = self.deviations.clamp_min(torch.finfo(self.means.dtype).tiny)
        z = self.means / deviations
        return (self.means * torch.special.ndtr(z) + deviations * phi(z)).mean(0)

    def cdf(self, values: Tensor) -> Tensor:
        """The probability of no more than a value."""
        deviations = self.deviations.clamp_min(torch.finfo(self.means.dtype).tiny)
        return torch.special.ndtr((values - self.means) / deviations).mean(0)

    def normal_scores(self, values: Tensor) -> Tensor:
        r"""How surprising values are: standard normal if the mixture is right.

        :math:`\Phi^{-1}(F(v))`; of one Gaussian :math:`(v - \mu) / \sigma`.
        """
        z = (values - self.means) / self.deviations
        # By the logarithm of the nearer tail: far out the other one rounds to one.
        lower, upper = (
            torch.special.log_ndtr(side).logsumexp(0) - math.log(len(z))
            for side in (z, -z)
        )
        nearer = torch.minimum(lower, upper)
        size = torch.from_numpy(ndtri_exp(nearer.cpu().numpy())).to(nearer)
        return torch.where(lower < upper, size, -size)

    def quantile(self, probability: float) -> Tensor:
        """The value that the number stays below with a probability.

        Found by halving the bracket of the smallest and the largest quantile of the
        Gaussians, between which that of their mixture lies.
        """
        probability = check_level(probability, "probability")
        deviations = self.deviations.double()
        standard = torch.special.ndtri(
            torch.tensor(probability, dtype=torch.double, device=deviations.device)
        )
        each = self.means.double() + standard * deviations
        precise = GaussianMixture(self.means.double(), deviations)
        # The mixture's quantile lies between those of its members; halved until float64
        # has no more between.
        low, high = each.amin(0), each.amax(0)
        middle = low
        for _ in range(_MAX_HALVINGS if len(each) > 1 else 0):
            before, middle = middle, 0.5 * (low + high)
            if torch.equal(before, middle):
                break
            below = precise.cdf(middle) < probability
            low, high = (
                torch.where(below, middle, low),
                torch.where(below, high, middle),
            )
        return (0.5 * (low + high)).to(self.means)

    def interval(self, level: float) -> tuple[float, float]:
        """The central interval that holds one number with a probability."""
        rest = 0.5 * (1.0 - check_level(level))
        return self.quantile(rest).item(), self.quantile(1.0 - rest).item()

    def __getitem__(self, index: int) -> GaussianMixture:
        """One of many numbers."""
        return GaussianMixture(self.means[:, index], self.deviations[:, index])

    def widened(self, factor: float) -> GaussianMixture:
        """The mixture with every distance from its mean multiplied."""
        means = self.mean + factor * (self.means - self.mean)
        return GaussianMixture(means, factor * self.deviations)

    def mirrored(self) -> GaussianMixture:
        """What is believed of minus the number."""
        return GaussianMixture(-self.means, self.deviations)


_MOST_CONTEXTS = 1024  # of a joint posterior, whose covariance is n x n
_NUM_SAMPLES = 1024  # of a posterior that is not Gaussian


def posterior_of_expectation(
    model: Model, x: Tensor, contexts: Tensor, weights: Tensor
) -> GaussianMixture:
    r"""What is believed of the expected outcome of a decision.

    .. math:: \sum_i w_i f(x, c_i) \sim
        \mathcal N\big( w^\top \mu(x, C),\; w^\top \Sigma(x, C)\, w \big)

    with :math:`\Sigma` the *joint* posterior covariance over the contexts: errors of
    the model at different contexts are correlated, and do not average out as
    independent ones would. Each model of an ensemble makes one Gaussian of the mixture.
    Where the posterior is not Gaussian (an outcome transform such as ``Log``), 1024
    joint samples stand in the place of the Gaussians.

    Of more than 1024 contexts the mean takes all, and the variance 1024 that are drawn
    systematically in proportion to their weights, which makes it larger by about a
    thousandth of the variance at a single context.

    Shapes: ``contexts``: ``n x d_c``.
    """
    has_mass = weights > 0
    contexts, weights = contexts[has_mass], weights[has_mass]
    some, shares = thinned(contexts, weights, _MOST_CONTEXTS)
    found = posterior_of_sums(model, joined(x, some), shares.unsqueeze(0))
    means, deviations = found.means.squeeze(-1), found.deviations.squeeze(-1)
    is_gaussian = bool(deviations.any())  # samples are points
    if is_gaussian and len(some) < len(contexts):
        view = marginal_posterior(model, range(len(x))).over(x.unsqueeze(0))
        with torch.no_grad():
            each = view.at(contexts).means().flatten(1)  # n x S
        means = (weights.to(each) @ each).reshape(-1)
    return GaussianMixture(means, deviations)


def posterior_of_sums(model: Model, Z: Tensor, coefficients: Tensor) -> GaussianMixture:
    r"""What is believed of weighted sums of outcomes, of differences for example.

    .. math:: \sum_r a_{kr} f(z_r) \sim
        \mathcal N\big( a_k^\top \mu(Z),\; a_k^\top \Sigma(Z)\, a_k \big)

    with the joint posterior covariance of all rows. Models of an ensemble, and
    posteriors that are not Gaussian, as in ``posterior_of_expectation``.

    Shapes: ``Z``: ``r x d``, ``coefficients``: ``k x r``.
    """
    with torch.no_grad():
        posterior = model.posterior(Z)
        normal = _normal(posterior)
        if normal is None:
            samples = _sampled(posterior, _NUM_SAMPLES)
            means = samples @ coefficients.to(samples).mT
            return GaussianMixture(means, torch.zeros_like(means))
        a = coefficients.to(normal.mean)
        variances = ((a @ normal.covariance_matrix) * a).sum(-1)  # (S x) k
        means = normal.mean @ a.mT
    deviations = variances.clamp_min(0.0).sqrt()
    k = len(a)
    return GaussianMixture(means.reshape(-1, k), deviations.reshape(-1, k))


def joint_samples(model: Model, Z: Tensor, num: int) -> Tensor:
    """So many draws of the outcomes by each model, ``num S x r``, of ``r x d`` rows."""
    with torch.no_grad():
        posterior = model.posterior(Z)
        normal = _normal(posterior)
        if normal is None:
            return _sampled(posterior, num)
        # By eigenvalues: rows that are equal, or nearly, need no jitter.
        mean, covariance = normal.mean, normal.covariance_matrix
        values, vectors = torch.linalg.eigh(covariance)
        roots = vectors * values.clamp_min(0.0).sqrt().unsqueeze(-2)
        noise = torch.randn(*mean.shape[:-1], num, mean.shape[-1]).to(mean)
        return (mean.unsqueeze(-2) + noise @ roots.mT).reshape(-1, len(Z))


def joint_covariance(model: Model, Z: Tensor) -> tuple[Tensor, Tensor]:
    """The covariance of all rows ``r x d`` by each model, and the noise of an outcome.

    Shapes: returns ``S x r x r`` and ``S x r``.
    """
    with torch.no_grad():
        found = []
        for noisy in (False, True):
            posterior = model.posterior(Z, observation_noise=noisy)
            normal = _normal(posterior)
            found.append(
                _sampled(posterior, _NUM_SAMPLES).mT.cov()
                if normal is None
                else normal.covariance_matrix
            )
        S, with_noise = (each.reshape(-1, len(Z), len(Z)) for each in found)
        noise = (with_noise - S).diagonal(dim1=-2, dim2=-1).clamp_min(0.0)
        return S, noise


def _normal(posterior: Posterior) -> MultivariateNormal | None:
    """The distribution of a posterior if it is Gaussian, else None."""
    normal = getattr(posterior, "distribution", None)
    is_normal = isinstance(posterior, GPyTorchPosterior)
    return normal if is_normal and isinstance(normal, MultivariateNormal) else None


def _sampled(posterior: Posterior, num: int) -> Tensor:
    return posterior.rsample(torch.Size([num])).flatten(0, -3).squeeze(-1)


def joined(x: Tensor, contexts: Tensor) -> Tensor:
    """One decision ``d_x`` beside each of ``n x d_c`` contexts, ``n x d``."""
    return torch.cat([x.expand(len(contexts), -1), contexts], dim=-1)


def thinned(contexts: Tensor, weights: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """At most so many contexts, systematically: of equal weight if there were more."""
    if len(contexts) <= most:
        return contexts, weights
    steps = (torch.arange(most).to(weights) + 0.5) / most
    places = torch.searchsorted(weights.cumsum(-1), steps * weights.sum())
    places = places.clamp_max(len(contexts) - 1)
    return contexts[places], weights.new_full((most,), 1.0 / most)
