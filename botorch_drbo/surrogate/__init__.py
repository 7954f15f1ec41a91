"""Surrogates: models of the outcome, their priors, kernels, ensembles and fits."""

from botorch_drbo.surrogate.base import ModelData, Surrogate
from botorch_drbo.surrogate.botorch_default import BoTorchDefault
from botorch_drbo.surrogate.by_name import SURROGATES, EnsembleOf
from botorch_drbo.surrogate.gaussian_process import (
    EDRBO_KERNELS,
    EdrboKernel,
    GaussianProcess,
)
from botorch_drbo.surrogate.hyperparameters import (
    FixedHyperparameters,
    HyperparameterDraws,
)

SURROGATES |= {
    "botorch": BoTorchDefault(),
    "matern": GaussianProcess("matern52"),
    "matern32": GaussianProcess("matern32"),
    "rbf": GaussianProcess("rbf"),
    "hyperparameters": HyperparameterDraws(),
    "kernels": EnsembleOf([EdrboKernel(kernel) for kernel in EDRBO_KERNELS]),
}
# The four that beat "botorch" on fresh seeds: benchmarks/development/claims_second.md.
SURROGATES["ensemble"] = EnsembleOf(["botorch", "matern", "rbf", "matern32"])

__all__ = [
    "SURROGATES",
    "EdrboKernel",
    "EnsembleOf",
    "FixedHyperparameters",
    "GaussianProcess",
    "HyperparameterDraws",
    "ModelData",
    "Surrogate",
]
