"""The prior of a model of decisions: read, conditioned on other data, and measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import torch
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.models.transforms import Standardize
from gpytorch.kernels import RBFKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ConstantMean
from torch import Tensor

from botorch_drbo.confidence import maximum_information_gain
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.sampling import sobol
from botorch_drbo.surrogate.hyperparameters import FixedHyperparameters

_NUM_POINTS = 512  # of the box, among which the information gain is the largest


@dataclass(frozen=True)
class KnownPrior:
    """The hyperparameters of a model of ``x``; the kernel's inputs fill a unit cube.

    Args:
        lengthscale: One per decision column, in units of the cube.
        outputscale: The prior variance.
        noise_variance: That of the outcomes.
        mean: The prior mean.
        regularizer: The papers' ``lambda`` if it is not ``noise_variance`` over
            ``outputscale``: the noise ratio of the posterior, not of the outcomes.
    """

    lengthscale: tuple[float, ...]
    outputscale: float
    noise_variance: float
    mean: float
    regularizer: float | None = None

    @classmethod
    def of(cls, model: Model, regularizer: float | None = None) -> KnownPrior:
        """Read them off a recipe's model, with its outcome transform undone."""
        model = cast(SingleTaskGP, model)
        kernel = cast(RBFKernel, model.covar_module)
        lengthscale = kernel.lengthscale.flatten().tolist()
        mean = cast(Tensor, cast(ConstantMean, model.mean_module).constant).item()
        noise = cast(GaussianLikelihood, model.likelihood).noise.item()
        units = cast(Standardize, model.outcome_transform)
        level, unit = units.means.item(), units.stdvs.item()
        level += unit * mean
        return cls(tuple(lengthscale), unit**2, unit**2 * noise, level, regularizer)

    @property
    def noise_ratio(self) -> float:
        """The papers' ``lambda``: noise relative to a kernel of size one."""
        return self.regularization / self.outputscale

    @property
    def noise_std(self) -> float:
        """That of the outcomes, in the units of y."""
        return math.sqrt(self.noise_variance)

    @property
    def regularization(self) -> float:
        """``lambda`` in squared units of y: the noise variance of the posterior."""
        if self.regularizer is not None:
            return self.regularizer * self.outputscale
        return self.noise_variance

    @property
    def prior_std(self) -> float:
        """In the units of y."""
        return math.sqrt(self.outputscale)

    def condition(self, X: Tensor, Y: Tensor, space: SearchSpace) -> SingleTaskGP:
        """The model of these data."""
        prior = FixedHyperparameters(
            self.lengthscale, self.regularization, self.outputscale
        )
        model = prior.model(X, Y, space.bounds, space.d_x)
        mean = self.mean / self.prior_std  # the model's unit of y
        cast(ConstantMean, model.mean_module).initialize(constant=mean)
        return model.requires_grad_(False)

    def information_gains(self, num: int) -> tuple[float, ...]:
        """The largest information gain of 1, 2, ..., ``num`` outcomes in the box."""
        return _greedy_gains(self.lengthscale, self.noise_ratio, num)


@lru_cache(maxsize=16)
def _greedy_gains(
    lengthscale: tuple[float, ...], noise_ratio: float, num: int
) -> tuple[float, ...]:
    d = len(lengthscale)
    kernel = RBFKernel(ard_num_dims=d).double().requires_grad_(False)
    kernel.lengthscale = torch.tensor(lengthscale, dtype=torch.double)
    points = sobol(_NUM_POINTS, d, seed=0)
    found = maximum_information_gain(kernel, points, num, noise_ratio)
    return tuple(found.gains.tolist())
