"""Moments at a few fixed contexts, for kernels that factorise over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import hardshrink

from botorch_drbo.kernels.components import KernelComponent
from botorch_drbo.kernels.stationary import SplitComponent
from botorch_drbo.posterior.stationary_moments import ExplainedVariance

_BLOCK_ELEMENTS = 2**17  # of a temporary on a CPU: small enough for the cache ...
_BLOCK_ROWS = 256  # ... unless there would be too few rows for BLAS
_TEMPORARIES = 4
_STRIPS, _STRIP = 4, 128  # of the inverse root: how many, and rows of one at least
_TINY = 1e-9  # of the largest: in squares still a number of float32


class SeparableKernel:
    r"""The two sides of a kernel against the training inputs.

    .. math:: k((x, c), z_j) = \sum_m A_{mj}(x)\, B_{mj}(c)

    Shapes: ``inputs``: ``t x d``.
    """

    def __init__(
        self,
        components: Sequence[KernelComponent],
        inputs: Tensor,
        context_indices: Sequence[int],
    ) -> None:
        columns = [i for i in range(inputs.shape[-1]) if i not in context_indices]
        self.split = len(columns)
        columns += context_indices
        self.columns = columns  # decisions first
        points = inputs[:, columns]
        self.centre = points.mean(0)  # distances of centred points lose fewer digits
        self.summands = [
            SplitComponent(
                component._replace(
                    factors=tuple(
                        factor._replace(weights=factor.weights[columns])
                        for factor in component.factors
                    )
                ),
                points - self.centre,
                self.split,
            )
            for component in components
        ]
        self.variance = sum(summand.variance for summand in self.summands)

    def decision_side(self, decisions: Tensor) -> Tensor:
        """Evaluate ``A``.

        Shapes: ``decisions``: ``N x d_x``, returns ``m x N x t``.
        """
        return self._side(decisions - self.centre[: self.split], 0)

    def context_side(self, contexts: Tensor) -> Tensor:
        """Evaluate ``B``, with the variances of the summands.

        Shapes: ``contexts``: ``r x d_c``, returns ``m x r x t``.
        """
        # The variances go to this side: it is evaluated once, the other at every call.
        rows = self._side(contexts - self.centre[self.split :], 1)
        variances = [summand.variance for summand in self.summands]
        return torch.stack([s * row for s, row in zip(variances, rows, strict=True)])

    def context_slopes(self, contexts: Tensor) -> tuple[Tensor, Tensor]:
        """Evaluate ``B`` and its slopes in the context.

        Shapes: ``contexts``: ``r x d_c``, returns ``m x r x t``.
        """
        centred = contexts - self.centre[self.split :]
        sides, slopes = zip(
            *(summand.side_and_slopes(centred, 1) for summand in self.summands),
            strict=True,
        )
        variances = contexts.new_tensor([s.variance for s in self.summands])
        sizes = variances[:, None, None]
        return sizes * torch.stack(sides), sizes * torch.stack(slopes, 1)

    @property
    def has_slopes(self) -> bool:
        """Whether it has slopes everywhere: Matern-1/2 has not."""
        return all(
            smoothness != 0.5
            for summand in self.summands
            for smoothness in summand.smoothness
        )

    def _side(self, inputs: Tensor, group: int) -> Tensor:
        rows = []
        for summand in self.summands:
            row = summand.side(inputs, group).correlation
            if row is None:  # no factor on this side: the same everywhere on it
                row = inputs.new_ones(len(inputs), len(summand.points))
                row = row + 0.0 * inputs.sum(-1, keepdim=True)  # of slope zero
            rows.append(row)
        return rows[0].unsqueeze(0) if len(rows) == 1 else torch.stack(rows)


class SkeletonSystem(NamedTuple):
    """What turns kernel rows at a few contexts into moments."""

    # ``B``, ``m x r x t``.
    context_side: Tensor
    # ``(K + noise)^-1 (y - m)``, ``t x 1``.
    alpha: Tensor
    # What the data explain of the variance.
    explained: ExplainedVariance
    # The prior's, a number.
    variance: float
    # The prior mean in the units of the outcome, a number.
    offset: float
    # From the kernel's units to those of the outcome, a number.
    scale: float
    # Bytes for the temporaries of one block.
    memory_budget: int

    def blocks(self, b: int) -> tuple[int, bool]:
        """Decisions of one block, and whether rows of all ``b`` fit in memory."""
        max_elements = self.memory_budget // (_TEMPORARIES * self.alpha.element_size())
        # As much as memory allows; on a CPU no more than its cache holds, but enough
        # rows for BLAS to be fast.
        elements = max_elements
        if self.alpha.device.type == "cpu":
            elements = min(
                max_elements, max(_BLOCK_ELEMENTS, _BLOCK_ROWS * len(self.alpha))
            )
        per_decision = max(1, self.context_side[0].numel())
        return max(1, elements // per_decision), b * per_decision <= max_elements


def separable_slopes(
    decision_side: Tensor,
    context_side: Tensor,
    slopes: Tensor,
    system: SkeletonSystem,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""Evaluate means and variances, and their slopes in the context.

    .. math:: \partial \mu = s\, (A\, \partial B)\, \alpha, \qquad
        \partial \sigma^2 = -2 s^2\, (A\, \partial B)\, P (A B)'

    Shapes: ``decision_side``: ``b x m x t``, ``context_side``: ``(b x) m x k x t``,
    ``slopes``: ``d_c x (b x) m x k x t``, returns ``b x k``.
    """
    A = decision_side.unsqueeze(-2)  # b x m x 1 x t
    K = (A * context_side).sum(-3)  # b x k x t
    # W = P k is half of the derivative of the explained variance k'P k in k.
    explained, W = system.explained.with_weights(K)
    mean = system.offset + system.scale * (K @ system.alpha).squeeze(-1)
    variance = system.variance - explained
    mean_slopes, variance_slopes = [], []
    for slope in slopes:  # of each context column
        # The decision's side does not change with the context: dk = sum_m A_m dB_m.
        dK = (A * slope).sum(-3)  # b x k x t
        mean_slopes.append((dK @ system.alpha).squeeze(-1))
        variance_slopes.append(-2.0 * torch.linalg.vecdot(dK, W))
    inside = (variance > 0.0).unsqueeze(-1)
    square = system.scale**2
    return (
        mean,
        square * variance.clamp_min(0.0),
        system.scale * torch.stack(mean_slopes, -1),
        square * torch.stack(variance_slopes, -1) * inside,
    )


