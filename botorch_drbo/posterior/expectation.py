"""The joint posterior of expectations over contexts."""

from __future__ import annotations

from typing import cast

import torch
from botorch.models.model import Model
from botorch.posteriors import GPyTorchPosterior, Posterior
from gpytorch.distributions import MultivariateNormal
from torch import Tensor

from botorch_drbo.posterior.mixture import GaussianMixture

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

    Args:
        model: A BoTorch model of ``[x, c]`` with one output.
        x: The decision, ``d_x``.
        contexts: ``n x d_c``.
        weights: Those of the distribution, ``n``; they sum to one.

    Returns:
        The mixture, in the units of the model's outcome. Samples are drawn by torch's
        global generator.

    Example:
        >>> from botorch.models import SingleTaskGP
        >>> Z = torch.rand(5, 2, dtype=torch.double)
        >>> model = SingleTaskGP(Z, Z.sum(-1, True)).eval()
        >>> weights = torch.full((5,), 0.2, dtype=torch.double)
        >>> posterior_of_expectation(model, Z[0, :1], Z[:, 1:], weights).means.shape
        torch.Size([1])
    """
    has_mass = weights > 0
    contexts, weights = contexts[has_mass], weights[has_mass]
    some, shares = thinned(contexts, weights, _MOST_CONTEXTS)
    found = posterior_of_sums(model, joined(x, some), shares.unsqueeze(0))
    means, deviations = found.means.squeeze(-1), found.deviations.squeeze(-1)
    is_gaussian = bool(deviations.any())  # samples are points
    if is_gaussian and len(some) < len(contexts):  # n (x S) x 1 x 1
        with torch.no_grad():
            alone = model.posterior(joined(x, contexts).unsqueeze(-2))
        each = cast(GPyTorchPosterior, alone).mean.flatten(1)
        means = (weights.to(each) @ each).reshape(-1)
    return GaussianMixture(means, deviations)


def posterior_of_sums(model: Model, Z: Tensor, coefficients: Tensor) -> GaussianMixture:
    r"""What is believed of weighted sums of outcomes, of differences for example.

    .. math:: \sum_r a_{kr} f(z_r) \sim
        \mathcal N\big( a_k^\top \mu(Z),\; a_k^\top \Sigma(Z)\, a_k \big)

    with the joint posterior covariance of all rows. Models of an ensemble, and
    posteriors that are not Gaussian, as in ``posterior_of_expectation``.

    Args:
        model: A BoTorch model with one output.
        Z: Its inputs, ``r x d``.
        coefficients: ``k x r``, of any sign.

    Returns:
        The mixture of ``k`` numbers, each by itself.

    Example:
        >>> from botorch.models import SingleTaskGP
        >>> Z = torch.rand(5, 2, dtype=torch.double)
        >>> model = SingleTaskGP(Z, Z.sum(-1, True)).eval()
        >>> difference = torch.tensor([[1.0, -1.0]], dtype=torch.double)
        >>> posterior_of_sums(model, Z[:2], difference).means.shape
        torch.Size([1, 1])
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
