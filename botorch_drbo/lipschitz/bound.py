"""A Lipschitz constant of the upper confidence bound that is certainly large enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import Normalize
from botorch.models.transforms.outcome import Standardize
from botorch.sampling.pathwise.utils import get_train_inputs
from gpytorch.kernels import Kernel
from gpytorch.means import ConstantMean, ZeroMean
from torch import Tensor

from botorch_drbo._validation import check_bounds, check_nonnegative
from botorch_drbo.kernels.components import curvature_at_zero, kernel_components
from botorch_drbo.posterior.training import training_system


def kernel_lipschitz_constant(
    model: SingleTaskGP, context_indices: Sequence[int], context_bounds: Tensor
) -> Tensor:
    r"""The Lipschitz constant of a kernel's own metric in the context.

    .. math::
        d_k(z, z') = \sqrt{k(z,z) + k(z',z') - 2 k(z,z')} \le L_k \lVert
        \tilde c - \tilde c' \rVert_2, \qquad
        L_k^2 = \max_j -\partial^2_{\tilde c_j} k(0)

    for inputs that differ in the context only, scaled to the unit cube. Exact for
    stationary kernels: by Bochner's theorem ``1 - cos`` never exceeds its parabola.

    Args:
        model: A ``SingleTaskGP`` whose kernel is built from RBF, Matern-3/2,
            Matern-5/2, scale, sum and product kernels.
        context_indices: The model's input columns that hold the context.
        context_bounds: The box that becomes the unit cube, ``2 x d_c``.

    Returns:
        ``L_k`` in units of the model's (standardised) outcome, a scalar.

    Raises:
        UnsupportedError: Another kernel, Matern-1/2 (its metric is not Lipschitz), or
            an input transform other than ``Normalize``.
    """
    check_bounds(context_bounds, "context_bounds", num_columns=len(context_indices))
    if model.train_targets.ndim != 1:
        raise UnsupportedError(
            "The upper bound needs one SingleTaskGP of one output, got a batch: "
            f"{type(model).__name__}. Use the sampled LipschitzConstant."
        )
    transform = getattr(model, "input_transform", None)
    if transform is not None and not isinstance(transform, Normalize):
        raise UnsupportedError(
            "The upper bound knows the `Normalize` input transform only, got "
            f"{type(transform).__name__}. Use the sampled LipschitzConstant."
        )
    d = get_train_inputs(model, transformed=True)[0].shape[-1]
    curvature = _curvature(model, d)
    widths = torch.zeros(d).to(curvature)
    spans = (context_bounds[1] - context_bounds[0]).to(curvature)
    widths[torch.as_tensor(context_indices)] = spans
    if transform is not None:
        gains = torch.ones(d).to(widths)
        columns = getattr(transform, "indices", torch.arange(d))
        gains[columns] = transform.coefficient.detach().to(gains).flatten()[columns]
        widths = widths / gains
    # L_k^2 = max_j -d2k/dc_j^2 (0) by the chain rule: columns are scaled by widths.
    return (curvature * widths.square()).max().sqrt()


def lipschitz_upper_bound(
    model: SingleTaskGP,
    beta: float | Tensor,
    context_indices: Sequence[int],
    context_bounds: Tensor,
    *,
    norm_bound: float | None = None,
) -> Tensor:
    r"""A certified Lipschitz constant of ``mu + sqrt(beta) sigma`` in the context.

    .. math:: L \le (\lVert \mu \rVert_k + \sqrt\beta) \, L_k

    because ``mu`` lies in the kernel's space and ``sigma`` is 1-Lipschitz in the
    kernel's metric. It holds for every decision at once. With ``norm_bound`` it is
    Lemma 3 of the paper instead, ``2 B L_k``, where ``B`` bounds both the norm of the
    mean and ``sqrt(beta)`` (in units of the standardised outcome).

    Args:
        model: A ``SingleTaskGP`` with a constant mean; see
            ``kernel_lipschitz_constant`` for its kernel.
        beta: The squared width of the confidence bound.
        context_indices: The model's input columns that hold the context.
        context_bounds: The box that becomes the unit cube, ``2 x d_c``.
        norm_bound: ``B`` of Lemma 3, or None for the model's own, tighter, numbers.

    Returns:
        A scalar in units of the outcome, for contexts scaled to the unit cube.

    Raises:
        UnsupportedError: A mean, kernel or transform that the formula does not cover.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo.lipschitz import lipschitz_upper_bound
        >>> Z = torch.linspace(0.0, 1.0, 16, dtype=torch.double).reshape(8, 2)
        >>> model = SingleTaskGP(Z, Z.sum(-1, True))
        >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
        >>> print(f"{lipschitz_upper_bound(model, 2.25, [1], unit).item():.2f}")
        8.10

    [Micheli2025wdrbo]_, Lemma 3.
    """
    beta = check_nonnegative(beta, "beta")
    if type(model.mean_module) not in (ConstantMean, ZeroMean):
        raise UnsupportedError(
            "The upper bound needs a constant mean, got "
            f"{type(model.mean_module).__name__}. Use the sampled LipschitzConstant."
        )
    transform = getattr(model, "outcome_transform", None)
    if type(transform) not in (type(None), Standardize):
        raise UnsupportedError(
            "The upper bound knows the `Standardize` outcome transform only, got "
            f"{type(transform).__name__}. Use the sampled LipschitzConstant."
        )
    constant = kernel_lipschitz_constant(model, context_indices, context_bounds)
    scale = 1.0 if transform is None else transform.stdvs.detach().squeeze()
    if norm_bound is not None:
        return scale * 2.0 * check_nonnegative(norm_bound, "norm_bound") * constant
    # |mu|_k^2 = alpha' K alpha, with K = (K + noise) - noise.
    training = training_system(model)
    alpha = training.alpha
    kernel_matrix = training.covariance - training.noise.diag()
    norm = (alpha.mT @ kernel_matrix @ alpha).sqrt().squeeze()
    return scale * (norm + beta.to(norm).sqrt()) * constant


def _curvature(model: SingleTaskGP, d: int) -> Tensor:
    """``-d2k/dz_j^2 (0)`` in each column of the transformed inputs, ``d``."""
    try:
        components = kernel_components(cast(Kernel, model.covar_module), d)
        curvatures = [curvature_at_zero(component) for component in components]
    except UnsupportedError as error:
        raise UnsupportedError(
            f"No Lipschitz bound is known for this model: {error}. It needs RBF, "
            "Matern-3/2 or Matern-5/2, scaled, added or multiplied. Use the sampled "
            "LipschitzConstant instead."
        ) from error
    return torch.stack(curvatures).sum(0)
