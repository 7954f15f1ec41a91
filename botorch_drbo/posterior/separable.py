"""Moments at a few fixed contexts, for kernels that factorise over them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Module

from botorch_drbo import _arrays
from botorch_drbo._arrays import arrays, given_back, on_device
from botorch_drbo.posterior.affine_inputs import AffineInputs
from botorch_drbo.posterior.spectral import KernelComponent
from botorch_drbo.posterior.split_kernel import SplitComponent

# Elements of one temporary on a CPU: small enough for the cache, unless there would be
# too few rows for BLAS.
_CHUNK_ELEMENTS = 2**17
_CHUNK_ROWS = 256
_TEMPORARIES = 4


class SeparableKernel(Module):
    r"""The two sides of a kernel against the training inputs.

    .. math:: k((x, c), z_j) = \sum_m A_{mj}(x)\, B_{mj}(c)

    Args:
        components: Summands, none of which mixes decision and context in a Matern
            factor.
        inputs: The training inputs, ``t x d``.
        context_indices: The columns that hold the context.
    """

    centre: Tensor
    points: Tensor

    def __init__(
        self,
        components: Sequence[KernelComponent],
        inputs: Tensor,
        context_indices: Sequence[int],
    ) -> None:
        r"""Sort the columns, decisions first.

        Args:
            components: Summands, none of which mixes decision and context in a Matern
                factor.
            inputs: The training inputs, ``t x d``.
            context_indices: The columns that hold the context.
        """
        super().__init__()
        columns = [i for i in range(inputs.shape[-1]) if i not in context_indices]
        self.split = len(columns)
        columns += context_indices
        self.columns = columns
        points = inputs[:, columns]
        centre = points.mean(0)  # distances of centred points lose fewer digits
        self.register_buffer("centre", centre, persistent=False)
        self.register_buffer("points", points - centre, persistent=False)
        self.components = torch.nn.ModuleList(
            SplitComponent(
                component._replace(
                    factors=tuple(
                        factor._replace(weights=factor.weights[columns])
                        for factor in component.factors
                    )
                ),
                self.points,
                self.split,
            )
            for component in components
        )
        self.variance = sum(component.variance for component in components)

    @property
    def gaussian_decisions(self) -> bool:
        """Whether all factors that look at the decision are RBF."""
        return all(
            math.isinf(smoothness) or not active[0]
            for component in self._summands()
            for smoothness, active in zip(
                component.smoothness, component.active, strict=True
            )
        )

    def decision_weights(self) -> Tensor:
        """One over the lengthscales of each summand's RBF factors, ``m x d_x``."""
        return torch.stack(
            [
                component.weights[:, : self.split].square().sum(0).sqrt()
                for component in self._summands()
            ]
        )

    def decision_side(self, decisions: Tensor) -> Tensor:
        r"""Evaluate ``A``.

        Args:
            decisions: ``N x d_x``, as the kernel sees them.

        Returns:
            ``m x N x t``.
        """
        return self._side(decisions - self.centre[: self.split], 0)

    def context_side(self, contexts: Tensor) -> Tensor:
        r"""Evaluate ``B``, with the variances of the summands.

        Args:
            contexts: ``r x d_c``, as the kernel sees them.

        Returns:
            ``m x r x t``.
        """
        rows = self._side(contexts - self.centre[self.split :], 1)
        variances = [component.variance for component in self._summands()]
        return torch.stack([s * row for s, row in zip(variances, rows, strict=True)])

    def _side(self, inputs: Tensor, group: int) -> Tensor:
        rows = []
        for component in self._summands():
            row = component.side(inputs, group).correlation
            if row is None:  # does not look at this side: the same everywhere on it
                row = inputs.new_ones(len(inputs), len(component.points))
                row = row + 0.0 * inputs.sum(-1, keepdim=True)  # of slope zero
            rows.append(row)
        return rows[0].unsqueeze(0) if len(rows) == 1 else torch.stack(rows)

    def _summands(self) -> list[SplitComponent]:
        return list(self.components)  # pyright: ignore[reportReturnType]


