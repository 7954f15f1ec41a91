"""BoTorch's own model, with its default priors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from gpytorch.mlls import ExactMarginalLogLikelihood

from botorch_drbo._validation import check_count
from botorch_drbo.surrogate.base import ModelData, Surrogate
from botorch_drbo.surrogate.fitting import minimise_in_logarithms
from botorch_drbo.surrogate.inducing_points import MAX_EXACT, fit_rows


@final
@dataclass(frozen=True)
class BoTorchDefault(Surrogate):
    r"""``SingleTaskGP`` as BoTorch makes it: an RBF kernel of size one.

    Lengthscales have a log-normal prior around long ones, which grow with the root of
    the number of columns [Hvarfner2024vanilla]_. With few outcomes of a function that
    changes within the box it is sure of itself too early.

    Args:
        max_exact: With more outcomes the model is one of inducing points: see
            ``inducing_points.fit_rows``.

    Raises:
        InputDataError: A ``max_exact`` that is no count.

    Example:
        >>> BoTorchDefault()
        BoTorchDefault(max_exact=3000)
    """

    max_exact: int = MAX_EXACT

    def __post_init__(self) -> None:
        """Check the option."""
        check_count(self.max_exact, "max_exact")

    def fit(self, data: ModelData) -> Model:
        r"""Maximise the posterior density of the hyper-parameters."""
        return fit_rows(data, self.max_exact, self._fit)

    def _fit(self, data: ModelData) -> SingleTaskGP:
        model = data.model()
        likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
        fit_gpytorch_mll(likelihood, optimizer=minimise_in_logarithms)
        return model.eval()
