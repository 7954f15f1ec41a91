"""Marginal moments of any BoTorch model, through ``model.posterior``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.posteriors.transformed import TransformedPosterior
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor

from botorch_drbo.posterior.base import (
    DEFAULT_MEMORY_BUDGET,
    MarginalPosterior,
    SmoothDistances,
    in_chunks,
)


class GenericPosterior(MarginalPosterior):
    r"""Marginal moments through the model's own ``posterior``, any model.

    Every test point is a q-batch of one: the covariance between test points is never
    formed. Works for ensembles and for every input and outcome transform whose
    posterior has a mean and a variance.

    Pending inputs are hallucinated [Desautels2014bucb]_: the mean stays, the variance
    is what it would be had they been observed,
    ``var(z) - k(z, P) (k(P, P) + noise)^-1 k(P, z)`` with posterior covariances.

    Args:
        model: A single-output BoTorch model.
        context_indices: The model's input columns that hold the context.
        posterior_transform: Makes one output of several, or changes the sign.
        pending: Joint inputs ``p x d`` whose outcomes are on the way.
        pending_noise: Their noise variance, as a share of the model's.
        memory_budget: Bytes for the temporaries of one chunk.
    """

    path = "generic"
    pending: Tensor | None
    pending_noise: Tensor | None

    def __init__(
        self,
        model: Model,
        context_indices: Sequence[int],
        *,
        posterior_transform: PosteriorTransform | None = None,
        pending: Tensor | None = None,
        pending_noise: float = 1.0,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> None:
        r"""Prepare the noise of the pending inputs, if there are any.

        Args:
            model: A single-output BoTorch model.
            context_indices: The model's input columns that hold the context.
            posterior_transform: Makes one output of several, or changes the sign.
            pending: Joint inputs ``p x d`` whose outcomes are on the way.
            pending_noise: Their noise variance, as a share of the model's.
            memory_budget: Bytes for the temporaries of one chunk.

        Raises:
            UnsupportedError: Pending inputs with a posterior that is not Gaussian.
        """
        super().__init__(model, context_indices, memory_budget)
        self.posterior_transform = posterior_transform
        self.register_buffer("pending", pending, persistent=False)
        self.register_buffer("pending_noise", None, persistent=False)
        if pending is not None:
            with torch.no_grad():
                latent = self._posterior(pending).variance
                noisy = self._posterior(pending, observation_noise=True).variance
            # (S x) p x 1 -> (S x) p
            noise = (noisy - latent).squeeze(-1).clamp_min(0.0)
            self.pending_noise = pending_noise * noise

    def _posterior(
        self, Z: Tensor, *, observation_noise: bool = False
    ) -> GPyTorchPosterior | TransformedPosterior:
        posterior = self.model.posterior(
            Z,
            observation_noise=observation_noise,
            posterior_transform=self.posterior_transform,
        )
        return cast("GPyTorchPosterior | TransformedPosterior", posterior)

    def _moments(self, Z: Tensor) -> tuple[Tensor, Tensor]:
        return in_chunks(
            self._chunk_moments, Z, self._bytes_per_row(Z), self.memory_budget
        )

    def _chunk_moments(self, Z: Tensor) -> tuple[Tensor, Tensor]:
        noise = self.pending_noise
        with SmoothDistances():  # GPyTorch evaluates lazily: the moments belong inside
            if self.pending is None or noise is None:
                posterior = self._posterior(Z.unsqueeze(-2))  # N (x S) x 1 x 1
                mean, variance = posterior.mean, posterior.variance
                return mean.squeeze(-1).squeeze(-1), variance.squeeze(-1).squeeze(-1)
            pending = self.pending.to(Z).expand(len(Z), -1, -1)
            posterior = self._posterior(torch.cat([Z.unsqueeze(-2), pending], dim=-2))
            if not isinstance(posterior, GPyTorchPosterior):
                raise UnsupportedError(
                    "Pending decisions need a Gaussian posterior, got "
                    f"{type(posterior).__name__}. Use an outcome transform that keeps "
                    "the posterior Gaussian (`Standardize`), or ask one decision at a "
                    "time."
                )
            mean = posterior.distribution.mean  # N (x S) x (1 + p)
            covariance = posterior.distribution.covariance_matrix
        observed = covariance[..., 1:, 1:] + torch.diag_embed(noise.to(Z))
        root = psd_safe_cholesky(observed)
        explained = torch.linalg.solve_triangular(
            root, covariance[..., 1:, :1], upper=False
        )
        variance = covariance[..., 0, 0] - explained.square().sum((-1, -2))
        return mean[..., 0], variance

    def _bytes_per_row(self, Z: Tensor) -> int:
        # GPyTorch repeats the training set for each test point: t x d inputs scaled and
        # centred, forward and backward, and about 16 vectors of length t.
        targets = getattr(self.model, "train_targets", ())
        per_model = [targets] if isinstance(targets, Tensor) else targets
        t = sum(target.numel() for target in per_model)
        p = 0 if self.pending is None else len(self.pending)
        per_point = 1 + p
        floats = (t + per_point) * (4 * Z.shape[-1] + 16 * per_point)
        return Z.element_size() * floats