def separable_mean_slopes(
    decision_side: Tensor, slopes: Tensor, system: SkeletonSystem
) -> Tensor:
    r"""Evaluate the slopes of means in the context, ``O(t)`` each.

    .. math:: \partial \mu_{bk} = s \sum_m \sum_j A_{bmj}\, \alpha_j\, \partial B_{mkj}

    Shapes: ``decision_side``: ``b x m x t``, ``slopes``: ``d_c x (b x) m x k x t``,
    returns ``b x k x d_c``.
    """
    weighted = decision_side * system.alpha.squeeze(-1)
    if slopes.ndim == 5:  # each decision has contexts of its own
        found = torch.einsum("bmt,dbmkt->bkd", weighted, slopes)
    else:
        found = torch.einsum("bmt,dmkt->bkd", weighted, slopes)
    return system.scale * found


def separable_means(decision_side: Tensor, system: SkeletonSystem) -> Tensor:
    r"""Evaluate means for every decision and context: one product of two matrices.

    .. math:: \mu_{bs} = o + s \sum_m \sum_j A_{mbj} (B_{msj} \alpha_j)

    Shapes: ``decision_side``: ``m x b x t``, returns ``b x r``.
    """
    # sum_j A_j B_j alpha_j = A (B * alpha)': the side of few contexts takes alpha.
    weighted = system.context_side * system.alpha.squeeze(-1)  # m x r x t
    return system.offset + system.scale * (decision_side @ weighted.mT).sum(0)


def separable_moments(decision_side: Tensor, system: SkeletonSystem) -> Tensor:
    """Evaluate means and variances for every decision and context.

    With ``k_bs = sum_m A_mb B_ms`` no kernel row is computed twice. This takes one
    product with a ``t x t`` matrix for each pair, and its gradient none beside that;
    another one where ``ExplainedVariance`` has to be careful.

    Shapes: ``decision_side``: ``m x b x t``, returns ``2 x b x r``.
    """
    return SeparableMoments.apply(decision_side, system)


