"""Chains of autograd functions run by hand, where autograd would cost more than they.

For ten decisions PyTorch's bookkeeping takes several times as long as the arithmetic.
So a chain of the library's own autograd functions can be run on NumPy arrays, forward
and then backward at once; autograd sees one function, whose gradient is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class Call:
    """One call of an autograd function on arrays; stands in for its context.

    Args:
        function: A ``torch.autograd.Function`` whose code runs on arrays too.
        inputs: Its inputs; the first is the one to differentiate in.
    """

    def __init__(self, function: type[Any], *inputs: Any) -> None:
        self.needs_input_grad = (True, *[False] * (len(inputs) - 1))
        self.saved_tensors: tuple[Any, ...] = ()
        self.function = function
        self.value = function.forward(self, *inputs)

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep what the function wants to see again."""
        self.saved_tensors = tensors

    def pull(self, gradient: Any) -> Any:
        """The gradient in the first input, from that in the value."""
        return self.function.backward(self, gradient)[0]


def by_hand(
    chain: Callable[[Any], tuple[Any, Any]],
    again: Callable[[Tensor], Tensor],
    X: Tensor,
) -> Tensor:
    """Run a chain that finds values and gradients together.

    Args:
        chain: From the array of ``X`` to the values ``b`` and their gradients, of the
            shape of ``X``.
        again: The same values by autograd, for a second derivative.
        X: ``b x d``, on a CPU.

    Returns:
        The values, ``b``.
    """
    return _ByHand.apply(X, chain, again)


class _ByHand(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        X: Tensor,
        chain: Callable[[Any], tuple[Any, Any]],
        again: Callable[[Tensor], Tensor],
    ) -> Tensor:
        values, gradient = chain(X.detach().numpy())
        ctx.save_for_backward(X)
        ctx.gradient, ctx.again = torch.as_tensor(gradient), again
        return torch.as_tensor(values)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        if torch.is_grad_enabled():  # a second derivative is wanted
            (X,) = ctx.saved_tensors
            (inner,) = torch.autograd.grad(ctx.again(X), X, grad, create_graph=True)
            return inner, None, None
        return grad.unsqueeze(-1) * ctx.gradient, None, None
