"""The prior scale of a model's outcomes, in units of y."""

from __future__ import annotations

from typing import cast

import torch
from botorch.acquisition.objective import (
    PosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model
from botorch.posteriors.gpytorch import GPyTorchPosterior
from gpytorch.settings import prior_mode
from torch import Tensor

from botorch_drbo.posterior.gpytorch_settings import any_variance
from botorch_drbo.posterior.models import some_inputs

_FEW = 4  # inputs: the prior variance of a stationary kernel is the same everywhere


def prior_variance(
    model: Model,
    posterior_transform: PosteriorTransform | None = None,
    *,
    at: Tensor | None = None,
) -> float:
    r"""Average the prior variance of a model's outcome over a few inputs.

    .. math:: \bar\sigma_0^2 = \frac1k \sum_{i=1}^k
        \operatorname{Var}_{\text{prior}} f(z_i)

    In other units of the outcome, ``a y + b``, it is ``a^2`` times as large: what is
    small or large compared with it does not depend on units.

    Args:
        model: A BoTorch model, or an ensemble. One that is no exact Gaussian process
            has no prior without data: then it is the variance with the data.
        posterior_transform: Combines several outputs into one, or changes the sign.
        at: Inputs ``k x d``; by default the first training inputs.

    Returns:
        The variance in squared units of the outcome, noise not included; zero for a
        model that is certain.

    Raises:
        UnsupportedError: No inputs for a model that has none of its own.

    Example:
        >>> from botorch.models import SingleTaskGP
        >>> Z = torch.rand(5, 2, dtype=torch.double)
        >>> y = torch.tensor([[0.0], [0.0], [3.0], [6.0], [6.0]]).double()
        >>> round(prior_variance(SingleTaskGP(Z, y)), 6)  # that of the outcomes
        9.0
    """
    if at is None:
        inputs = some_inputs(model)
        if inputs is None:
            raise UnsupportedError(
                f"{type(model).__name__} has no training inputs at which its prior "
                "variance could be asked for. Pass `at`."
            )
        at = inputs.reshape(-1, inputs.shape[-1])[:_FEW]
    square = 1.0
    if model.num_outputs == 1 and isinstance(
        posterior_transform, ScalarizedPosteriorTransform
    ):  # BoTorch applies it to Gaussian posteriors alone
        square = cast(Tensor, posterior_transform.weights).square().item()
        posterior_transform = None
    with torch.no_grad(), prior_mode(), any_variance():
        posterior = cast(
            GPyTorchPosterior,
            model.posterior(at, posterior_transform=posterior_transform),
        )
        return square * posterior.variance.mean().item()
