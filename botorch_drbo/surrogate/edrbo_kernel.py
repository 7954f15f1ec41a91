"""A member of EDRBO's ensemble: a kernel without priors, fitted by a few steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.optim.stopping import ExpMAStoppingCriterion

from botorch_drbo._validation import check_choice, check_count, option
from botorch_drbo.surrogate.base import ModelData, Surrogate
from botorch_drbo.surrogate.correlations import (
    RBF,
    Correlation,
    RadialMatern,
    RationalQuadratic,
)
from botorch_drbo.surrogate.evidence import Family, LogPosterior
from botorch_drbo.surrogate.gaussian_process import model_with
from botorch_drbo.surrogate.hyperpriors import Flat, LogNormal
from botorch_drbo.surrogate.inducing_points import MAX_EXACT, fit_rows

KERNELS: dict[str, Correlation] = {
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

    kernel: str = option("rbf", partial(check_choice, choices=sorted(KERNELS)))
    max_exact: int = option(MAX_EXACT, check_count)

    def fit(self, data: ModelData) -> Model:
        r"""Take the steps."""
        return fit_rows(data, self.max_exact, self._fit)

    def _fit(self, data: ModelData) -> SingleTaskGP:
        family = Family(
            KERNELS[self.kernel], Flat(), None, _NOISE, shape=Flat(), has_mean=False
        )
        posterior = LogPosterior(family, data)
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
        fitted = positive(_adamw(loss, first, least))
        return model_with(data, posterior, np.log(units * fitted))


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
    """AdamW with torch's ``CyclicLR``, in NumPy: of five numbers, torch costs more.

    Args:
        loss: Value and gradient at ``k`` numbers.
        steps: Where it begins, ``k``.
        least: Lower bounds, ``k``.

    Returns:
        Where it ends: after 110 steps, or as BoTorch's ``ExpMAStoppingCriterion`` says.
    """
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
