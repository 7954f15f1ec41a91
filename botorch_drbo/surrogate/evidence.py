"""The posterior density of hyper-parameters, with its gradient, and their priors.

In squared differences ``r_j^2`` of each column, in lengthscales. Slopes are those in
the logarithms of the lengthscales, and of a shape if there is one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, cast, final

import numpy as np
import torch
from gpytorch.kernels import (
    Kernel,
    MaternKernel,
    ProductKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)
from scipy.linalg import (
    cholesky,
    get_blas_funcs,
    get_lapack_funcs,
    solve_triangular,
)

from botorch_drbo.surrogate.base import ModelData

Array = np.ndarray


class HyperPrior(Protocol):
    """The density of a positive number, up to a constant factor."""

    def log_density(self, logarithm: Array) -> tuple[Array, Array]:
        """The logarithm of the density in the number itself, and its slope in log."""
        ...


@final
@dataclass(frozen=True)
class Gamma:
    """``p(v) ~ v^(a - 1) exp(-b v)``, of mean ``a / b``."""

    # ``a``.
    concentration: float
    # ``b``.
    rate: float

    def log_density(self, logarithm: Array) -> tuple[Array, Array]:
        """See ``HyperPrior``."""
        scaled = self.rate * np.exp(logarithm)
        power = self.concentration - 1.0
        return power * logarithm - scaled, power - scaled


@final
@dataclass(frozen=True)
class LogNormal:
    """The logarithm is normal."""

    # Its mean.
    location: float
    # Its standard deviation.
    scale: float

    def log_density(self, logarithm: Array) -> tuple[Array, Array]:
        """See ``HyperPrior``."""
        gap = (logarithm - self.location) / self.scale
        return -0.5 * gap**2 - logarithm, -gap / self.scale - 1.0

    def shared(self) -> LogNormal:
        """Of each of two lengthscales that share the distance of one, less certain."""
        middle = math.exp(self.location - self.scale**2)
        return around(math.sqrt(2.0) * middle, _SHARED)


def around(middle: float, scale: float) -> LogNormal:
    """A log-normal prior whose density, as of the number itself, is highest there."""
    return LogNormal(math.log(middle) + scale**2, scale)


@final
@dataclass(frozen=True)
class Flat:
    """Every number is as likely as any other."""

    def log_density(self, logarithm: Array) -> tuple[Array, Array]:
        """See ``HyperPrior``."""
        return np.zeros_like(logarithm), np.zeros_like(logarithm)


_APART = 0.15  # a lengthscale at which two levels have correlation exp(-44)


class Correlation(Protocol):
    """A kernel of size one."""

    num_shapes: ClassVar[int]
    """How many positive parameters there are beside the lengthscales."""

    def value_and_slopes(self, squared: Array, shapes: Array) -> tuple[Array, Array]:
        """Of squared differences ``d x p``: ``p`` values, ``(d + shapes) x p``."""
        ...

    def kernel(self, lengthscales: Array, shapes: Array) -> Kernel:
        """The same as GPyTorch has it, float64."""
        ...


@final
@dataclass(frozen=True)
class RBF:
    r"""``exp(-r^2 / 2)`` with ``r^2`` the sum over the columns."""

    num_shapes: ClassVar[int] = 0

    def value_and_slopes(self, squared: Array, shapes: Array) -> tuple[Array, Array]:
        """See ``Correlation``."""
        # r^2 has a factor l^-2 for each column, so d exp(-r^2/2) / d log l_j = k r_j^2.
        value = np.exp(-0.5 * squared.sum(0))
        return value, value * squared

    def kernel(self, lengthscales: Array, shapes: Array) -> Kernel:
        """See ``Correlation``."""
        return _of_lengthscales(RBFKernel(ard_num_dims=len(lengthscales)), lengthscales)


@final
@dataclass(frozen=True)
class ProductMatern:
    r"""A product of one-dimensional Matern kernels.

    .. math:: \prod_j \phi_\nu(a_j), \qquad a_j = \sqrt{2 \nu}\, r_j

    with ``phi`` the polynomial ``1 + a`` or ``1 + a + a^2 / 3`` times ``exp(-a)``. It
    factorises over decision and context, which the radial form does not.
    """

    num_shapes: ClassVar[int] = 0
    # ``nu``, 1.5 or 2.5.
    smoothness: float

    def value_and_slopes(self, squared: Array, shapes: Array) -> tuple[Array, Array]:
        """See ``Correlation``."""
        # Half-integer smoothness: a polynomial in a = sqrt(2 nu) |z - z'| / l, times
        # exp(-a).
        a = np.sqrt(2.0 * self.smoothness * squared)
        if self.smoothness == 1.5:
            polynomial, slope = 1.0 + a, a * a  # slope: -a d/da, times exp(a)
        else:
            polynomial = 1.0 + a + a * a / 3.0
            slope = a * a * (1.0 + a) / 3.0
        # A product of exponentials is one exponential of the sum: one call of exp.
        value = polynomial.prod(0) * np.exp(-a.sum(0))
        return value, value * (slope / polynomial)

    def kernel(self, lengthscales: Array, shapes: Array) -> Kernel:
        """See ``Correlation``."""
        parts = [
            _of_lengthscales(
                MaternKernel(self.smoothness, active_dims=[column]), lengthscale
            )
            for column, lengthscale in enumerate(np.asarray(lengthscales))
        ]
        return parts[0] if len(parts) == 1 else ProductKernel(*parts)


@final
@dataclass(frozen=True)
class RadialMatern:
    """``phi(sqrt(2 nu) r)`` with ``r^2`` the sum over the columns."""

    num_shapes: ClassVar[int] = 0
    # ``nu``, 1.5 or 2.5.
    smoothness: float

    def value_and_slopes(self, squared: Array, shapes: Array) -> tuple[Array, Array]:
        """See ``Correlation``."""
        # The same polynomial of the distance over all columns: not a product.
        a = np.sqrt(2.0 * self.smoothness * squared.sum(0))
        decay = np.exp(-a)
        if self.smoothness == 1.5:
            return (1.0 + a) * decay, 3.0 * decay * squared
        return (1.0 + a + a * a / 3.0) * decay, 5 / 3 * (1.0 + a) * decay * squared

    def kernel(self, lengthscales: Array, shapes: Array) -> Kernel:
        """See ``Correlation``."""
        kernel = MaternKernel(self.smoothness, ard_num_dims=len(lengthscales))
        return _of_lengthscales(kernel, lengthscales)


@final
@dataclass(frozen=True)
class RationalQuadratic:
    r"""``(1 + r^2 / (2 alpha))^-alpha``: RBF kernels of many lengthscales, mixed.

    The shape is ``alpha``.
    """

    num_shapes: ClassVar[int] = 1

    def value_and_slopes(self, squared: Array, shapes: Array) -> tuple[Array, Array]:
        """See ``Correlation``."""
        alpha = shapes[0]
        # A mixture of RBF kernels over Gamma distributed inverse squared lengthscales.
        excess = squared.sum(0) / (2.0 * alpha)
        value = (1.0 + excess) ** -alpha
        slopes = value / (1.0 + excess) * squared
        # d k / d log alpha; log1p keeps digits where alpha is large and this is nearly
        # an RBF.
        shape = alpha * value * (excess / (1.0 + excess) - np.log1p(excess))
        return value, np.concatenate([slopes, shape[None]])

    def kernel(self, lengthscales: Array, shapes: Array) -> Kernel:
        """See ``Correlation``."""
        kernel = RQKernel(ard_num_dims=len(lengthscales))
        kernel = cast(RQKernel, _of_lengthscales(kernel, lengthscales))
        kernel.alpha = torch.from_numpy(shapes)
        return kernel


@final
@dataclass(frozen=True)
class WithCategories:
    r"""A correlation of numbers, times one of each category that knows no order.

    .. math:: \phi(r)\, \prod_v \exp(-[z_v \ne z'_v] / l_v^2)

    which is RBF with one lengthscale for all columns of a category: two of its levels
    have squared distance 2. There is one lengthscale for each variable. Features of
    levels are further variables behind them, with a factor RBF each.
    """

    num_shapes: ClassVar[int] = 0
    # The correlation of the numbers; it has no shape.
    numbers: Correlation
    # Numbers and categories.
    num_variables: int
    # Variables that are categories, and how many levels each has.
    categories: Mapping[int, int]
    # Those with features, and how many.
    features: Mapping[int, int]

    @property
    def levels(self) -> list[int]:
        """The variables that are categories or features of one."""
        last = range(self.num_variables, self.num_variables + len(self.features))
        return [*self.categories, *last]

    def value_and_slopes(self, squared: Array, shapes: Array) -> tuple[Array, Array]:
        """See ``Correlation``; of squared differences of variables."""
        numbers, levels = self._numbers, self.levels
        of_numbers, slopes = self.numbers.value_and_slopes(squared[numbers], shapes)
        of_levels, level_slopes = RBF().value_and_slopes(squared[levels], shapes)
        # The product rule, column by column: each lengthscale belongs to one factor.
        joint = np.empty_like(squared)
        joint[numbers] = of_levels * slopes
        joint[levels] = of_numbers * level_slopes
        return of_numbers * of_levels, joint

    def kernel(self, lengthscales: Array, shapes: Array) -> Kernel:
        """See ``Correlation``."""
        levels = self.levels
        # A category has a lengthscale, repeated for each of its one-hot columns.
        widths = [*self.categories.values(), *self.features.values()]
        each = np.repeat(lengthscales[levels], widths)
        kernel = self._on(RBF().kernel(each, shapes), levels)
        if not self._numbers:
            return kernel
        of_numbers = self.numbers.kernel(lengthscales[self._numbers], shapes)
        return ProductKernel(self._on(of_numbers, self._numbers), kernel)

    def main_effects(self, variances: Array) -> list[Kernel]:
        """Of each category: ``a_v`` if the level is the same, otherwise nothing."""
        # An RBF so short that two levels are uncorrelated: GPyTorch has no kernel of
        # equality.
        apart = np.array([_APART])
        return [
            scaled(self._on(RBF().kernel(apart, apart[:0]), [variable]), variance)
            for variable, variance in zip(self.categories, variances, strict=True)
        ]

    @property
    def _numbers(self) -> list[int]:
        return [j for j in range(self.num_variables) if j not in self.categories]

    def _on(self, kernel: Kernel, variables: list[int]) -> Kernel:
        """On the columns of some variables, in their order."""
        widths: list[int] = []  # a category's features stand behind it
        for j in range(self.num_variables):
            widths += [self.categories.get(j, 1), self.features.get(j, 0)]
        parts = torch.arange(sum(widths)).split(widths)
        columns = [*parts[::2], *(parts[2 * j + 1] for j in self.features)]
        kernel.active_dims = torch.cat([columns[variable] for variable in variables])
        return kernel


def scaled(kernel: Kernel, variance: float) -> Kernel:
    """A kernel times a variance, float64."""
    kernel = ScaleKernel(kernel).double()
    kernel.outputscale = torch.tensor(variance, dtype=torch.double)
    return kernel


def _of_lengthscales(kernel: Kernel, lengthscales: Array) -> Kernel:
    """In float64 before it is set: a constant would be rounded to the default dtype."""
    kernel = kernel.double()
    kernel.lengthscale = torch.as_tensor(lengthscales)
    return kernel


_POTRF, _POTRI = get_lapack_funcs(("potrf", "potri"), dtype=np.float64)
(_SYMV,) = get_blas_funcs(("symv",), dtype=np.float64)
_CHUNK = 4096  # pairs: their temporaries stay in the cache
_LEAST_NOISE = 1e-6  # of given variances, in squared units of the spread
_SHARED = 1.0  # deviation of the prior of what names and features share
_MAIN_EFFECT = 0.2  # a usual variance, at which a search begins


class CategoryPriors(NamedTuple):
    """What is known beforehand of each category, whatever the number of its levels."""

    lengthscale: LogNormal
    """Of the root of ``l``, with ``exp(-1/l)`` the correlation of two levels."""
    main_effect: HyperPrior
    """Of the variance of its main effect."""
    interaction: HyperPrior
    """Of the variance of the product over all variables."""


@dataclass(frozen=True)
class Family:
    """A family of Gaussian processes, and what is known of its members beforehand."""

    # The kernel of size one.
    correlation: Correlation
    # The prior of each lengthscale.
    lengthscale: HyperPrior
    # That of the variance; None for a variance of one.
    outputscale: HyperPrior | None
    # That of the noise variance, where the noise is not given.
    noise: HyperPrior
    # That of a shape of the kernel.
    shape: HyperPrior = Flat()
    # Whether there is a constant mean, with a flat prior; otherwise zero.
    has_mean: bool = True
    # The priors of categories; None where each of their columns is a number.
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
    """

    def __init__(
        self, family: Family, data: ModelData, *, marginal: bool = False
    ) -> None:
        self.family, self.marginal = family, marginal
        self._squared = data.squared_differences.numpy()
        self._categories: list[int] = []
        self._shared: list[int] = []  # lengthscales of names with features, and theirs
        if family.categories is not None:
            self._squared = data.squared_differences_of_variables.numpy()
            self._categories = list(data.categories)
            rows = range(len(self._squared))
            self._shared = [*data.features, *rows[len(rows) - len(data.features) :]]
        # One-hot levels differ by 0 or 2 in squared distance: this is 1 for the same
        # level, 0 for two.
        self._same = 1.0 - 0.5 * self._squared[self._categories]  # v x p
        self._outcomes = data.scaled_outcomes.numpy()
        given = data.scaled_noise
        self._given = None if given is None else given.numpy().clip(_LEAST_NOISE)
        # Symmetric: each pair is computed once, and lies below the diagonal of a matrix
        # in the order of its columns, which is LAPACK's.
        t = len(self._outcomes)
        self._pairs = first, second = np.triu_indices(t, 1)
        self._places = second + t * first
        d, shapes = len(self._squared), family.correlation.num_shapes
        mains = d + shapes
        # Memory for all calls: to ask for it each time would take longer than they do.
        self._covariance = np.empty((t, t), order="F")
        self._entries = self._covariance.reshape(-1, order="F")  # the same numbers
        self._diagonal = self._entries[:: t + 1]
        self._ones = np.ones(t)
        self._correlations = np.empty(len(first))
        self._slopes = np.empty((mains, len(first)))
        self.size = mains + len(self._categories)
        of_levels = [*self._categories, *self._shared]
        self._priors: list[tuple[Array | slice, HyperPrior]] = [
            (np.delete(np.arange(d), of_levels), family.lengthscale)
        ]
        if shapes:
            self._priors.append((slice(d, mains), family.shape))
        if family.categories is not None:
            alone = [j for j in self._categories if j not in self._shared]
            self._priors += [
                (np.array(alone, int), family.categories.lengthscale),
                (np.array(self._shared, int), family.categories.lengthscale.shared()),
                (slice(mains, self.size), family.categories.main_effect),
            ]
        if family.outputscale is not None:
            self._priors.append((slice(self.size, self.size + 1), family.outputscale))
            self.size += 1
        if self._given is None:
            self._priors.append((slice(self.size, self.size + 1), family.noise))
            self.size += 1

    def hyperparameters(self, logarithms: Array) -> Hyperparameters:
        """Name the entries of a vector."""
        # Logarithms make a positive number unconstrained, and densities nearly
        # quadratic.
        values = np.exp(logarithms)
        d, mains = len(self._squared), len(self._slopes)
        scale = mains + len(self._categories)
        return Hyperparameters(
            values[:d],
            values[d:mains],
            1.0 if self.family.outputscale is None else float(values[scale]),
            float(values[-1]) if self._given is None else None,
            values[mains:scale],
        )

    def vector(self, lengthscale: float, outputscale: float, noise: float) -> Array:
        """The logarithms of hyper-parameters; of a shape and a category that of one."""
        d, shapes = len(self._squared), self.family.correlation.num_shapes
        values = np.full(d, lengthscale)
        values[[*self._categories, *self._shared]] = 1.0
        mains = [_MAIN_EFFECT] * len(self._categories)
        values = [*values, *[1.0] * shapes, *mains]
        values += [] if self.family.outputscale is None else [outputscale]
        values += [noise] if self._given is None else []
        return np.log(values)

    def __call__(self, logarithms: Array) -> Conditioned:
        """Evaluate the density."""
        # Rasmussen and Williams 2006, equations 5.8 and 5.9.
        values = self.hyperparameters(logarithms)
        _, _, scale, noise, mains = values
        i, j = self._pairs
        # Cholesky: half the work of an LU factorisation, and it tells whether K is
        # positive definite.
        root, failed = _POTRF(self._filled(values), lower=1, overwrite_a=1)
        correlations, slopes = self._correlations, self._slopes
        if failed:
            return Conditioned(-math.inf, np.zeros(self.size), 0.0, math.inf)
        # The log determinant is twice the sum of the logs of the diagonal of the root.
        density = -np.log(self._diagonal).sum()
        # The inverse itself, since every slope needs all of its entries.
        precision, _ = _POTRI(root, lower=1, overwrite_c=1)
        y, mean, weight = self._outcomes, 0.0, math.inf
        sums = 0.0 * self._ones
        if self.family.has_mean:
            # Generalised least squares: the most likely constant mean.
            sums = _SYMV(1.0, precision, self._ones, lower=1)
            weight = sums.sum()
            mean = sums @ y / weight
        alpha = _SYMV(1.0, precision, y - mean, lower=1)
        density -= 0.5 * (y - mean) @ alpha
        # d log p = tr(M dK) / 2, with M = alpha alpha' - K^-1
        upper = alpha.take(i) * alpha.take(j) - self._entries.take(self._places)
        trace = 0.5 * (alpha @ alpha - self._diagonal.sum())
        if self.marginal and self.family.has_mean:
            # The mean integrated out under a flat prior: one more determinant, that of
            # the precision 1' K^-1 1.
            upper += sums.take(i) * sums.take(j) / weight
            trace += 0.5 * (sums @ sums) / weight
            density -= 0.5 * math.log(weight)
        # M and dK are symmetric: half the trace of their product is the sum over the
        # pairs above the diagonal, and half of that on it.
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

    def predicted(self, logarithms: Array, told: int) -> tuple[Array, Array]:
        r"""Means and deviations of all outcomes but the first, given these.

        .. math:: \mu = m + L_{21} L_{11}^{-1} (y_1 - m), \qquad
            \Sigma = L_{22} L_{22}'

        with ``L L' = K`` of all rows, noise included.
        """
        covariance = self._filled(self.hyperparameters(logarithms))
        root = cholesky(covariance, lower=True, check_finite=False)
        known = np.stack([np.ones(told), self._outcomes[:told]], 1)
        one, y = solve_triangular(root[:told, :told], known, lower=True).T
        mean = one @ y / (one @ one) if self.family.has_mean else 0.0
        means = mean + root[told:, :told] @ (y - mean * one)
        return means, np.sqrt(np.square(root[told:, told:]).sum(1))

    def _filled(self, values: Hyperparameters) -> Array:
        """``K`` below the diagonal and on it, in memory that the next call reuses."""
        # K = s R + sum_v a_v E_v + N: the interaction, the main effects of categories,
        # the noise.
        lengthscales, shapes, scale, noise, mains = values
        correlations, slopes = self._correlations, self._slopes
        squares = np.square(lengthscales)[:, None]
        for start in range(0, len(correlations), _CHUNK):
            part = slice(start, start + _CHUNK)
            correlations[part], slopes[:, part] = (
                self.family.correlation.value_and_slopes(
                    self._squared[:, part] / squares, shapes
                )
            )
        # LAPACK reads what is below the diagonal alone.
        self._entries[self._places] = scale * correlations + mains @ self._same
        prior = scale + mains.sum()
        self._diagonal[:] = prior + (self._given if noise is None else noise)
        return self._covariance
