"""Several models of one outcome, side by side: a model, and its marginal moments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast, final

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.models.model import Model
from botorch.posteriors import GPyTorchPosterior
from botorch.posteriors.fully_bayesian import GaussianMixturePosterior
from botorch.utils.transforms import is_ensemble
from gpytorch.distributions import MultivariateNormal
from linear_operator import to_linear_operator
from torch import Tensor
from torch.nn import ModuleList

from botorch_drbo.posterior.blocks import any_variance
from botorch_drbo.posterior.view import (
    Integral,
    LocalMoments,
    MarginalPosterior,
    MomentSlopes,
    View,
)


@final
class ModelEnsemble(Model):
    r"""Models of one outcome, each as likely as the others.

    .. math:: p(f) = \frac1S \sum_{s=1}^S p_s(f)

    Its posterior is a mixture of ``S`` Gaussians, as that of BoTorch's
    ``SaasFullyBayesianSingleTaskGP``: mean and covariance have a dimension of the
    models before the points. What acquisition functions of this package make of the
    scores they make of each member, and take the mean over the members last.

    Args:
        models: The members, fitted, of the same inputs and one output each. The members
            of an ensemble among them take its place.

    Raises:
        InputDataError: No members, or what is no model.
        BotorchTensorDimensionError: Members of other inputs or of several outputs.
        UnsupportedError: A member that is a batch of models.

    Example:
        >>> from botorch.models import SingleTaskGP
        >>> Z = torch.rand(5, 2, dtype=torch.double)
        >>> model = ModelEnsemble(SingleTaskGP(Z, k * Z[:, :1]) for k in (1, 2, 3))
        >>> model.posterior(Z.unsqueeze(1)).mean.shape  # b x S x q x 1
        torch.Size([5, 3, 1, 1])
    """

    _is_ensemble = True

    def __init__(self, models: Sequence[Model]) -> None:
        super().__init__()
        members = [member for model in models for member in members_of(model)]
        if not members:
            raise InputDataError(
                "An ensemble needs at least one model, got none. Give it the fitted "
                "models that are to stand side by side."
            )
        for member in members:
            _check_member(member)
        self._check_inputs(members)
        self.models = ModuleList(members)

    @staticmethod
    def _check_inputs(members: Sequence[Model]) -> None:
        known = [getattr(member, "train_inputs", None) for member in members]
        # Members without training data do not say how many columns they have.
        counts = {inputs[0].shape[-1] for inputs in known if inputs is not None}
        if len(counts) > 1:
            raise BotorchTensorDimensionError(
                "The members of an ensemble must have the same inputs, got models of "
                f"{sorted(counts)} columns."
            )

    @property
    def members(self) -> list[Model]:
        """The models, ``S``."""
        return [cast(Model, model) for model in self.models]

    @property
    def num_outputs(self) -> int:
        """One, the outcome."""
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        """The dimension of the models, which inputs have not: ``S``."""
        return torch.Size([len(self.models)])

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> GaussianMixturePosterior:
        r"""The posterior of each member, side by side.

        Args:
            X: Inputs, ``b x q x d``.
            output_indices: None, or ``[0]``.
            observation_noise: Whether to include each member's noise.
            posterior_transform: Applied to each member's posterior.

        Returns:
            A mixture with means ``b x S x q x 1``.

        Raises:
            UnsupportedError: A member whose posterior is not Gaussian.
        """
        parts = [
            member.posterior(
                X,
                output_indices=output_indices,
                observation_noise=observation_noise,
                posterior_transform=posterior_transform,
            )
            for member in self.members
        ]
        for part in parts:
            if not isinstance(part, GPyTorchPosterior):
                raise UnsupportedError(
                    "A member of an ensemble needs a Gaussian posterior, got "
                    f"{type(part).__name__}. Use `Standardize` or no outcome transform."
                )
        # A batch of Gaussians side by side, as a fully Bayesian model of BoTorch has
        # it.
        distributions = [cast(GPyTorchPosterior, part).distribution for part in parts]
        mean = torch.stack([each.mean for each in distributions], -2)  # b x S x q
        # Lazy: of a matrix GPyTorch takes the root at once, and many are singular.
        covariance = to_linear_operator(
            torch.stack([each.covariance_matrix for each in distributions], -3)
        )  # b x S x q x q
        with any_variance():  # the mixture asks for the variances at once
            return GaussianMixturePosterior(MultivariateNormal(mean, covariance))


def members_of(model: Model) -> list[Model]:
    """The members of an ensemble of models; of any other model itself."""
    return model.members if isinstance(model, ModelEnsemble) else [model]


def each_member(model: Model, change: Callable[[Model], Model]) -> Model:
    """A model with a change made to each member; of any other model to itself."""
    if isinstance(model, ModelEnsemble):
        return ModelEnsemble([change(member) for member in model.members])
    return change(model)


def _check_member(member: object) -> None:
    if not isinstance(member, Model):
        raise InputDataError(
            "The members of an ensemble must be fitted BoTorch models, got a "
            f"{type(member).__name__}."
        )
    if is_ensemble(member):
        raise UnsupportedError(
            f"A {type(member).__name__} is an ensemble in one batch of models, and "
            "cannot be a member of another ensemble. Take it alone."
        )
    if member.num_outputs != 1:
        raise BotorchTensorDimensionError(
            f"The members of an ensemble must have one output each, the same outcome; "
            f"got a {type(member).__name__} of {member.num_outputs}."
        )


class EnsemblePosterior(MarginalPosterior):
    """Moments of each member of an ensemble, each by its own fastest method."""

    def __init__(
        self, posteriors: Sequence[MarginalPosterior], model: ModelEnsemble
    ) -> None:
        # What they share was checked when the ensemble was made.
        first = posteriors[0]
        super().__init__(model, first.context_indices, first.memory_budget)
        self.posteriors = tuple(posteriors)
        self.smooth = all(posterior.smooth for posterior in posteriors)

    @property
    def dtype(self) -> torch.dtype:
        """The members'."""
        return self.posteriors[0].dtype

    def hallucinating(self, pending: Tensor, noise: float = 1.0) -> EnsemblePosterior:
        """See ``MarginalPosterior``."""
        return EnsemblePosterior(
            [each.hallucinating(pending, noise) for each in self.posteriors],
            cast(ModelEnsemble, self.model),
        )

    def _over(self, contexts: Tensor) -> View:
        return EnsembleView([each._over(contexts) for each in self.posteriors])

    def _over_coarsely(self, contexts: Tensor) -> View:
        return EnsembleView([each._over_coarsely(contexts) for each in self.posteriors])

    def _over_for_means(self, contexts: Tensor) -> View:
        views = [each._over_for_means(contexts) for each in self.posteriors]
        return EnsembleView(views)

    def _integral(self, contexts: Tensor, weights: Tensor) -> Integral:
        return _EnsembleIntegral(
            [each._integral(contexts, weights) for each in self.posteriors]
        )