class GaussianDecisions(Module):
    r"""The decision's side of RBF summands under affine input transforms.

    .. math:: A_{mj}(x) = \exp\big(-\tfrac12 \lVert W_m (T(x) - T(x_j)) \rVert^2\big)

    The same as ``SeparableKernel.decision_side`` in the units of the user, with its
    gradient in closed form.

    Args:
        kernel: A kernel whose factors that look at the decision are all RBF.
        affine: The input transform.
    """

    anchor: Tensor
    image: Tensor
    slope: Tensor
    points: Tensor
    norms: Tensor

    def __init__(self, kernel: SeparableKernel, affine: AffineInputs) -> None:
        r"""Join transform and lengthscales.

        Args:
            kernel: A kernel whose factors that look at the decision are all RBF.
            affine: The input transform.
        """
        super().__init__()
        columns = torch.tensor(
            kernel.columns[: kernel.split], device=affine.slope.device
        )
        weights = kernel.decision_weights().unsqueeze(1)  # m x 1 x d_x
        points = kernel.points[:, : kernel.split] * weights  # m x t x d_x
        centre = kernel.centre[: kernel.split]
        for name, buffer in {
            "anchor": affine.anchor[columns],
            "image": (affine.image[columns] - centre) * weights,
            "slope": affine.slope[columns] * weights,
            "points": points,
            "norms": points.square().sum(-1).unsqueeze(1),
        }.items():
            self.register_buffer(name, buffer, persistent=False)

    def forward(self, X: Tensor) -> Tensor:
        r"""Evaluate ``A``.

        Args:
            X: Decisions ``b x d_x`` in the user's units.

        Returns:
            ``m x b x t``, twice differentiable.
        """
        return GaussianRows.apply(X, *self.parts())

    def parts(self) -> tuple[Tensor, ...]:
        """The constants of ``GaussianRows``."""
        return self.anchor, self.image, self.slope, self.points, self.norms


class GaussianRows(torch.autograd.Function):
    """``GaussianDecisions`` as a function of ``X``."""

    @staticmethod
    def forward(
        ctx: Any,
        X: Tensor,
        anchor: Tensor,
        image: Tensor,
        slope: Tensor,
        points: Tensor,
        norms: Tensor,
    ) -> Tensor:
        xp, (*parts, points_, norms_) = arrays(
            math.prod(norms.shape) * len(X), X, anchor, image, slope, points, norms
        )
        scaled = _scaled(*parts)  # m x b x d_x
        squared = scaled @ points_.swapaxes(-1, -2)
        squared *= -2.0
        squared += norms_
        squared += (scaled * scaled).sum(-1)[..., None]
        squared *= -0.5
        rows = given_back(xp.exp(squared), X)
        ctx.save_for_backward(X, anchor, image, slope, points, rows)
        return rows

    @staticmethod
    def backward(
        ctx: Any, grad: Tensor
    ) -> tuple[Tensor | None, None, None, None, None, None]:
        parts = (grad, *ctx.saved_tensors)
        if not torch.is_grad_enabled():  # otherwise a second derivative is wanted
            _, parts = arrays(math.prod(grad.shape), *parts)
        upstream, X, anchor, image, slope, points, rows = parts
        scaled = _scaled(X, anchor, image, slope)
        H = upstream * rows
        inner = H @ points - scaled * H.sum(-1)[..., None]
        found = given_back((inner * slope).sum(0), grad)
        return found, None, None, None, None, None


def _scaled(X: Any, anchor: Any, image: Any, slope: Any) -> Any:
    return image + (X - anchor) * slope


class SkeletonSystem(NamedTuple):
    r"""What turns kernel rows at a few contexts into moments.

    Args:
        context_side: ``B``, ``m x r x t``.
        alpha: ``(K + noise)^-1 (y - m)``, ``t x 1``.
        inverse_root: ``L^-1``, ``t x t``.
        variance: The prior's, a number.
        offset: The prior mean in the units of the outcome, a number.
        scale: From the kernel's units to those of the outcome, a number.
    """

    context_side: Tensor
    alpha: Tensor
    inverse_root: Tensor
    variance: float
    offset: float
    scale: float


