"""Slopes of moments in the context, for models whose slopes have no closed form."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from botorch_drbo.posterior.view import MomentSlopes


def slopes_by_autograd(
    moments: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    X: Tensor,
    contexts: Tensor,
) -> MomentSlopes:
    r"""Differentiate moments in the context, for models of any kind.

    Args:
        moments: From decisions ``b x d_x`` and contexts ``b x k x d_c`` to means and
            variances ``b x k``, or ``b x S x k`` of an ensemble.
        X: Decisions, ``b x d_x``.
        contexts: ``k x d_c`` or ``b x k x d_c``; ensembles also ``b x S x k x d_c``.

    Returns:
        Moments and slopes, differentiable in ``X``.
    """
    graph = torch.is_grad_enabled() and X.requires_grad
    members = contexts.shape[1] if contexts.ndim == 4 else 1
    with torch.enable_grad():
        flat = contexts.flatten(1, 2) if contexts.ndim == 4 else contexts
        # Each pair of decision and context has a copy of its own: the gradient of the
        # sum over all pairs is that of each.
        leaf = flat.detach().expand(len(X), -1, -1).clone().requires_grad_()
        found = moments(X, leaf)  # b (x S) x (members k), twice
        if contexts.ndim == 4:  # each model looks at contexts of its own
            # Every model was asked at all models' contexts: it keeps those at its own.
            found = tuple(
                part.unflatten(-1, (members, -1)).diagonal(dim1=1, dim2=2).mT
                for part in found
            )  # b x S x k
        slopes = []
        for part in found:
            models = part.unbind(1) if part.ndim == 3 else [part]
            gradients = [_gradient(model, leaf, graph) for model in models]
            if contexts.ndim == 4:
                gradients = [
                    gradient.unflatten(1, (members, -1))[:, s]
                    for s, gradient in enumerate(gradients)
                ]
            slopes.append(torch.stack(gradients, 1) if part.ndim == 3 else gradients[0])
    if graph:
        return MomentSlopes(*found, *slopes)
    return MomentSlopes(*(part.detach() for part in (*found, *slopes)))


def _gradient(values: Tensor, leaf: Tensor, graph: bool) -> Tensor:
    """Zero where the values do not depend on the leaf at all."""
    if not values.requires_grad:
        return torch.zeros_like(leaf)
    (gradient,) = torch.autograd.grad(
        values.sum(),
        leaf,
        retain_graph=True,
        create_graph=graph,
        materialize_grads=True,
    )
    return gradient