class _EnsembleIntegral(Integral):
    """That of each member, which works in blocks of its own."""

    def __init__(self, members: Sequence[Integral]) -> None:
        super().__init__(members[0].dtype, members[0].memory_budget)
        self.members = tuple(members)

    def _moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        # No member knows of the others: the mixture is the caller's.
        mean, variance = zip(*(member(X) for member in self.members), strict=True)
        return torch.stack(mean, -1), torch.stack(variance, -1)  # b x S

    def _bytes_per_row(self) -> int:
        return 1


class EnsembleView(View):
    """The views of the members over one set of contexts."""

    method = "ensemble"

    def __init__(self, views: Sequence[View]) -> None:
        super().__init__(views[0].contexts)
        self.views = tuple(views)

    def coarse(self) -> View:
        r"""That of each member."""
        return EnsembleView([view.coarse() for view in self.views])

    def at(self, X: Tensor) -> LocalMoments:
        """Evaluate decisions."""
        return _EnsembleMoments(self, X)


class _EnsembleMoments(LocalMoments):
    def __init__(self, view: EnsembleView, X: Tensor) -> None:
        super().__init__(X, view.contexts.dtype)
        with self._graph():
            self.members = [member.at(self.X) for member in view.views]
        # Means alone pay off where they do for the largest member.
        self.num_rows = max(member.num_rows for member in self.members)
        self.num_contexts = len(view.contexts)

    def _moments(self, part: slice) -> tuple[Tensor, Tensor]:
        # Each member by its own fastest method, then side by side.
        found = [member.moments(part) for member in self.members]
        mean, variance = zip(*found, strict=True)
        return torch.stack(mean, 1), torch.stack(variance, 1)  # b x S x n

    def _means(self, part: slice) -> Tensor:
        return torch.stack([member.means(part) for member in self.members], 1)

    def _means_of_moments(self, part: slice) -> Tensor:
        return self._means(part)

    def _mean_slopes(self, contexts: slice | Tensor) -> Tensor:
        own = self._of_members(contexts)
        found = [m.mean_slopes(c) for m, c in zip(self.members, own, strict=True)]
        return torch.stack(found, 1)

    def _slopes(self, contexts: slice | Tensor) -> MomentSlopes:
        own = self._of_members(contexts)
        found = [m.slopes(c) for m, c in zip(self.members, own, strict=True)]
        return MomentSlopes(*(torch.stack(p, 1) for p in zip(*found, strict=True)))

    def _of_members(self, contexts: slice | Tensor) -> Sequence[slice | Tensor]:
        if isinstance(contexts, Tensor) and contexts.ndim == 4:  # b x S x k x d_c
            return contexts.unbind(1)
        return [contexts] * len(self.members)