def separable_moments(
    decision_side: Tensor, system: SkeletonSystem, memory_budget: int
) -> Tensor:
    r"""Evaluate means and variances for every decision and context.

    With ``k_bs = sum_m A_mb B_ms`` no kernel row is computed twice. Forward this takes
    one product with a ``t x t`` matrix for each pair, backward another one.

    Args:
        decision_side: ``A``, ``m x b x t``.
        system: The other side, and the training data.
        memory_budget: Bytes for the temporaries of one chunk.

    Returns:
        Means and variances, ``2 x b x r``; twice differentiable in ``A``.
    """
    most = memory_budget // (_TEMPORARIES * system.alpha.element_size())
    elements = most
    if _arrays.on_cpu(system.alpha):
        elements = min(most, max(_CHUNK_ELEMENTS, _CHUNK_ROWS * len(system.alpha)))
    per_decision = system.context_side[0].numel()
    rows = max(1, elements // per_decision)
    keep = decision_side.shape[1] * per_decision <= most
    return SeparableMoments.apply(decision_side, system, rows, keep)


class SeparableMoments(torch.autograd.Function):
    """Images of the kernel rows are kept for the backward pass, if there is room."""

    @staticmethod
    def forward(
        ctx: Any, decision_side: Tensor, system: SkeletonSystem, rows: int, keep: bool
    ) -> Tensor:
        keep = keep and ctx.needs_input_grad[0]
        _, b, t = decision_side.shape
        r = system.context_side.shape[1]
        xp, (A, B, alpha, inverse_root) = arrays(
            b * r * t,
            decision_side,
            system.context_side,
            system.alpha,
            system.inverse_root,
        )
        moments = xp.empty((2, b, r), dtype=A.dtype, **on_device(A))
        kept = []
        for start in range(0, b, rows):
            K = _kernel_rows(A[:, start : start + rows], B)  # b r x t
            V = K @ inverse_root.swapaxes(0, 1)
            kept.append(V if keep else None)
            moments[0, start : start + rows] = (K @ alpha).reshape(-1, r)
            explained = xp.multiply(V, V, out=K).sum(-1)
            moments[1, start : start + rows] = explained.reshape(-1, r)
        moments[0] *= system.scale
        moments[0] += system.offset
        left = system.variance - moments[1]
        moments[1] = left.clip(0.0) * system.scale**2
        if ctx.needs_input_grad[0]:
            ctx.save_for_backward(decision_side)
            ctx.system, ctx.rows, ctx.kept = system, rows, kept
            ctx.inside = left > 0.0
        return given_back(moments, decision_side)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None, None, None]:
        (decision_side,) = ctx.saved_tensors
        system: SkeletonSystem = ctx.system
        if torch.is_grad_enabled():  # a second derivative is wanted
            (slope,) = torch.autograd.grad(
                _plainly(decision_side, system), decision_side, grad, create_graph=True
            )
            return slope, None, None, None
        _, b, t = decision_side.shape
        r = system.context_side.shape[1]
        xp, (upstream, A, B, alpha, inverse_root) = arrays(
            b * r * t,
            grad,
            decision_side,
            system.context_side,
            system.alpha,
            system.inverse_root,
        )
        of_means = upstream[0] * system.scale  # b x r
        of_variances = upstream[1] * (-2.0 * system.scale**2) * ctx.inside
        slopes = xp.empty_like(A)
        for start, V in zip(range(0, b, ctx.rows), ctx.kept, strict=True):
            chunk = slice(start, start + ctx.rows)
            if V is None:
                V = _kernel_rows(A[:, chunk], B) @ inverse_root.swapaxes(0, 1)
            G = V @ inverse_root
            G *= of_variances[chunk].reshape(-1, 1)
            G += of_means[chunk].reshape(-1, 1) * alpha.swapaxes(0, 1)
            G = G.reshape(-1, r, t)
            for m, side in enumerate(B):
                slopes[m, chunk] = (G * side).sum(1)
        return given_back(slopes, grad), None, None, None


def _kernel_rows(decision_side: Any, context_side: Any) -> Any:
    """``sum_m A_m B_m`` for each pair, ``b r x t``."""
    total = decision_side[0][:, None] * context_side[0]
    for left, right in zip(decision_side[1:], context_side[1:], strict=True):
        total = total + left[:, None] * right
    return total.reshape(-1, total.shape[-1])


def _plainly(decision_side: Tensor, system: SkeletonSystem) -> Tensor:
    """The same moments by operations that autograd differentiates."""
    K = _kernel_rows(decision_side, system.context_side)
    means = system.offset + system.scale * (K @ system.alpha).squeeze(-1)
    explained = (K @ system.inverse_root.mT).square().sum(-1)
    left = (system.variance - explained).clamp_min(0.0)
    moments = torch.stack([means, system.scale**2 * left])
    return moments.unflatten(-1, (-1, system.context_side.shape[1]))
