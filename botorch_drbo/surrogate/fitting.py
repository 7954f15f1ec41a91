"""The fit of hyper-parameters, in their logarithms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from botorch.optim.closures import get_loss_closure_with_grads
from botorch.optim.core import OptimizationResult, scipy_minimize
from botorch.optim.utils import get_parameters_and_bounds
from gpytorch.mlls import MarginalLogLikelihood
from torch import Tensor

Loss = Callable[[], tuple[Tensor, Sequence[Tensor | None]]]


def minimise_in_logarithms(
    mll: MarginalLogLikelihood, closure: Loss | None = None
) -> OptimizationResult:
    r"""Fit by L-BFGS-B in the logarithms of what is positive.

    An ``optimizer`` for BoTorch's ``fit_gpytorch_mll``, in place of its own, which
    steps in the noise variance and the lengthscales themselves. Those differ by orders
    of magnitude, and so do the slopes in them: half of its evaluations go by until it
    knows. The minima are the same. The loss of Ackley 2+1 in ``[x, c]``, BoTorch's
    default model: 45, 48, 43 and 38 evaluations after 8, 15, 40 and 100 outcomes, in
    logarithms 16, 15, 17 and 17. Where there are several minima either way may end in
    the better one.

    Args:
        mll: The marginal log likelihood of a model in training mode.
        closure: The loss and its gradient, which also is left in the parameters; by
            default BoTorch's.

    Returns:
        The result. The parameters are the best ones found.
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
