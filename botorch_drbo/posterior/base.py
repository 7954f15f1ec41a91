"""Marginal posterior moments over decisions x contexts, in bounded memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from botorch.models.model import Model
from gpytorch.settings import min_variance
from torch import Tensor
from torch.nn import Module
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

DEFAULT_MEMORY_BUDGET = 2**30
CACHE_BYTES = 2**24


class SmoothDistances(TorchFunctionMode):
    """Inside this context ``torch.cdist`` can be differentiated twice.

    GPyTorch's Matern kernels call ``torch.cdist``, for which PyTorch has a first
    derivative only; the gradient of a Lipschitz constant needs the second.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func is torch.cdist:
            difference = args[0].unsqueeze(-2) - args[1].unsqueeze(-3)
            return difference.square().sum(-1).clamp_min(1e-30).sqrt()
        return func(*args, **(kwargs or {}))


def any_variance() -> min_variance:
    """Inside it GPyTorch does not raise variances to 1e-10, which is in units of y."""
    return min_variance(0.0, 0.0, 0.0)


def join_columns(X: Tensor, contexts: Tensor, context_indices: Sequence[int]) -> Tensor:
    r"""Put decisions and contexts into a model's column order.

    Args:
        X: Decisions, ``... x d_x``.
        contexts: ``n x d_c``, or ``... x n x d_c`` with contexts of its own for each
            decision.
        context_indices: Non-negative column numbers of the context.

    Returns:
        Joint inputs, ``... x n x d``.

    Raises:
        BotorchTensorDimensionError: Contexts with a wrong number of columns.
    """
    num_contexts, d_c = contexts.shape[-2:]
    if d_c != len(context_indices):
        raise BotorchTensorDimensionError(
            f"Contexts must have {len(context_indices)} columns, got {d_c}."
        )
    d = X.shape[-1] + d_c
    decisions = X.unsqueeze(-2).expand(*X.shape[:-1], num_contexts, -1)
    contexts = contexts.expand(*X.shape[:-1], -1, -1)
    joint = torch.cat([decisions, contexts], dim=-1)  # ... x n x d
    order = [i for i in range(d) if i not in context_indices]
    order += context_indices  # the column in which each joint column belongs
    if order == list(range(d)):
        return joint
    # By name and not by an index tensor, which would have to travel to the device.
    return torch.stack([joint[..., order.index(i)] for i in range(d)], dim=-1)


class MomentSlopes(NamedTuple):
    r"""Moments and their slopes in the context.

    Args:
        mean: ``... x n``.
        variance: ``... x n``, not negative.
        mean_slope: ``... x n x d_c``.
        variance_slope: ``... x n x d_c``; that of the variance before it was cut off
            at zero.
    """

    mean: Tensor
    variance: Tensor
    mean_slope: Tensor
    variance_slope: Tensor


class MarginalPosterior(Module, ABC):
    r"""Means and variances of ``f(x, c)`` for each decision and each context.

    Robust objectives need marginals only, never the covariance between contexts, so
    each pair ``(x, c)`` is its own test point. Pairs are worked off in chunks whose
    temporaries stay within ``memory_budget`` bytes, forward and backward. On top come
    the inputs and results themselves, a few numbers per pair.

    Args:
        model: A single-output BoTorch model of the joint input.
        context_indices: The model's input columns that hold the context.
        memory_budget: Bytes for the temporaries of one chunk.
    """

    path: ClassVar[str]
    model: Model

    def __init__(
        self, model: Model, context_indices: Sequence[int], memory_budget: int
    ) -> None:
        r"""Remember the model and the order of its columns.

        Args:
            model: A single-output BoTorch model of the joint input.
            context_indices: Non-negative column numbers of the context.
            memory_budget: Bytes for the temporaries of one chunk.
        """
        super().__init__()
        self.model = model
        self.context_indices = tuple(context_indices)
        self.memory_budget = memory_budget

    def join(self, X: Tensor, contexts: Tensor) -> Tensor:
        r"""Put decisions and contexts into the model's column order.

        Args:
            X: Decisions, ``... x d_x``.
            contexts: ``n x d_c``, or ``... x n x d_c`` with contexts of its own for
                each decision.

        Returns:
            Joint inputs, ``... x n x d``.
        """
        return join_columns(X, contexts, self.context_indices)

    def forward(self, X: Tensor, contexts: Tensor) -> tuple[Tensor, Tensor]:
        r"""Evaluate the marginal moments.

        Args:
            X: Decisions, ``... x d_x``.
            contexts: Contexts, ``n x d_c`` or ``... x n x d_c``.

        Returns:
            The means and the variances, each ``... x n``; with an ensemble of ``S``
            models ``... x S x n``. In the units of the outcome, noise not included.
        """
        Z = self.join(X, contexts)  # ... x n x d
        batch = Z.shape[:-1]
        mean, variance = (
            moment.reshape(*batch, *moment.shape[1:])  # ... x n (x S)
            for moment in self._moments(Z.reshape(-1, Z.shape[-1]))
        )
        if mean.ndim > len(batch):
            mean, variance = mean.transpose(-1, -2), variance.transpose(-1, -2)
        return mean, variance

    @abstractmethod
    def _moments(self, Z: Tensor) -> tuple[Tensor, Tensor]:
        """Means and variances at ``N x d`` joint inputs, each ``N`` or ``N x S``."""


def in_chunks(
    moments: Callable[[Tensor], tuple[Tensor, Tensor]],
    Z: Tensor,
    bytes_per_row: int,
    memory_budget: int,
) -> tuple[Tensor, Tensor]:
    """Evaluate ``moments`` a chunk of rows at a time.

    When a gradient is wanted and there is more than one chunk, each chunk is computed
    again in the backward pass instead of being kept.
    """
    graph = torch.is_grad_enabled() and Z.requires_grad
    # Without a graph small chunks cost nothing and stay in the processor's cache.
    budget = memory_budget if graph else min(memory_budget, CACHE_BYTES)
    chunks = Z.split(max(1, budget // bytes_per_row))
    # Without inputs to differentiate in, the model's own parameters keep no graph.
    with torch.set_grad_enabled(graph):
        if len(chunks) == 1:
            return moments(Z)
        if graph:
            # GPyTorch fills caches at its first call; the second pass over a chunk must
            # meet the same state as the first, or the checkpoint refuses it.
            with torch.no_grad():
                moments(Z[:1])
        parts = [
            checkpoint(moments, chunk, use_reentrant=False) if graph else moments(chunk)
            for chunk in chunks
        ]
    means, variances = zip(*parts, strict=True)
    return torch.cat(means), torch.cat(variances)
