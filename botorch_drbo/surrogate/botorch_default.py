"""BoTorch's own model, with its default priors, fitted in logarithms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast, final

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.models.utils.gpytorch_modules import (
    get_covar_module_with_dim_scaled_prior,
)
from botorch.optim.closures import get_loss_closure_with_grads
from botorch.optim.core import OptimizationResult, scipy_minimize
from botorch.optim.utils import get_parameters_and_bounds
from gpytorch.kernels import RBFKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ConstantMean
from gpytorch.mlls import ExactMarginalLogLikelihood, MarginalLogLikelihood
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from botorch_drbo._validation import check_count, option
from botorch_drbo.surrogate.base import (
    FIRST_ROWS,
    MANY_ROWS,
    ModelData,
    Surrogate,
)
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
    NEAR,
    climbed,
    most_likely,
    with_categories,
)
from botorch_drbo.surrogate.inducing_points import MAX_EXACT, fit_rows

Loss = Callable[[], tuple[Tensor, Sequence[Tensor | None]]]


def minimise_in_logarithms(
    mll: MarginalLogLikelihood, closure: Loss | None = None
) -> OptimizationResult:
    """Fit by L-BFGS-B in the logarithms of what is positive.

    An ``optimizer`` for BoTorch's ``fit_gpytorch_mll``, in place of its own, which
    steps in the noise variance and the lengthscales themselves. Those differ by orders
    of magnitude, and so do the slopes in them: half of its evaluations go by until it
    knows. The minima are the same. The loss of Ackley 2+1 in ``[x, c]``, BoTorch's
    default model: 45, 48, 43 and 38 evaluations after 8, 15, 40 and 100 outcomes, in
    logarithms 16, 15, 17 and 17. Where there are several minima either way may end in
    the better one.
    """
    parameters, bounds = get_parameters_and_bounds(mll, requires_grad=True)
    loss = closure or get_loss_closure_with_grads(mll, parameters)
    # A parameter that GPyTorch transforms has no bounds, and is left as it is.
    limits = {name: [*map(torch.as_tensor, both)] for name, both in bounds.items()}
    positive = {name for name, (lower, _) in limits.items() if bool((lower > 0).all())}
    steps = {
        name: value.detach().log() if name in positive else value.detach().clone()
        for name, value in parameters.items()
    }

    def take_steps() -> None:
        with torch.no_grad():
            for name, value in parameters.items():
                if name in positive:  # rounding could lead out of the bounds
                    value.copy_(steps[name].exp().clamp(*limits[name]))
                else:
                    value.copy_(steps[name])

    def in_steps() -> tuple[Tensor, list[Tensor | None]]:
        take_steps()
        value, gradients = loss()
        return value, [
            gradient * parameters[name].detach()
            if name in positive and gradient is not None
            else gradient
            for name, gradient in zip(parameters, gradients, strict=True)
        ]

    in_logarithms: dict[str, Any] = {
        name: [bound.log() for bound in both] if name in positive else both
        for name, both in limits.items()
    }
    result = scipy_minimize(in_steps, steps, in_logarithms)
    take_steps()
    return result


@final
@dataclass(frozen=True)
class BoTorchDefault(Surrogate):
    r"""``SingleTaskGP`` as BoTorch makes it: an RBF kernel of size one.

    Lengthscales have a log-normal prior around long ones, which grow with the root of
    the number of columns [Hvarfner2024vanilla]_. With few outcomes of a function that
    changes within the box it is sure of itself too early. With 500 rows or more
    the fit begins where that to 300 of them ended. In a space with categories it has
    their main effects, a size, and one lengthscale for each, as ``GaussianProcess``.

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
        return fit_rows(data, self.max_exact, self._fit)

    def _fit(self, data: ModelData) -> SingleTaskGP:
        if data.categories:
            family = family_of_variables(data)
            family = with_categories(family, data, CATEGORIES["botorch"])
            return most_likely(family, data)
        if len(data.inputs) > MANY_ROWS:
            return self._climbed(data, self._fit(data.sample(FIRST_ROWS)))
        model = data.model()
        likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
        fit_gpytorch_mll(likelihood, optimizer=minimise_in_logarithms)
        return model.eval()

    def _climbed(self, data: ModelData, start: SingleTaskGP) -> SingleTaskGP:
        """The same density of all rows, in closed form, from where some rows ended."""
        posterior = LogPosterior(_family(start), data)
        kernel, likelihood = cast(RBFKernel, start.covar_module), start.likelihood
        values = [kernel.lengthscale.flatten()]
        if data.Yvar is None:
            values.append(cast(Tensor, likelihood.noise).flatten())
        logarithms = torch.cat(values).detach().double().cpu().log().numpy()
        logarithms = climbed(posterior, logarithms, NEAR * len(data.inputs)).x
        found = posterior.hyperparameters(logarithms)
        kernel.lengthscale = torch.as_tensor(found.lengthscales)
        if found.noise is not None:
            likelihood.initialize(noise=found.noise)
        mean = cast(ConstantMean, start.mean_module)
        mean.initialize(constant=posterior(logarithms).mean)
        return data.model(
            covar_module=kernel,
            likelihood=likelihood if data.Yvar is None else None,
            mean_module=mean,
        ).eval()


def family_of_variables(data: ModelData) -> Family:
    """BoTorch's processes and priors, a category counted as one column."""
    kernel = get_covar_module_with_dim_scaled_prior(data.inputs.shape[-1])
    return _family(data.model(covar_module=kernel))


def _family(model: SingleTaskGP) -> Family:
    """The processes and priors of BoTorch's default model."""
    kernel = cast(RBFKernel, model.covar_module)
    lengthscale = cast(LogNormalPrior, kernel.lengthscale_prior)
    noise: HyperPrior = Flat()  # of given noise
    if isinstance(model.likelihood, GaussianLikelihood):
        noise = _as_prior(
            cast(LogNormalPrior, model.likelihood.noise_covar.noise_prior)
        )
    return Family(RBF(), _as_prior(lengthscale), None, noise)


def _as_prior(prior: LogNormalPrior) -> LogNormal:
    return LogNormal(float(prior.loc), float(prior.scale))
