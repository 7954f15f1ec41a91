"""Chains of autograd functions run by hand, where autograd would cost more than they.

For ten decisions PyTorch's bookkeeping takes several times as long as the arithmetic,
and for a thousand what autograd keeps does not fit into the cache. So a chain of the
library's own autograd functions can be run on NumPy arrays, a few decisions at a time,
forward and then backward at once; autograd sees one function, whose gradient is known.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor


class Chain(Protocol):
    """From decisions to values, and to gradients where they are wanted."""

    def __call__(self, x: Any, wanted: bool) -> tuple[Any, Any]:
        """Run the chain.

        Args:
            x: An array of decisions, ``b x d_x``.
            wanted: Whether gradients are.

        Returns:
            Values ``b``, and their gradients ``b x d_x`` or None.
        """
        ...


class Call:
    """One call of an autograd function on arrays; stands in for its context.

    Made, and asked for gradients, without grad mode, as autograd's own contexts are.

    Args:
        wanted: Whether it will be asked for a gradient.
        function: A ``torch.autograd.Function`` whose code runs on arrays too.
        inputs: Its inputs; the first is the one to differentiate in.
    """

    def __init__(self, wanted: bool, function: type[Any], *inputs: Any) -> None:
        self.needs_input_grad = (wanted, *[False] * (len(inputs) - 1))
        self.saved_tensors: tuple[Any, ...] = ()
        self.function = function
        self.value = function.forward(self, *inputs)

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep what the function wants to see again."""
        self.saved_tensors = tensors

    def pull(self, gradient: Any) -> Any:
        """The gradient in the first input, from that in the value."""
        return self.function.backward(self, gradient)[0]


def by_hand(chain: Chain, again: Any, X: Tensor, rows: int) -> Tensor:
    """Run a chain that finds values and gradients together.

    Args:
        chain: Finds them.
        again: From ``X`` to the same values by autograd, for a second derivative.
        X: Decisions ``... x d_x``, float64 on a CPU.
        rows: How many to take at a time.

    Returns:
        The values, ``...``, twice differentiable in ``X``.
    """
    flat = X.reshape(-1, X.shape[-1])  # b x d_x
    if torch.is_grad_enabled() and X.requires_grad:
        values = _ByHand.apply(flat, chain, again, rows)
    else:
        values = torch.from_numpy(_run(chain, flat, rows, wanted=False)[0])
    return values.reshape(X.shape[:-1])


def _run(chain: Chain, X: Tensor, rows: int, *, wanted: bool) -> tuple[Any, Any]:
    x = X.detach().numpy()
    if len(x) <= rows:
        return chain(x, wanted)
    parts = [chain(x[i : i + rows], wanted) for i in range(0, len(x), rows)]
    values, gradients = zip(*parts, strict=True)
    return np.concatenate(values), np.concatenate(gradients) if wanted else None


class _ByHand(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, X: Tensor, chain: Chain, again: Any, rows: int) -> Tensor:
        values, gradients = _run(chain, X, rows, wanted=True)
        ctx.save_for_backward(X)
        ctx.gradients, ctx.again = torch.from_numpy(gradients), again
        return torch.from_numpy(values)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        if torch.is_grad_enabled():  # a second derivative is wanted
            (X,) = ctx.saved_tensors
            (inner,) = torch.autograd.grad(ctx.again(X), X, grad, create_graph=True)
            return inner, None, None, None
        return grad.unsqueeze(-1) * ctx.gradients, None, None, None
