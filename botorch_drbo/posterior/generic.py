"""Marginal moments of any BoTorch model, through ``model.posterior``."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import cast

import torch
from botorch.acquisition.objective import (
    PosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import UnsupportedError
from botorch.models.deterministic import DeterministicModel
from botorch.models.ensemble import EnsembleModel
from botorch.models.model import Model
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.posteriors.transformed import TransformedPosterior
from botorch.utils.transforms import is_ensemble
from gpytorch.models import ApproximateGP
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor

from botorch_drbo.posterior.blocks import (
    DEFAULT_MEMORY_BUDGET,
    SmoothDistances,
    any_variance,
    in_blocks,
)
from botorch_drbo.posterior.models import settle, some_inputs
from botorch_drbo.posterior.view import (
    Integral,
    LocalMoments,
    MarginalPosterior,
    MomentSlopes,
    View,
    join_columns,
    slopes_by_autograd,
)

_PAIRS_PER_BLOCK = 2**14  # decisions x contexts, whose slopes are found at once


class GenericPosterior(MarginalPosterior):
    """Marginal moments through the model's own ``posterior``, any model.

    Every test point is a q-batch of one: the covariance between test points is never
    formed. Works for ensembles and for every input and outcome transform whose
    posterior has a mean and a variance. The weight and the offset of one output are
    applied here, so that every such posterior can be minimised.

    Pending inputs are hallucinated [Desautels2014bucb]_: the mean stays, the variance
    is what it would be had they been observed,
    ``var(z) - k(z, P) (k(P, P) + noise)^-1 k(P, z)`` with posterior covariances.
    """

    def __init__(
        self,
        model: Model,
        context_indices: Sequence[int],
        *,
        posterior_transform: PosteriorTransform | None = None,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> None:
        super().__init__(model, context_indices, memory_budget)
        affine = isinstance(posterior_transform, ScalarizedPosteriorTransform)
        self.affine = posterior_transform if affine and model.num_outputs == 1 else None
        self.posterior_transform = None if self.affine else posterior_transform
        # A variational model keeps a factor that hangs on the graph of its last inputs.
        self._keeps_graphs = any(isinstance(m, ApproximateGP) for m in model.modules())
        inputs = some_inputs(model)
        if isinstance(model, DeterministicModel) and is_ensemble(model):
            raise UnsupportedError(
                f"The {type(model).__name__} is a sample of several functions. Make it "
                "of one, or pass the model that was sampled."
            )
        if inputs is not None:
            self._check_moments(inputs.reshape(-1, inputs.shape[-1])[:1])
        elif isinstance(model, EnsembleModel) and self.posterior_transform is not None:
            raise UnsupportedError(
                f"The posterior of a {type(model).__name__} takes no "
                f"{type(posterior_transform).__name__}. Let the model itself return "
                "one output."
            )
        self.pending: Tensor | None = None
        self.pending_noise: Tensor | None = None

    def hallucinating(self, pending: Tensor, noise: float = 1.0) -> GenericPosterior:
        """See ``MarginalPosterior``: rows of the joint posterior."""
        if isinstance(self.model, DeterministicModel):
            return self  # nothing is left to be learned
        with torch.no_grad(), any_variance():
            latent = self._moments_of(pending)
            if not isinstance(latent, GPyTorchPosterior):
                raise UnsupportedError(
                    "Pending decisions need a Gaussian posterior, got "
                    f"{type(latent).__name__}. Use an outcome transform that keeps "
                    "the posterior Gaussian (`Standardize`), or ask one decision "
                    "at a time."
                )
            noisy = self._posterior(pending, observation_noise=True)
            # (S x) p x 1 -> (S x) p; a variance is found when it is read
            own = (noisy.variance - latent.variance).squeeze(-1)
        conditioned = copy(self)
        conditioned.pending = pending
        conditioned.pending_noise = noise * own.clamp_min(0.0)
        return conditioned

    @property
    def dtype(self) -> torch.dtype:
        """Of the model's parameters; float64 for a model without any."""
        return next((p.dtype for p in self.model.parameters()), torch.double)

    def _over(self, contexts: Tensor) -> View:
        return GenericView(self, contexts)

    def _integral(self, contexts: Tensor, weights: Tensor) -> Integral:
        return _GenericIntegral(self, contexts, weights)

    def moments(self, Z: Tensor) -> tuple[Tensor, Tensor]:
        """Evaluate the moments of joint inputs.

        Shapes: ``Z``: ``... x d``, returns ``... x S``.
        """
        flat = Z.reshape(-1, Z.shape[-1])
        count = len(flat)
        if count == 0:  # not every posterior of GPyTorch can be one of no points
            flat = Z.new_zeros(1, Z.shape[-1])
        found = in_blocks(
            self._block, flat, self._bytes_per_row(flat), self.memory_budget
        )
        mean, variance = (
            part[:count].reshape(*Z.shape[:-1], *part.shape[1:]) for part in found
        )
        return self.transformed(mean, variance)

    def transformed(
        self, mean: Tensor, variance: Tensor, total: float | Tensor = 1.0
    ) -> tuple[Tensor, Tensor]:
        """Moments after the weight and the offset of one output."""
        if self.affine is None:
            return mean, variance
        # Of one output the transform is a y + b: the variance takes the square of a.
        weight = cast(Tensor, self.affine.weights).to(mean)
        return self.affine.offset * total + weight * mean, weight.square() * variance

    def _check_moments(self, Z: Tensor) -> None:
        """Ask for both moments once, at one input twice, ``1 x d``."""
        with torch.no_grad():
            # Two batches of one point each: models that put batches elsewhere show it.
            shape = self._moments_of(Z.expand(2, 1, -1)).mean.shape
        num_dimensions = 4 if is_ensemble(self.model) else 3  # 2 (x S) x 1 x 1
        if len(shape) != num_dimensions or shape[0] != 2 or shape[-2:] != (1, 1):
            raise UnsupportedError(
                f"At two batches of one input the posterior of this "
                f"{type(self.model).__name__} has a mean of shape {tuple(shape)}, not "
                "one number for each. Use a model of one output."
            )

    def _moments_of(self, Z: Tensor) -> GPyTorchPosterior | TransformedPosterior:
        """A posterior that was found to have a mean and a variance."""
        try:
            posterior = self._posterior(Z)
            _ = posterior.mean, posterior.variance
        # Asked for a moment that they lack, BoTorch's posteriors raise the second;
        # those of other models may have no such attribute.
        except (AttributeError, NotImplementedError) as error:
            transform = getattr(self.model, "outcome_transform", None)
            raise UnsupportedError(
                f"The posterior of this {type(self.model).__name__} has no mean and "
                f"variance (outcome transform {type(transform).__name__}, posterior "
                f"transform {type(self.posterior_transform).__name__}): {error} Use "
                "`Standardize`, `Log` or no outcome transform, and a model of one "
                "output."
            ) from error
        return posterior

    def _posterior(
        self, Z: Tensor, *, observation_noise: bool = False
    ) -> GPyTorchPosterior | TransformedPosterior:
        # GPyTorch keeps the factor of the last inputs, and with it their graph.
        if self._keeps_graphs:
            settle(self.model)
        posterior = self.model.posterior(
            Z,
            observation_noise=observation_noise,
            posterior_transform=self.posterior_transform,
        )
        return cast("GPyTorchPosterior | TransformedPosterior", posterior)

    def _block(self, Z: Tensor) -> tuple[Tensor, Tensor]:
        if self.pending is not None:
            return self.joint_moments(Z.unsqueeze(-2), Z.new_ones(1))
        # GPyTorch evaluates lazily: the moments belong inside.
        with SmoothDistances(), any_variance():
            posterior = self._posterior(Z.unsqueeze(-2))  # N (x S) x 1 x 1
            mean, variance = posterior.mean, posterior.variance
            return mean.squeeze(-1).squeeze(-1), variance.squeeze(-1).squeeze(-1)

    def joint_moments(self, Z: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Evaluate the moments of a weighted sum, before the transform of one output.

        Shapes: ``Z``: ``N x n x d``.
        """
        n, noise = len(weights), self.pending_noise
        with SmoothDistances(), any_variance():
            if self.pending is not None:
                pending = self.pending.to(Z).expand(len(Z), -1, -1)
                Z = torch.cat([Z, pending], dim=-2)
            posterior = self._posterior(Z)
            if isinstance(self.model, DeterministicModel):
                mean = posterior.mean.squeeze(-1) @ weights
                return mean, torch.zeros_like(mean)
            if not isinstance(posterior, GPyTorchPosterior):
                raise UnsupportedError(
                    "A weighted sum of outcomes has a known distribution only where "
                    "they are jointly Gaussian, got a "
                    f"{type(posterior).__name__} of this {type(self.model).__name__}. "
                    "Use an outcome transform that keeps it Gaussian (`Standardize`)."
                )
            distribution = posterior.distribution
            mean = distribution.mean  # N (x S) x (n + p)
            covariance = distribution.covariance_matrix
        mean = mean[..., :n] @ weights
        # Joint Gaussian of the sum and of the noisy pending outcomes: conditioning
        # takes what they explain off the variance, and leaves the mean (hallucinated
        # outcomes).
        cross = weights @ covariance[..., :n, :]  # N (x S) x (n + p)
        variance = cross[..., :n] @ weights
        if noise is None:
            return mean, variance
        observed = covariance[..., n:, n:] + torch.diag_embed(noise.to(Z))
        # In units of its own size: what is added to a singular matrix is 1e-8 in any.
        unit = observed.diagonal(dim1=-2, dim2=-1).amax(-1)[..., None, None]
        unit = unit.clamp_min(torch.finfo(unit.dtype).tiny)  # a model that is certain
        root = psd_safe_cholesky(observed / unit)
        explained = torch.linalg.solve_triangular(
            root, cross[..., n:].unsqueeze(-1) / unit.sqrt(), upper=False
        )
        return mean, variance - explained.square().sum((-1, -2))

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


class GenericView(View):
    """See ``GenericPosterior``."""

    method = "generic"

    def __init__(self, posterior: GenericPosterior, contexts: Tensor) -> None:
        super().__init__(contexts)
        self.posterior = posterior

    def at(self, X: Tensor) -> LocalMoments:
        """Evaluate decisions."""
        return _GenericMoments(self, X)


class _GenericIntegral(Integral):
    """From the joint posterior over the contexts of each decision."""

    def __init__(
        self, posterior: GenericPosterior, contexts: Tensor, weights: Tensor
    ) -> None:
        super().__init__(posterior.dtype, posterior.memory_budget)
        self.posterior, self.contexts, self.weights = posterior, contexts, weights
        inputs = some_inputs(posterior.model)
        if inputs is not None:  # a model that is not Gaussian is refused here
            one = inputs.reshape(-1, inputs.shape[-1])[:1]
            posterior.joint_moments(one.unsqueeze(0), weights.new_ones(1))

    def _moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        posterior = self.posterior
        joint = join_columns(X, self.contexts, posterior.context_indices)
        mean, variance = posterior.joint_moments(joint, self.weights)
        return posterior.transformed(mean, variance, self.weights.sum())

    def _bytes_per_row(self) -> int:
        n = len(self.contexts)  # the covariance of all, beside the rows of each
        return n * (
            self.posterior._bytes_per_row(self.contexts)
            + 8 * n * self.contexts.element_size()
        )


class _GenericMoments(LocalMoments):
    def __init__(self, view: GenericView, X: Tensor) -> None:
        super().__init__(X, view.posterior.dtype)
        self.view = view

    def _moments(self, part: slice) -> tuple[Tensor, Tensor]:
        return self._at(self.X, self.view.contexts[part])

    def _slopes(self, contexts: slice | Tensor) -> MomentSlopes:
        contexts = self.view.points(contexts)
        # b x k moments of each block and the graph behind them are there at once
        if contexts.ndim == 2 and not (
            torch.is_grad_enabled() and self.X.requires_grad
        ):
            # Without a graph to keep, decisions in blocks: the graph of one block at a
            # time.
            rows = max(1, _PAIRS_PER_BLOCK // max(1, len(contexts)))
            parts = [
                slopes_by_autograd(self._at, X, contexts) for X in self.X.split(rows)
            ]
            return MomentSlopes(*map(torch.cat, zip(*parts, strict=True)))
        return slopes_by_autograd(self._at, self.X, contexts)

    def _at(self, X: Tensor, contexts: Tensor) -> tuple[Tensor, Tensor]:
        posterior = self.view.posterior
        joint = join_columns(X, contexts, posterior.context_indices)  # b x k x d
        mean, variance = posterior.moments(joint)  # b x k (x S)
        if mean.ndim > 2:
            mean, variance = mean.mT, variance.mT  # b x S x k
        return mean, variance
