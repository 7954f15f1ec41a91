"""The posterior density of hyper-parameters, with its gradient."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import get_lapack_funcs

from botorch_drbo.surrogate.base import ModelData
from botorch_drbo.surrogate.correlations import Array, Correlation
from botorch_drbo.surrogate.hyperpriors import Flat, HyperPrior

_POTRF, _POTRI = get_lapack_funcs(("potrf", "potri"), dtype=np.float64)
_LEAST_NOISE = 1e-6  # of given variances, in squared units of the spread
_MAIN_EFFECT = 0.2  # a usual variance, at which a search begins


class CategoryPriors(NamedTuple):
    """What is known beforehand of each category, whatever the number of its levels."""

    lengthscale: HyperPrior
    """Of the root of ``l``, with ``exp(-1/l)`` the correlation of two levels."""
    main_effect: HyperPrior
    """Of the variance of its main effect."""
    interaction: HyperPrior
    """Of the variance of the product over all variables."""


@dataclass(frozen=True)
class Family:
    r"""A family of Gaussian processes, and what is known of its members beforehand.

    Attributes:
        correlation: The kernel of size one.
        lengthscale: The prior of each lengthscale.
        outputscale: That of the variance; None for a variance of one.
        noise: That of the noise variance, where the noise is not given.
        shape: That of a shape of the kernel.
        has_mean: Whether there is a constant mean, with a flat prior; otherwise zero.
        categories: The priors of categories; None where each of their columns is a
            number.
    """

    correlation: Correlation
    lengthscale: HyperPrior
    outputscale: HyperPrior | None
    noise: HyperPrior
    shape: HyperPrior = Flat()
    has_mean: bool = True
    categories: CategoryPriors | None = None


class Hyperparameters(NamedTuple):
    """In units of the unit cube and of the spread of the outcomes."""

    lengthscales: Array
    shapes: Array
    outputscale: float
    noise: float | None
    main_effects: Array
    """The variances of those of categories."""


class Conditioned(NamedTuple):
    """What hyper-parameters make of the data."""

    log_density: float
    """Of the outcomes, and of the hyper-parameters, up to a constant."""
    gradient: Array
    """In the logarithms."""
    mean: float
    """The most likely constant mean."""
    mean_precision: float
    """One over the variance of what the outcomes say of the mean."""


class LogPosterior:
    r"""The posterior density of hyper-parameters, in their logarithms.

    .. math:: \log p(y \mid \theta, m) + \log p(\theta), \qquad
        \log p(y \mid \theta, m) = -\tfrac12 r' K^{-1} r - \tfrac12 \log \det K

    with ``r = y - m``, at the most likely mean ``m``. ``log p`` is the density in the
    numbers themselves, as BoTorch has it: its maximum is not moved by the logarithms.
    If the family has priors of categories, ``K`` has their main effects
    :math:`\sum_v a_v [z_v = z'_v]` too.

    With ``marginal`` it is the density of the logarithms, the mean integrated out:

    .. math:: \log p(y \mid \theta, m) - \tfrac12 \log(1' K^{-1} 1)
        + \log p(\theta) + \sum_j \log \theta_j

    Args:
        family: The Gaussian processes and their priors.
        data: What has been observed.
        marginal: Whether draws are to be taken from it, and no maximum.
    """

    def __init__(
        self, family: Family, data: ModelData, *, marginal: bool = False
    ) -> None:
        self.family, self.marginal = family, marginal
        self._squared = data.squared_differences.numpy()
        self._categories: list[int] = []
        if family.categories is not None:
            self._squared = data.squared_differences_of_variables.numpy()
            self._categories = list(data.categories)
        # One-hot levels differ by 0 or 2 in squared distance: this is 1 for the same
        # level, 0 for two.
        self._same = 1.0 - 0.5 * self._squared[self._categories]  # v x p
        self._outcomes = data.scaled_outcomes.numpy()
        given = data.scaled_noise
        self._given = None if given is None else given.numpy().clip(_LEAST_NOISE)
        # Symmetric: each pair is computed once.
        self._pairs = np.triu_indices(len(self._outcomes), 1)
        d, shapes = len(self._squared), family.correlation.num_shapes
        mains = d + shapes
        self.size = mains + len(self._categories)
        self._priors: list[tuple[Array | slice, HyperPrior]] = [
            (np.delete(np.arange(d), self._categories), family.lengthscale),
            (slice(d, mains), family.shape),
        ]
        if family.categories is not None:
            self._priors += [
                (np.array(self._categories), family.categories.lengthscale),
                (slice(mains, self.size), family.categories.main_effect),
            ]
        if family.outputscale is not None:
            self._priors.append((slice(self.size, self.size + 1), family.outputscale))
            self.size += 1
        if self._given is None:
            self._priors.append((slice(self.size, self.size + 1), family.noise))
            self.size += 1

    def hyperparameters(self, logarithms: Array) -> Hyperparameters:
        r"""Name the entries of a vector.

        Args:
            logarithms: ``size``.

        Returns:
            The hyper-parameters.
        """
        # Logarithms make a positive number unconstrained, and densities nearly
        # quadratic.
        values = np.exp(logarithms)
        d, shapes = len(self._squared), self.family.correlation.num_shapes
        mains, rest = np.split(values[d + shapes :], [len(self._categories)])
        rest = rest.tolist()
        return Hyperparameters(
            values[:d],
            values[d : d + shapes],
            1.0 if self.family.outputscale is None else rest.pop(0),
            rest.pop(0) if self._given is None else None,
            mains,
        )

    def vector(self, lengthscale: float, outputscale: float, noise: float) -> Array:
        r"""The logarithms of hyper-parameters; of a shape and a category that of one.

        Args:
            lengthscale: Of each number.
            outputscale: The variance, if there is one.
            noise: The noise variance, if it is not given.

        Returns:
            ``size`` numbers.
        """
        d, shapes = len(self._squared), self.family.correlation.num_shapes
        values = np.full(d, lengthscale)
        values[self._categories] = 1.0
        mains = [_MAIN_EFFECT] * len(self._categories)
        values = [*values, *[1.0] * shapes, *mains]
        values += [] if self.family.outputscale is None else [outputscale]
        values += [noise] if self._given is None else []
        return np.log(values)

    def __call__(self, logarithms: Array) -> Conditioned:
        r"""Evaluate the density.

        Args:
            logarithms: ``size``.

        Returns:
            The density with its gradient, and the mean.
        """
        # Rasmussen and Williams 2006, equations 5.8 and 5.9, with K = s R + sum_v a_v
        # E_v + N: the interaction, the main effects of categories, the noise.
        lengthscales, shapes, scale, noise, mains = self.hyperparameters(logarithms)
        correlations, slopes = self.family.correlation.value_and_slopes(
            self._squared / np.square(lengthscales)[:, None], shapes
        )
        t, (i, j) = len(self._outcomes), self._pairs
        # LAPACK works on columns: in this order nothing is copied.
        covariance = np.empty((t, t), order="F")
        covariance[i, j] = covariance[j, i] = scale * correlations + mains @ self._same
        given = np.zeros(t) if self._given is None else self._given
        prior = scale + mains.sum()
        covariance[np.diag_indices(t)] = prior + (given if noise is None else noise)
        # Cholesky: half the work of an LU factorisation, and it tells whether K is
        # positive definite.
        root, failed = _POTRF(covariance, lower=1)
        if failed:
            return Conditioned(-math.inf, np.zeros(self.size), 0.0, math.inf)
        # The inverse itself, since every slope needs all of its entries.
        lower, _ = _POTRI(root, lower=1)
        precision = np.tril(lower) + np.tril(lower, -1).T
        y, mean, weight = self._outcomes, 0.0, precision.sum()
        if self.family.has_mean:
            # Generalised least squares: the most likely constant mean.
            mean = (precision @ y).sum() / weight
        alpha = precision @ (y - mean)
        # d log p = tr(M dK) / 2
        M = np.outer(alpha, alpha) - precision
        # The log determinant is twice the sum of the logs of the diagonal of the root.
        density = -0.5 * (y - mean) @ alpha - np.log(root.diagonal()).sum()
        if self.marginal and self.family.has_mean:
            # The mean integrated out under a flat prior: one more determinant, that of
            # the precision 1' K^-1 1.
            sums = precision.sum(0)
            M += np.outer(sums, sums) / weight
            density -= 0.5 * math.log(weight)
        # M and dK are symmetric: half the trace of their product is the sum over the
        # pairs above the diagonal, and half of that on it.
        upper, trace = M[i, j], 0.5 * M.diagonal().sum()
        gradient = [scale * (slopes @ upper), mains * (self._same @ upper + trace)]
        if self.family.outputscale is not None:
            gradient.append([scale * (correlations @ upper + trace)])
        if noise is not None:
            gradient.append([noise * trace])
        gradient = np.concatenate(gradient)
        if self.marginal:  # of the logarithms: their Jacobian
            density, gradient = density + logarithms.sum(), gradient + 1.0
        # Maximum a posteriori: log priors of the numbers themselves add up.
        for part, prior in self._priors:
            value, slope = prior.log_density(logarithms[part])
            density += value.sum()
            gradient[part] += slope
        return Conditioned(float(density), gradient, float(mean), float(weight))
