"""BoTorch's own model, with its default priors, fitted in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast, final

from botorch.models.model import Model
from botorch.models.utils.gpytorch_modules import (
    get_covar_module_with_dim_scaled_prior,
    get_gaussian_likelihood_with_lognormal_prior,
)
from gpytorch.priors import LogNormalPrior

from botorch_drbo._validation import check_count, option
from botorch_drbo.posterior.mixture import GaussianMixture
from botorch_drbo.surrogate.base import ModelData, Surrogate
from botorch_drbo.surrogate.evidence import (
    RBF,
    Family,
    Flat,
    HyperPrior,
    LogNormal,
    LogPosterior,
)
from botorch_drbo.surrogate.gaussian_process import (
    CATEGORIES,
    maximum,
    most_likely,
    predicted,
    with_categories,
)
from botorch_drbo.surrogate.inducing_points import MAX_EXACT, fit_rows


@final
@dataclass(frozen=True)
class BoTorchDefault(Surrogate):
    r"""``SingleTaskGP`` as BoTorch makes it: an RBF kernel of size one.

    Lengthscales have a log-normal prior around long ones, which grow with the root of
    the number of columns [Hvarfner2024vanilla]_. With few outcomes of a function that
    changes within the box it is sure of itself too early. The density that BoTorch
    climbs from one starting point is climbed from two, as ``GaussianProcess`` does it.
    In a space with categories it has their main effects, a size, and one lengthscale
    for each, as that has.

    Args:
        max_exact: With more outcomes the model uses inducing points: see
            ``inducing_points.fit_rows``.

    Raises:
        InputDataError: A ``max_exact`` that is no count.

    Example:
        >>> BoTorchDefault()
        BoTorchDefault(max_exact=3000)
    """

    max_exact: int = option(MAX_EXACT, check_count)

    def fit(self, data: ModelData) -> Model:
        r"""Maximise the posterior density of the hyper-parameters."""
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
        family = botorch_family(data.inputs.shape[-1], data)
        return with_categories(family, data, CATEGORIES["botorch"])


def botorch_family(num_columns: int, data: ModelData) -> Family:
    """BoTorch's default processes of some columns, and its priors."""
    kernel = get_covar_module_with_dim_scaled_prior(num_columns)
    noise: HyperPrior = Flat()  # of given noise
    if data.Yvar is None:
        likelihood = get_gaussian_likelihood_with_lognormal_prior()
        noise = _as_prior(likelihood.noise_covar.noise_prior)
    return Family(RBF(), _as_prior(kernel.lengthscale_prior), None, noise)


def _as_prior(prior: object) -> LogNormal:
    known = cast(LogNormalPrior, prior)
    return LogNormal(float(known.loc), float(known.scale))
