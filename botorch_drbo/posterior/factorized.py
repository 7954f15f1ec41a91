"""An exact GP whose kernel factorises over decision and context: its two sides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.sampling.pathwise.utils import get_train_inputs
from gpytorch.kernels import Kernel
from gpytorch.means import ConstantMean, ZeroMean
from torch import Tensor

from botorch_drbo.kernels.components import KernelComponent
from botorch_drbo.kernels.context_kernel import ContextKernel, context_components
from botorch_drbo.kernels.inducing import prior_kernel
from botorch_drbo.posterior.columnwise import column_sources, columns_from
from botorch_drbo.posterior.exact import ExactPosterior
from botorch_drbo.posterior.separable import SeparableKernel, SkeletonSystem
from botorch_drbo.posterior.view import columns_of

BLOCK_ELEMENTS = 2**21  # of a kernel row's temporaries


def factors_of(
    model: Model,
    context_indices: Sequence[int],
    posterior_transform: PosteriorTransform | None,
) -> list[KernelComponent] | None:
    r"""The context's side of a model that keeps decision and context apart.

    Args:
        model: Any BoTorch model.
        context_indices: The model's input columns that hold the context.
        posterior_transform: The transform that would be applied to its posterior.

    Returns:
        The summands of the kernel for models of ``ExactPosterior`` with a constant
        mean, an input transform whose results depend on one column each, and a
        kernel that factorises; None for others.
    """
    if not isinstance(model, SingleTaskGP) or not ExactPosterior.supports(
        model, posterior_transform
    ):
        return None
    # Decision and context stay apart if no result of the input transform depends on
    # both, and if each factor of the kernel splits.
    sources = _sources(model)
    if type(model.mean_module) not in (ConstantMean, ZeroMean) or sources is None:
        return None
    kernel = prior_kernel(cast(Kernel, model.covar_module))
    columns = columns_from(sources, context_indices)
    return context_components(kernel, len(sources), columns)


class FactorizedModel:
    r"""Both sides of a kernel, and how decisions and contexts come to them.

    .. math:: k((x, c), (x', c')) = \sum_m s_m\, a_m(x, x')\, b_m(c, c')

    Args:
        exact: The posterior of a model for which ``factors_of`` is not None.
        context_side: What that returns.
    """

    def __init__(
        self, exact: ExactPosterior, context_side: list[KernelComponent]
    ) -> None:
        sources = cast(list[int], _sources(exact.gp))
        context_indices = exact.context_indices
        self.exact = exact
        inputs = exact.train_inputs
        # The contexts' columns as the kernel sees them: several of each category.
        self.context_columns = columns_from(sources, context_indices)
        of_columns = [sources[column] for column in self.context_columns]
        self.source_positions = [context_indices.index(source) for source in of_columns]
        # One for each of the user's columns: a category's has slope zero, as they all.
        self.first_columns = [of_columns.index(source) for source in context_indices]
        self.context_kernel = ContextKernel(
            context_side, inputs[:, self.context_columns].double()
        )
        affine = exact.affine
        self.context_affine = affine and affine.of(context_indices)
        columns = range(exact.num_columns)
        decisions = [i for i in columns if i not in context_indices]
        self.decision_affine = affine and affine.of(decisions).to(exact.dtype)
        self.kernel = SeparableKernel(
            exact.components or [], inputs, self.context_columns
        )

    def system_at(self, inside: Tensor) -> SkeletonSystem:
        r"""What turns kernel rows at contexts into moments.

        Args:
            inside: Contexts as the kernel sees them, ``r x d_c``.

        Returns:
            The context's side and the training data.
        """
        exact = self.exact
        # Once for all: from the kernel's units to those of y.
        offset = exact.mean_offset + exact.mean_scale * exact.prior_mean
        return SkeletonSystem(
            context_side=self.kernel.context_side(inside),
            alpha=exact.alpha,
            explained=exact.explained,
            variance=self.kernel.variance,
            offset=offset.item(),  # once: numbers never wait for a device again
            scale=exact.mean_scale.item(),
            memory_budget=exact.memory_budget,
        )

    def contexts_inside(self, contexts: Tensor) -> tuple[Tensor, Tensor]:
        r"""Transform contexts; each column by itself.

        Args:
            contexts: ``n x d_c``.

        Returns:
            The contexts as the kernel sees them, ``n x k``, and the derivative of each
            column in the one that it comes from, the same shape, float64. A category
            comes to several columns, which have derivative zero.
        """
        contexts = contexts.double()
        if self.context_affine is not None:
            affine = self.context_affine
            return affine(contexts), affine.slope.expand_as(contexts)
        # A transform that is not affine is evaluated at some decision: the columns of
        # the context do not depend on which.
        decision = self.exact.some_decision()
        with torch.enable_grad():
            leaf = contexts.detach().requires_grad_()
            joint = self.exact.join(decision, leaf.to(decision))
            Z = self.exact.gp.transform_inputs(joint)[0]  # n x d
            transformed = Z[:, self.context_columns].double()
            # No context column has a gradient if all are categories.
            total = transformed.sum() + 0.0 * leaf.sum()
            (slope,) = torch.autograd.grad(total, leaf)
        return transformed.detach(), slope[:, self.source_positions]

    def decision_side(self, X: Tensor, context: Tensor) -> Tensor:
        r"""Evaluate the decision's side.

        Args:
            X: ``b x d_x``, in the user's units.
            context: Any context, ``1 x d_c``.

        Returns:
            ``m x b x t``.
        """
        if self.decision_affine is not None:
            return self.kernel.decision_side(self.decision_affine(X))
        Z = self.exact.inside(self.exact.join(X, context).squeeze(-2))  # b x d
        inside = columns_of(Z, self.kernel.columns[: self.kernel.split])
        return self.kernel.decision_side(inside)


def _sources(model: SingleTaskGP) -> list[int] | None:
    """The user's column that each of the kernel's comes from, if it is one each."""
    columns = get_train_inputs(model, transformed=False)[0].shape[-1]
    return column_sources(getattr(model, "input_transform", None), columns)
