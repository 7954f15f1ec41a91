"""Marginal moments of an exact Gaussian process, from one cached factor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import torch
from botorch.acquisition.objective import (
    PosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.models.transforms.outcome import Standardize
from botorch.sampling.pathwise.utils import get_train_inputs
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from gpytorch.means import ConstantMean, ZeroMean
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor

from botorch_drbo.posterior.affine_inputs import affine_inputs
from botorch_drbo.posterior.base import (
    DEFAULT_MEMORY_BUDGET,
    MarginalPosterior,
    MomentSlopes,
    SmoothDistances,
    in_chunks,
)
from botorch_drbo.posterior.fused import fused_moments, fused_slopes
from botorch_drbo.posterior.stationary import stationary_kernel


class TrainingSystem(NamedTuple):
    r"""The linear system of a model's training data, in standardised outcomes.

    Args:
        inputs: Training inputs, transformed, ``t x d``, in the model's dtype.
        noise: Noise variances, ``t``, float64.
        covariance: ``K + noise``, ``t x t``, float64.
        root: Its lower Cholesky factor ``L``, ``t x t``, float64.
        residual: Outcomes less the prior mean, ``t x 1``, float64.
    """

    inputs: Tensor
    noise: Tensor
    covariance: Tensor
    root: Tensor
    residual: Tensor


def training_system(model: SingleTaskGP) -> TrainingSystem:
    r"""Factor a model's training covariance in float64; the model goes to eval mode.

    Args:
        model: A ``SingleTaskGP`` for which ``ExactPosterior.supports`` is true.

    Returns:
        The system, without a graph.
    """
    model.eval()
    with torch.no_grad():
        Z = get_train_inputs(model, transformed=True)[0]  # t x d
        prior = model.forward(Z)
        noisy = cast(MultivariateNormal, model.likelihood(prior, [Z]))
        covariance = noisy.covariance_matrix.double()  # t x t
        noise = (covariance - prior.covariance_matrix.double()).diagonal()
        residual = (model.train_targets - prior.mean).double().unsqueeze(-1)
        root = psd_safe_cholesky(covariance)
    return TrainingSystem(Z, noise, covariance, root, residual)


class ExactPosterior(MarginalPosterior):
    r"""Marginal moments of a ``SingleTaskGP`` from one factor of its training matrix.

    .. math::
        \mu(z) = m(z) + k(z, Z)\,\alpha, \qquad
        \sigma^2(z) = k(z, z) - \lVert L^{-1} k(Z, z) \rVert^2

    with ``L L' = K + noise`` and ``alpha = (K + noise)^-1 (y - m)`` computed once, in
    float64, when the object is made; acquisition functions make a new one when the
    model has changed. For RBF and Matern kernels the moments and their slopes come in
    one sweep (``fused_moments``); other kernels are evaluated by GPyTorch.

    Pending inputs are hallucinated [Desautels2014bucb]_: they enter the factor ``L``
    and leave the mean alone.

    Args:
        model: A ``SingleTaskGP`` for which ``ExactPosterior.supports`` is true.
        context_indices: The model's input columns that hold the context.
        posterior_transform: None or a ``ScalarizedPosteriorTransform``.
        pending: Joint inputs ``p x d`` whose outcomes are on the way.
        pending_noise: Their noise variance, as a share of the model's.
        memory_budget: Bytes for the temporaries of one chunk.
    """

    path = "exact"
    train_inputs: Tensor
    alpha: Tensor
    inverse_root: Tensor
    mean_scale: Tensor
    mean_offset: Tensor
    columns: Tensor
    prior_mean: Tensor

    @staticmethod
    def supports(model: Model, posterior_transform: PosteriorTransform | None) -> bool:
        r"""Whether the formulas of this class are the whole truth about the model.

        Args:
            model: Any BoTorch model.
            posterior_transform: The transform that would be applied to its posterior.

        Returns:
            True for a single ``SingleTaskGP`` (also a subclass that keeps its
            ``posterior`` and ``forward``) with a Gaussian likelihood, and with no
            outcome transform but ``Standardize``.
        """
        return (
            isinstance(model, SingleTaskGP)
            and type(model).posterior is SingleTaskGP.posterior
            and type(model).forward is SingleTaskGP.forward
            and model.num_outputs == 1
            and model.train_targets.ndim == 1
            and type(model.likelihood)
            in (GaussianLikelihood, FixedNoiseGaussianLikelihood)
            and type(getattr(model, "outcome_transform", None))
            in (type(None), Standardize)
            and type(posterior_transform) in (type(None), ScalarizedPosteriorTransform)
        )

    def __init__(
        self,
        model: SingleTaskGP,
        context_indices: Sequence[int],
        *,
        posterior_transform: PosteriorTransform | None = None,
        pending: Tensor | None = None,
        pending_noise: float = 1.0,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> None:
        r"""Factor the training covariance.

        Args:
            model: A ``SingleTaskGP``.
            context_indices: The model's input columns that hold the context.
            posterior_transform: None or a ``ScalarizedPosteriorTransform``.
            pending: Joint inputs ``p x d`` whose outcomes are on the way.
            pending_noise: Their noise variance, as a share of the model's.
            memory_budget: Bytes for the temporaries of one chunk.
        """
        super().__init__(model, context_indices, memory_budget)
        with torch.no_grad():
            Z, noise, covariance, root, residual = training_system(model)
            alpha = torch.cholesky_solve(residual, root)  # t x 1
            if pending is not None:
                P = model.transform_inputs(pending.to(Z))
                cross = self._covariance(Z, P).double()
                own = self._covariance(P, P).double()
                own = own + pending_noise * noise.mean() * torch.eye(len(P)).to(own)
                covariance = torch.cat(
                    [
                        torch.cat([covariance, cross], dim=-1),
                        torch.cat([cross.mT, own], dim=-1),
                    ]
                )
                root = psd_safe_cholesky(covariance)
                Z = torch.cat([Z, P])
                alpha = torch.cat([alpha, alpha.new_zeros(len(P), 1)])
            identity = torch.eye(len(root)).to(root)
            inverse_root = torch.linalg.solve_triangular(root, identity, upper=False)
        self.kernel = stationary_kernel(cast(Kernel, model.covar_module), Z)
        self.affine = affine_inputs(model)
        scaled, prior = None, Z.new_zeros(())
        if self.kernel is not None and self.affine is not None:
            scaled = self.affine.then(self.kernel.centre, 1 / self.kernel.lengthscale)
        if isinstance(model.mean_module, ConstantMean):
            prior = cast(Tensor, model.mean_module.constant)
        self.scaled = scaled  # from the user's units to those of the kernel's rows
        scale, offset = outcome_map(model, posterior_transform)
        for name, buffer in {
            "train_inputs": Z,
            "alpha": alpha.to(Z),
            "inverse_root": inverse_root.to(Z),
            "mean_scale": scale.to(Z),
            "mean_offset": offset.to(Z),
            "prior_mean": prior.to(Z).reshape(()),
            "columns": torch.tensor(self.context_indices, device=Z.device),
        }.items():
            self.register_buffer(name, buffer.detach(), persistent=False)

    def _covariance(self, left: Tensor, right: Tensor) -> Tensor:
        with SmoothDistances():
            kernel = cast(Callable[..., Any], self.model.covar_module)
            return kernel(left, right).to_dense()

    def _moments(self, Z: Tensor) -> tuple[Tensor, Tensor]:
        model = cast(SingleTaskGP, self.model)
        if model.training:  # as model.posterior does: a transform must not learn here
            model.eval()
        Z = model.transform_inputs(Z) if self.affine is None else self.affine(Z)
        if self.kernel is None:
            # For each part of the kernel: its row and its distances, the differences
            # by column, and their like in the backward pass.
            parts = sum(isinstance(part, Kernel) for part in model.modules())
            floats = len(self.train_inputs) * (12 + 4 * Z.shape[-1]) * parts
            bytes_per_row = Z.element_size() * floats
            mean, variance = in_chunks(
                self._general_moments, Z, bytes_per_row, self.memory_budget
            )
        else:
            mean, variance = fused_moments(
                self.kernel,
                self.alpha,
                self.inverse_root,
                self.kernel.scale(Z),
                self.memory_budget,
            )
        mean = cast(Callable[..., Tensor], model.mean_module)(Z) + mean
        return (
            self.mean_offset + self.mean_scale * mean,
            self.mean_scale.square() * variance.clamp_min(0.0),
        )

    def slopes(self, X: Tensor, contexts: Tensor) -> MomentSlopes | None:
        r"""Evaluate moments and their slopes in the context, without autograd.

        Args:
            X: Decisions, ``... x d_x``.
            contexts: Contexts, ``n x d_c`` or ``... x n x d_c``.

        Returns:
            Moments ``... x n`` and slopes ``... x n x d_c``, differentiable in ``X``;
            None for kernels, means or input transforms of other kinds.
        """
        if (
            self.kernel is None
            or self.scaled is None
            or type(self.model.mean_module) not in (ConstantMean, ZeroMean)
        ):
            return None
        Z = self.scaled(self.join(X, contexts))  # ... x n x d
        at = fused_slopes(
            self.kernel,
            self.alpha,
            self.inverse_root,
            Z.reshape(-1, Z.shape[-1]),
            self.memory_budget,
        )
        shape = Z.shape[:-1]

        def inner(per_column: Tensor) -> Tensor:  # those of the context
            return per_column.index_select(-1, self.columns)

        units = self.mean_scale * inner(self.scaled.slope)
        inside = at.variance > 0.0
        return MomentSlopes(
            mean=self.mean_offset
            + self.mean_scale * (self.prior_mean + at.mean.reshape(shape)),
            variance=self.mean_scale.square()
            * at.variance.clamp_min(0.0).reshape(shape),
            mean_slope=(units * inner(at.mean_slope)).reshape(*shape, len(units)),
            variance_slope=(
                self.mean_scale
                * units
                * inner(at.variance_slope)
                * inside.unsqueeze(-1)
            ).reshape(*shape, len(units)),
        )

    def _general_moments(self, Z: Tensor) -> tuple[Tensor, Tensor]:
        K = self._covariance(Z, self.train_inputs)  # N x t
        own = cast(Callable[..., Tensor], self.model.covar_module)(Z, diag=True)
        explained = (K @ self.inverse_root.mT).square().sum(-1)
        return (K @ self.alpha).squeeze(-1), own - explained


def outcome_map(
    model: SingleTaskGP, posterior_transform: PosteriorTransform | None
) -> tuple[Tensor, Tensor]:
    r"""Find scale and offset from the model's outcome to the score's units.

    Args:
        model: A model with at most a ``Standardize`` outcome transform.
        posterior_transform: None or a ``ScalarizedPosteriorTransform``.

    Returns:
        Scale and offset, float64 scalars.
    """
    scale = torch.ones((), dtype=torch.double)
    offset = torch.zeros((), dtype=torch.double)
    transform = getattr(model, "outcome_transform", None)
    if isinstance(transform, Standardize):
        scale = transform.stdvs.detach().double().reshape(())
        offset = transform.means.detach().double().reshape(())
    if isinstance(posterior_transform, ScalarizedPosteriorTransform):
        weight = cast(Tensor, posterior_transform.weights).detach().double().reshape(())
        scale = weight * scale
        offset = posterior_transform.offset + weight * offset
    return scale, offset
