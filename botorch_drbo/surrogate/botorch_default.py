"""BoTorch's own model, with its default priors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood

from botorch_drbo.surrogate.base import ModelData, Surrogate
from botorch_drbo.surrogate.fitting import minimise_in_logarithms


@final
@dataclass(frozen=True)
class BoTorchDefault(Surrogate):
    r"""``SingleTaskGP`` as BoTorch makes it: an RBF kernel of size one.

    Lengthscales have a log-normal prior around long ones, which grow with the root of
    the number of columns [Hvarfner2024vanilla]_. With few outcomes of a function that
    changes within the box it is sure of itself too early.

    Example:
        >>> BoTorchDefault()
        BoTorchDefault()
    """

    def fit(self, data: ModelData) -> SingleTaskGP:
        r"""Maximise the posterior density of the hyper-parameters."""
        model = data.model()
        likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
        fit_gpytorch_mll(likelihood, optimizer=minimise_in_logarithms)
        return model.eval()
