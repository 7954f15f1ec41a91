"""Choose the fastest posterior that is right for a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

from botorch.acquisition.objective import (
    ExpectationPosteriorTransform,
    PosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.utils.transforms import is_ensemble
from torch import Tensor

from botorch_drbo.posterior.blocks import DEFAULT_MEMORY_BUDGET
from botorch_drbo.posterior.ensemble import EnsemblePosterior, ModelEnsemble
from botorch_drbo.posterior.exact import ExactPosterior
from botorch_drbo.posterior.generic import GenericPosterior
from botorch_drbo.posterior.models import only_model, settle
from botorch_drbo.posterior.product import ProductPosterior, factors_of
from botorch_drbo.posterior.view import MarginalPosterior

Method = Literal["auto", "product", "exact", "generic"]
"""How moments are computed; "auto" takes the fastest that is right for the model."""


def marginal_posterior(
    model: Model,
    context_indices: Sequence[int],
    *,
    posterior_transform: PosteriorTransform | None = None,
    pending: Tensor | None = None,
    pending_noise: float = 1.0,
    method: Method = "auto",
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> MarginalPosterior:
    r"""Build the marginal posterior of a model over decisions x contexts.

    Args:
        model: A fitted single-output BoTorch model of the joint input ``[x, c]``. A
            list of one model counts as that model.
        context_indices: The model's input columns that hold the context.
        posterior_transform: Combines several outputs into one, or changes the sign.
        pending: Joint inputs ``p x d`` that are being evaluated; see ``hallucinating``.
        pending_noise: Their noise variance, as a share of the model's.
        method: "product" for kernels that factorise over decision and context, "exact"
            for one cached factor (``SingleTaskGP``), "generic" for
            ``model.posterior``, "auto" for the first of these that supports the model;
            for a ``ModelEnsemble``, for each member.
        memory_budget: Bytes for the temporaries of one block.

    Returns:
        The posterior; ``over`` a set of contexts it gives a view.

    Raises:
        UnsupportedError: Not a BoTorch model, a model of several outputs without a
            transform that combines them, a batch of models, a model that adds points of
            its own, a model whose posterior has no mean or no variance, or "product" or
            "exact" for a model that these do not cover.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo.posterior import marginal_posterior
        >>> Z = torch.rand(5, 2, dtype=torch.double)
        >>> posterior = marginal_posterior(SingleTaskGP(Z, Z.sum(-1, True)), [1])
        >>> view = posterior.over(torch.rand(7, 1, dtype=torch.double))
        >>> mean, variance = view.at(Z[:, :1]).moments()
        >>> mean.shape, view.method
        (torch.Size([5, 7]), 'exact')
    """
    if pending is not None:
        known = marginal_posterior(
            model,
            context_indices,
            posterior_transform=posterior_transform,
            method=method,
            memory_budget=memory_budget,
        )
        return known.hallucinating(pending, pending_noise)
    model = only_model(model)
    if posterior_transform is not None and not isinstance(
        posterior_transform, PosteriorTransform
    ):
        raise UnsupportedError(
            "`posterior_transform` must be a PosteriorTransform, got "
            f"{type(posterior_transform).__name__}."
        )
    if isinstance(posterior_transform, ExpectationPosteriorTransform):
        raise UnsupportedError(
            "`ExpectationPosteriorTransform` takes the mean over contexts that an "
            "input transform has added. Here the objective takes it: leave the "
            "transform out, pass the contexts as a `ContextSet` (`weights` go there "
            "too) and `UncertaintyObjective.so()`."
        )
    scalarizes = getattr(posterior_transform, "scalarize", False)
    if model.num_outputs != 1 and not scalarizes:
        raise UnsupportedError(
            f"The model has {model.num_outputs} outputs. Pass a scalarizing "
            "`posterior_transform` (for example ScalarizedPosteriorTransform)."
        )
    if isinstance(posterior_transform, ScalarizedPosteriorTransform):
        num_weights = cast(Tensor, posterior_transform.weights).numel()
        if num_weights != model.num_outputs:
            raise UnsupportedError(
                f"`posterior_transform` has {num_weights} weights for a model of "
                f"{model.num_outputs} outputs."
            )
    transform = getattr(model, "input_transform", None)
    if getattr(transform, "is_one_to_many", False):
        raise UnsupportedError(
            "The model's input transform adds points of its own (AppendFeatures or "
            "InputPerturbation). Fit the model on the joint input [x, c] without it, "
            "and pass the contexts as a `ContextSet`."
        )
    if isinstance(model, ModelEnsemble):
        members = [
            marginal_posterior(
                member,
                context_indices,
                posterior_transform=posterior_transform,
                method=method,
                memory_budget=max(1, memory_budget // len(model.members)),
            )
            for member in model.members
        ]
        return EnsemblePosterior(members, model)
    if not is_ensemble(model) and len(_batch_shape(model)):
        raise UnsupportedError(
            f"The model is a batch of models (batch_shape {tuple(_batch_shape(model))})"
            ". Pass one single-output model, or an ensemble."
        )
    settle(model)
    options = {
        "posterior_transform": posterior_transform,
        "memory_budget": memory_budget,
    }
    exact = isinstance(model, SingleTaskGP) and ExactPosterior.supports(
        model, posterior_transform
    )
    factorises = factors_of(model, context_indices, posterior_transform)
    if method == "exact" and not exact:
        raise UnsupportedError(
            "The exact posterior needs a single-output SingleTaskGP with a Gaussian "
            f"likelihood and at most a Standardize outcome transform, got "
            f"{type(model).__name__}. Use method='auto' or method='generic'."
        )
    if method == "product" or (method == "auto" and factorises is not None):
        gp = cast(SingleTaskGP, model)
        return ProductPosterior(gp, context_indices, **options)
    if isinstance(model, SingleTaskGP) and exact and method != "generic":
        return ExactPosterior(model, context_indices, **options)
    return GenericPosterior(model, context_indices, **options)


def _batch_shape(model: Model) -> Sequence[int]:
    try:
        return model.batch_shape or ()  # a deterministic model may have None
    except NotImplementedError:  # BoTorch's default, where a model does not say
        return ()