def coarse_moments(decision_side: Tensor, system: SkeletonSystem) -> Tensor:
    """Evaluate the same without a gradient: means, and variances of few digits.

    The product with the ``t x t`` matrix is one of float32 numbers. Of the variance
    that the data explain, about four digits are right.

    Shapes: ``decision_side``: ``m x b x t``, returns ``2 x b x r``.
    """
    b, r = decision_side.shape[1], system.context_side.shape[1]
    # Sums of subnormal numbers are slow, and squares of tiny ones are subnormal.
    root = system.explained.inverse_root
    root = hardshrink(root, _TINY * root.abs().amax().item()).float()
    # The inverse of a triangle is one: in strips, the zeros beside it are left out.
    strips = root.split(max(_STRIP, -(-len(root) // _STRIPS)))
    if root.triu(1).any():  # that of inducing points is none
        strips = (root,)
    sides, context_side = (
        hardshrink(side, _TINY * side.abs().amax().item()).float()
        for side in (decision_side, system.context_side)
    )
    rows, _ = system.blocks(b)
    explained = []
    for block in sides.split(rows, dim=1):
        K = _kernel_rows(block, context_side)  # b r x t
        total, end = K.new_zeros(len(K)), 0
        for strip in strips:
            end = len(root) if len(strips) == 1 else end + len(strip)
            V = K[:, :end] @ strip[:, :end].mT
            total += torch.linalg.vecdot(V, V)
        explained.append(total)
    mean = separable_means(decision_side, system)
    variance = system.variance - torch.cat(explained).reshape(b, r).to(mean)
    return torch.stack([mean, system.scale**2 * variance.clamp_min(0.0)])


class SeparableMoments(torch.autograd.Function):
    r"""The moments of ``separable_moments``, blocked to fit the processor's cache.

    .. math:: \mu = o + s\, k \alpha, \qquad \sigma^2 = s^2 (v - k' P k)

    The rows ``W = P k`` are kept for the backward pass, if there is room.
    """

    @staticmethod
    def forward(ctx: Any, decision_side: Tensor, system: SkeletonSystem) -> Tensor:
        b, r = decision_side.shape[1], system.context_side.shape[1]
        # Kernel rows of a block live in the cache only; W is kept for the backward pass
        # where there is room for that of all blocks, else it is computed again.
        rows, save = system.blocks(b)
        save = save and ctx.needs_input_grad[0]
        explained, saved = [], []
        for block in decision_side.split(rows, dim=1):
            K = _kernel_rows(block, system.context_side)  # b r x t
            if save:
                found, W = system.explained.with_weights(K)
            else:
                found, W = system.explained(K), None
            explained.append(found)
            saved.append(W)
        mean = separable_means(decision_side, system)
        variance = system.variance - torch.cat(explained).reshape(b, r)
        if ctx.needs_input_grad[0]:
            ctx.save_for_backward(decision_side)
            ctx.system, ctx.rows, ctx.saved = system, rows, saved
            ctx.inside = variance > 0.0
        return torch.stack([mean, system.scale**2 * variance.clamp_min(0.0)])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (decision_side,) = ctx.saved_tensors
        system: SkeletonSystem = ctx.system
        B = system.context_side
        # d sigma^2 = -2 (P k)'dk; a variance that was clamped is flat.
        variance_grad = -2.0 * system.scale**2 * grad[1] * ctx.inside  # b x r
        # dA_m = sum_s (g_s alpha + h_s W_s) B_ms, with g of means and h of variances.
        of_means = (system.scale * grad[0]) @ (B * system.alpha.mT)  # m x b x t
        of_variances = []
        for block, W, h in zip(
            decision_side.split(ctx.rows, dim=1),
            ctx.saved,
            variance_grad.split(ctx.rows),
            strict=True,
        ):
            # With a graph, where a second derivative is wanted, W is no constant.
            if W is None or torch.is_grad_enabled():
                _, W = system.explained.with_weights(_kernel_rows(block, B))
            W = W.reshape(block.shape[1], *B.shape[1:])  # b x r x t
            h = h.unsqueeze(1)  # b x 1 x r
            of_variances.append(
                torch.stack([(h @ (W * side)).squeeze(1) for side in B])
            )
        return of_means + torch.cat(of_variances, dim=1), None


def _kernel_rows(decision_side: Tensor, context_side: Tensor) -> Tensor:
    """``sum_m A_m B_m`` for each pair, ``b r x t``."""
    # In place of an m x b x r x t tensor: one summand is added to the others.
    total = decision_side[0].unsqueeze(1) * context_side[0]
    for left, right in zip(decision_side[1:], context_side[1:], strict=True):
        total = torch.addcmul(total, left.unsqueeze(1), right)
    return total.flatten(0, 1)
