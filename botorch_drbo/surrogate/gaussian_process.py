"""Gaussian processes with an output scale: the library's own, and EDRBO's."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import final

import numpy as np
import torch
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.optim.stopping import ExpMAStoppingCriterion
from gpytorch.constraints import Positive
from gpytorch.kernels import AdditiveKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ConstantMean, ZeroMean
from scipy.optimize import fmin_l_bfgs_b

from botorch_drbo._validation import check_choice, check_count, option
from botorch_drbo.posterior.mixture import GaussianMixture
from botorch_drbo.surrogate.base import (
    ModelData,
    Surrogate,
)
from botorch_drbo.surrogate.evidence import (
    RBF,
    Array,
    CategoryPriors,
    Conditioned,
    Correlation,
    Family,
    Flat,
    Gamma,
    LogNormal,
    LogPosterior,
    ProductMatern,
    RadialMatern,
    RationalQuadratic,
    WithCategories,
    around,
    scaled,
)
from botorch_drbo.surrogate.inducing_points import MAX_EXACT, fit_rows

KERNELS: dict[str, Correlation] = {
    "rbf": RBF(),
    "matern32": ProductMatern(1.5),
    "matern52": ProductMatern(2.5),
}
CATEGORIES = {
    "botorch": CategoryPriors(around(1.5, 0.25), around(0.01, 1.0), around(0.7, 0.5)),
    "rbf": CategoryPriors(around(1.5, 0.5), around(0.01, 1.0), around(0.7, 0.5)),
    "matern52": CategoryPriors(around(1.4, 0.25), around(0.1, 0.5), around(0.5, 1.0)),
    "matern32": CategoryPriors(around(0.6, 0.5), around(0.22, 1.5), around(0.5, 1.0)),
}
"""Of each member of the default ensemble. They differ, because where all variables are
categories the kernels of numbers do not: see ``benchmarks/development/categories.md``.
"""
_MOST_FOR_GAMMA = 8  # columns: beyond it lengthscales have to grow with their number
_RANGES = {"lengthscale": (1e-2, 1e2), "outputscale": (1e-3, 1e3), "noise": (1e-4, 1e2)}
FEW_ROWS = 199  # with more of them a fit begins with some
_FIRST_ROWS = (100, 300)  # a third of the rows, between these
_NEAR = 2e-6  # in log density by row: a step that gains less is the last
_STARTS = ((1.0, 1.0, 1e-2), (0.4, 1.0, 0.3))  # lengthscale in centres, s, noise


@final
@dataclass(frozen=True)
class GaussianProcess(Surrogate):
    r"""A Gaussian process with Gamma priors, fitted by maximum a posteriori.

    .. math:: k(z, z') = s\, \phi(u, u'), \qquad l_j \sim \mathrm{Gamma}(3, 6), \;
        s \sim \mathrm{Gamma}(2, 0.15), \; \sigma^2 \sim \mathrm{Gamma}(1.1, 0.05)

    with ``u`` the inputs scaled to the unit cube, outcomes standardised, and a constant
    mean. Beyond eight decisions and contexts lengthscales grow with their number ``d``,

    .. math:: l_j \sim \mathrm{LogNormal}(\ln 0.5 + \tfrac12 \ln \tfrac d4,\; 0.7), \;
        s \sim \mathrm{LogNormal}(0, 0.7), \;
        \sigma^2 \sim \mathrm{LogNormal}(-6, 1.5).

    The posterior density is maximised from two starting points, a smooth and a rough
    one, and the better maximum is kept. With 200 rows or more, a third of them (100 to
    300) is used first, and the result is refined with all rows. Compared with BoTorch's
    default, these priors favour functions that vary within the box: with few outcomes
    the model is less certain.

    In a space with categories ``v``

    .. math:: k(z, z') = \sum_v a_v\, [z_v = z'_v]
        + s\, \phi(u, u') \prod_v e^{-[z_v \ne z'_v] / l_v}

    with main effects of the categories, and one lengthscale for each. Its logarithms of
    ``a``, ``l`` and ``s`` are normal, whatever the number of levels, and around other
    values for each kernel, see ``CATEGORIES``.

    Args:
        kernel: "matern52" and "matern32", products over the columns; or "rbf".
        max_exact: With more outcomes the model uses inducing points: see
            ``inducing_points.fit_rows``.

    Raises:
        InputDataError: An unknown kernel, or a ``max_exact`` that is not a positive
            integer.

    Example:
        >>> from botorch_drbo.surrogate import GaussianProcess
        >>> GaussianProcess("rbf")
        GaussianProcess(kernel='rbf', max_exact=3000)
    """

    kernel: str = option("matern52", partial(check_choice, choices=sorted(KERNELS)))
    max_exact: int = option(MAX_EXACT, check_count)

    def family(self, num_variables: int) -> Family:
        r"""The model and its priors for given numbers of columns."""
        correlation = KERNELS[self.kernel]
        if num_variables <= _MOST_FOR_GAMMA:
            return Family(
                correlation, Gamma(3.0, 6.0), Gamma(2.0, 0.15), Gamma(1.1, 0.05)
            )
        return Family(
            correlation,
            LogNormal(math.log(usual_lengthscale(num_variables)), 0.7),
            LogNormal(0.0, 0.7),
            LogNormal(-6.0, 1.5),
        )

    def fit(self, data: ModelData) -> Model:
        r"""Fit from two starting points and keep the better one."""
        return fit_rows(
            data, self.max_exact, lambda rows: most_likely(self._family(rows), rows)
        )

    def predict_others(self, told: ModelData, every: ModelData) -> GaussianMixture:
        r"""Predict in closed form."""
        if len(told.inputs) > self.max_exact:
            return super().predict_others(told, every)
        family = self._family(told)
        return predicted(family, maximum(LogPosterior(family, told), told), told, every)

    def _family(self, data: ModelData) -> Family:
        family = self.family(data.inputs.shape[-1])
        return with_categories(family, data, CATEGORIES[self.kernel])


def with_categories(
    family: Family, data: ModelData, categories: CategoryPriors
) -> Family:
    r"""A family with main effects of categories, and one lengthscale for each.

    .. math:: \sum_v a_v [z_v = z'_v]
        + s\, \phi(u, u') \prod_v \exp(-[z_v \ne z'_v] / l_v)
    """
    if not data.categories:
        return family
    d = data.inputs.shape[-1]
    return replace(
        family,
        correlation=WithCategories(
            family.correlation,
            d,
            data.categories,
            {j: table.shape[-1] for j, table in data.features.items()},
        ),
        outputscale=categories.interaction,
        categories=categories,
    )


def most_likely(family: Family, data: ModelData) -> SingleTaskGP:
    """The model of the most likely hyper-parameters."""
    posterior = LogPosterior(family, data)
    return model_with(data, posterior, maximum(posterior, data))


def predicted(
    family: Family, logarithms: Array, told: ModelData, every: ModelData
) -> GaussianMixture:
    """By hyper-parameters, ``1 x m``: see ``Surrogate.predict_others``."""
    # A model of GPyTorch that is asked once takes longer than its fit to few rows.
    found = LogPosterior(family, every).predicted(logarithms, len(told.inputs))
    means, deviations = (torch.from_numpy(each).unsqueeze(0) for each in found)
    level, unit = (each.double().cpu() for each in told.units)
    return GaussianMixture(level + unit * means, unit * deviations)


def maximum(posterior: LogPosterior, data: ModelData) -> Array:
    """The most likely logarithms of hyper-parameters."""
    usual = usual_lengthscale(data.inputs.shape[-1])
    t = len(data.inputs)
    if t <= FEW_ROWS:
        return maxima(posterior, usual)[0]
    # Both starts climb a density of few rows, at a fraction of the cost: its maximum is
    # near that of all rows, which one climb finds from there.
    least, most = _FIRST_ROWS
    some = LogPosterior(posterior.family, data.sample(max(least, min(most, t // 3))))
    return climbed(posterior, maxima(some, usual)[0], _NEAR * t)[0]


def ranges(posterior: LogPosterior) -> list[Array]:
    r"""Between which logarithms hyper-parameters are looked for, ``size x 2``."""
    limits = {name: np.log(limit) for name, limit in _RANGES.items()}
    values = posterior.hyperparameters(np.zeros(posterior.size))
    bounds = [limits["lengthscale"]] * (len(values.lengthscales) + len(values.shapes))
    bounds += [limits["outputscale"]] * len(values.main_effects)
    if posterior.family.outputscale is not None:
        bounds.append(limits["outputscale"])
    if values.noise is not None:
        bounds.append(limits["noise"])
    return bounds


def maxima(posterior: LogPosterior, lengthscale: float) -> tuple[Array, Array]:
    """Climb the density from a smooth start and from a rough one."""

    first, second = sorted(
        (
            climbed(posterior, posterior.vector(share * lengthscale, *others))
            for share, *others in _STARTS
        ),
        key=lambda end: end[1],
    )
    return first[0], second[0]


def climbed(
    posterior: LogPosterior, start: Array, tolerance: float | None = None
) -> tuple[Array, float]:
    """Climb the density by L-BFGS-B: the end, and minus its log density."""

    # Of few rows SciPy's own memory of the last point costs as much as its steps.
    @lru_cache(maxsize=1)
    def at(point: bytes) -> Conditioned:
        return posterior(np.frombuffer(point))

    spacings = 1e7  # SciPy's own tolerance, in those of the larger of loss and one
    if tolerance is not None:
        size = max(abs(at(start.tobytes()).log_density), 1.0)
        spacings = tolerance / (size * np.finfo(float).eps)
    end, loss, _ = fmin_l_bfgs_b(
        lambda logarithms: -at(logarithms.tobytes()).log_density,
        start,
        lambda logarithms: -at(logarithms.tobytes()).gradient,
        bounds=ranges(posterior),
        factr=spacings,
    )
    return end, float(loss)


def model_with(
    data: ModelData,
    posterior: LogPosterior,
    logarithms: Array,
    mean: float | None = None,
) -> SingleTaskGP:
    """The model of hyper-parameters."""
    family, values = posterior.family, posterior.hyperparameters(logarithms)
    kernel = family.correlation.kernel(values.lengthscales, values.shapes)
    if family.outputscale is not None:
        kernel = scaled(kernel, values.outputscale)
    if isinstance(family.correlation, WithCategories):
        mains = family.correlation.main_effects(values.main_effects)
        kernel = AdditiveKernel(*mains, kernel)
    likelihood = None  # one for the given variances
    if values.noise is not None:
        likelihood = GaussianLikelihood(noise_constraint=Positive()).double()
        likelihood.noise = torch.tensor(values.noise, dtype=torch.double)
    mean_module = ZeroMean()
    if family.has_mean:
        mean_module = ConstantMean().double()
        constant = posterior(logarithms).mean if mean is None else mean
        mean_module.initialize(constant=constant)
    model = data.model(
        covar_module=kernel, likelihood=likelihood, mean_module=mean_module
    )
    return model.to(data.inputs).eval()


def usual_lengthscale(num_variables: int) -> float:
    """Where the prior of a lengthscale has its middle, in sides of the box."""
    if num_variables <= _MOST_FOR_GAMMA:
        return 0.5
    return 0.5 * math.sqrt(num_variables / 4)


EDRBO_KERNELS: dict[str, Correlation] = {
    "rbf": RBF(),
    "rational_quadratic": RationalQuadratic(),
    "matern32": RadialMatern(1.5),
    "matern52": RadialMatern(2.5),
}
_NOISE = LogNormal(-4.0, 1.0)
_LEAST_NOISE, _FIRST_NOISE = 1e-4, math.exp(-5.0)  # the prior's mode
_LEAST_RANGE = 1e-8
_STEPS = 110
_MEMORY, _DECAY = 0.999, 1e-2  # of AdamW: of squared slopes, of the weights
_RELATIVE_GAIN = 1e-5  # of a moving average of the loss: less is the end


@final
@dataclass(frozen=True)
class EdrboKernel(Surrogate):
    r"""The models of EDRBO: mean zero, variance one, few fitting steps.

    Only the noise has a prior. Lengthscales start at ``ln 2`` of the range in which an
    input has been observed, and stay short, because 110 steps of AdamW with a cyclic
    learning rate between 1e-4 and 1e-2 cannot change them much. This follows the public
    code of [Ramazyan2026edrbo]_. An input with only one value counts by its box.

    Args:
        kernel: "rbf", "rational_quadratic", "matern32" or "matern52", radial.
        max_exact: With more outcomes the model uses inducing points: see
            ``inducing_points.fit_rows``.

    Raises:
        InputDataError: An unknown kernel, or a ``max_exact`` that is not a positive
            integer.

    Example:
        >>> from botorch_drbo.surrogate import EdrboKernel
        >>> EdrboKernel("rational_quadratic")
        EdrboKernel(kernel='rational_quadratic', max_exact=3000)
    """

    kernel: str = option("rbf", partial(check_choice, choices=sorted(EDRBO_KERNELS)))
    max_exact: int = option(MAX_EXACT, check_count)

    def fit(self, data: ModelData) -> Model:
        r"""Take the steps."""
        return fit_rows(data, self.max_exact, self._fit)

    def predict_others(self, told: ModelData, every: ModelData) -> GaussianMixture:
        r"""Predict in closed form."""
        if len(told.inputs) > self.max_exact:
            return super().predict_others(told, every)
        fitted = self._stepped(LogPosterior(self._family, told), told)
        return predicted(self._family, fitted, told, every)

    @property
    def _family(self) -> Family:
        return Family(
            EDRBO_KERNELS[self.kernel],
            Flat(),
            None,
            _NOISE,
            shape=Flat(),
            has_mean=False,
        )

    def _fit(self, data: ModelData) -> SingleTaskGP:
        posterior = LogPosterior(self._family, data)
        return model_with(data, posterior, self._stepped(posterior, data))

    def _stepped(self, posterior: LogPosterior, data: ModelData) -> Array:
        learns_noise, t = data.Yvar is None, len(data.outcomes)
        count = posterior.size - learns_noise  # of lengthscales and shapes
        units = np.ones(posterior.size)
        units[: data.num_columns] = _ranges(data)

        def positive(steps: np.ndarray) -> np.ndarray:
            """The softplus of all but the noise variance."""
            softplus = np.logaddexp(0.0, steps[:count])
            return np.concatenate([softplus, steps[count:]])

        def loss(steps: np.ndarray) -> tuple[float, np.ndarray]:
            values = positive(steps)
            found = posterior(np.log(units * values))
            gradient = -found.gradient / values / t
            gradient[:count] /= 1.0 + np.exp(-steps[:count])
            return -found.log_density / t, gradient

        first = np.append(np.zeros(count), [_FIRST_NOISE] * learns_noise)
        least = np.append(np.full(count, -np.inf), [_LEAST_NOISE] * learns_noise)
        return np.log(units * positive(_adamw(loss, first, least)))


def _ranges(data: ModelData) -> np.ndarray:
    """The largest difference of two inputs, a share of the box; one where none is."""
    squared = data.squared_differences.numpy()
    ranges = np.sqrt(squared.max(axis=1, initial=0.0))
    return np.where(ranges < _LEAST_RANGE, 1.0, ranges)


def _adamw(
    loss: Callable[[np.ndarray], tuple[float, np.ndarray]],
    steps: np.ndarray,
    least: np.ndarray,
) -> np.ndarray:
    """AdamW with torch's ``CyclicLR``, in NumPy: of five numbers, torch costs more."""
    weights = ExpMAStoppingCriterion().weights.double().numpy()
    mean, square, values = np.zeros_like(steps), np.zeros_like(steps), []
    for number in range(_STEPS):
        value, gradient = loss(steps)
        values.append(value)
        if len(values) > len(weights):
            recent = np.array(values[-len(weights) - 1 :])
            before, now = float(recent[:-1] @ weights), float(recent[1:] @ weights)
            if before - now < _RELATIVE_GAIN * abs(before):
                break
        # From 0 to 1 in 10 steps, and back in 20.
        phase = number % 30
        height = phase / 10 if phase <= 10 else (30 - phase) / 20
        rate, inertia = 1e-4 + (1e-2 - 1e-4) * height, 0.9 - 0.1 * height
        mean += (1.0 - inertia) * (gradient - mean)
        square = _MEMORY * square + (1.0 - _MEMORY) * gradient * gradient
        deviation = np.sqrt(square) / math.sqrt(1.0 - _MEMORY ** (number + 1)) + 1e-8
        ahead = rate / (1.0 - inertia ** (number + 1)) * mean / deviation
        steps = np.maximum((1.0 - _DECAY * rate) * steps - ahead, least)
    return steps
