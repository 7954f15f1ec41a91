"""The models for which sample paths can be drawn."""

from __future__ import annotations

from typing import cast

from botorch.acquisition.objective import (
    PosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.models.transforms.outcome import Standardize
from botorch.sampling.pathwise.utils import get_train_inputs
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_drbo.kernels.components import kernel_components
from botorch_drbo.kernels.inducing import prior_kernel
from botorch_drbo.posterior.ensemble import ModelEnsemble
from botorch_drbo.posterior.exact import ExactPosterior


def supports_paths(
    model: Model, posterior_transform: PosteriorTransform | None = None
) -> str | None:
    r"""Find out whether ``PosteriorPaths`` can draw sample paths of a model.

    Args:
        model: Any BoTorch model.
        posterior_transform: What is to be applied to the paths.

    Returns:
        None if it can, otherwise the reason why not, in words.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> Z = torch.rand(5, 3, dtype=torch.double)
        >>> supports_paths(SingleTaskGP(Z, Z[:, :2]))
        'it has 2 outputs'
    """
    if isinstance(model, ModelEnsemble):
        reasons = [supports_paths(m, posterior_transform) for m in model.members]
        return next((f"of a member: {reason}" for reason in reasons if reason), None)
    if not isinstance(model, SingleTaskGP):
        return f"it is a {type(model).__name__}, not a SingleTaskGP"
    if model.num_outputs != 1:
        return f"it has {model.num_outputs} outputs"
    if model.train_targets.ndim != 1:
        return f"it is a batch of models (batch_shape {tuple(model.batch_shape)})"
    if type(posterior_transform) not in (type(None), ScalarizedPosteriorTransform):
        return (
            f"its posterior transform is {type(posterior_transform).__name__}, not a "
            "weight and an offset (ScalarizedPosteriorTransform)"
        )
    if isinstance(posterior_transform, ScalarizedPosteriorTransform):
        num_weights = cast(Tensor, posterior_transform.weights).numel()
        if num_weights != 1:
            return f"its posterior transform has {num_weights} weights for one output"
    transform = getattr(model, "input_transform", None)
    if getattr(transform, "is_one_to_many", False):
        return f"its input transform {type(transform).__name__} adds points of its own"
    transform = getattr(model, "outcome_transform", None)
    if type(transform) not in (type(None), Standardize):
        return f"its outcome transform is {type(transform).__name__}, not Standardize"
    if not ExactPosterior.supports(model, None):
        return (
            f"its class {type(model).__name__} computes its own posterior, or its "
            f"likelihood {type(model.likelihood).__name__} is not Gaussian"
        )
    try:
        kernel_components(
            prior_kernel(cast(Kernel, model.covar_module)),
            get_train_inputs(model, transformed=True)[0].shape[-1],
        )
    except UnsupportedError as error:
        return str(error)
    return None
