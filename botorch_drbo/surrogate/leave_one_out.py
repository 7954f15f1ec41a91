"""Leave-one-out predictions in closed form, without refitting."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import cast, final

import torch
from botorch.cross_validation import loo_cv
from botorch.exceptions.errors import UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.models.transforms.outcome import OutcomeTransform, Standardize
from botorch.posteriors import GPyTorchPosterior
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from gpytorch.models import ExactGP
from torch import Tensor

from botorch_drbo.posterior.ensemble import members_of
from botorch_drbo.posterior.mixture import GaussianMixture
from botorch_drbo.posterior.models import only_model
from botorch_drbo.posterior.training import refuse_inducing_points


@final
@dataclass(frozen=True, eq=False)
class HeldOut:
    r"""What a model says of outcomes that it was not told.

    Attributes:
        outcomes: As the model sees them, ``t``: in the user's units, unless an outcome
            transform is not affine.
        predicted: The mixture for each outcome, noise included, in the same units.
        fold: Rows of one number were left out together, ``t`` integers.
        in_units: From these units to the user's, element by element.
    """

    outcomes: Tensor
    predicted: GaussianMixture
    fold: Tensor
    in_units: Callable[[Tensor], Tensor] = lambda values: values

    @property
    def standardised(self) -> Tensor:
        """Residuals, ``t``, in deviations: standard normal if the model is right."""
        return self.predicted.normal_scores(self.outcomes)


def leave_one_out(model: Model) -> HeldOut:
    r"""Predict every outcome that a model was fitted to from all others.

    .. math:: \mu_{-i} = y_i - \frac{[K^{-1} r]_i}{[K^{-1}]_{ii}}, \qquad
        \sigma_{-i}^2 = \frac{1}{[K^{-1}]_{ii}}

    with ``K`` the covariance of the outcomes, noise included, and ``r`` the outcomes
    less the prior mean [RasmussenWilliams2006]_, section 5.4.2, by BoTorch. The
    hyper-parameters stay those of the fit to all outcomes, so that of few outcomes too
    much is explained: see ``cross_validated``. Models of an ensemble are mixed.

    Args:
        model: An exact Gaussian process with a Gaussian likelihood, or an ensemble of
            those: BoTorch's ``SingleTaskGP``, its fully Bayesian models and others.

    Returns:
        The predictions.

    Raises:
        UnsupportedError: A model without a closed form.

    Example:
        >>> Z = torch.rand(6, 2, dtype=torch.double)
        >>> left_out = leave_one_out(SingleTaskGP(Z, Z.sum(-1, True)))
        >>> left_out.standardised.shape
        torch.Size([6])
    """
    members = [closed_form(member) for member in members_of(only_model(model))]
    transform = getattr(members[0], "outcome_transform", None)
    affine = transform is None or isinstance(transform, Standardize)
    columns = []
    with torch.no_grad():
        for member in members:
            found = loo_cv(deepcopy(member).double().eval(), untransform=affine)
            there = cast(GPyTorchPosterior, found.posterior)
            parts = (found.observed_Y, there.mean, there.variance)
            columns.append([part.reshape(len(part), -1).mT for part in parts])
    outcomes, means, variances = map(torch.cat, zip(*columns, strict=True))
    predicted = GaussianMixture(means, variances.sqrt())
    alone = torch.arange(outcomes.shape[-1], device=outcomes.device)
    if affine:
        return HeldOut(outcomes[0], predicted, alone)

    def in_units(values: Tensor) -> Tensor:
        with torch.no_grad():
            untransformed, _ = cast(OutcomeTransform, transform).untransform(
                values.unsqueeze(-1)
            )
        return untransformed.squeeze(-1)

    return HeldOut(outcomes[0], predicted, alone, in_units)


def unit_of(model: SingleTaskGP) -> Tensor:
    """What one of a model's outcome is in the user's units, ``1 x 1`` or ``S x 1``.

    One for an outcome transform that is not affine.
    """
    transform = getattr(model, "outcome_transform", None)
    if isinstance(transform, Standardize):
        return transform.stdvs.detach().double().reshape(-1, 1)
    return model.train_targets.new_ones(1, 1).double()


def closed_form(model: Model) -> SingleTaskGP:
    """The exact Gaussian process that a model is, or the ensemble of those.

    Raises:
        UnsupportedError: Another model, or one of inducing points: leaving one out has
            no closed form.
    """
    likelihood = getattr(model, "likelihood", None)
    if (
        not isinstance(model, ExactGP)
        or type(likelihood) not in (GaussianLikelihood, FixedNoiseGaussianLikelihood)
        or not type(model).posterior.__module__.startswith("botorch.")
    ):
        raise UnsupportedError(
            "Leaving one outcome out has a closed form for exact Gaussian processes of "
            f"BoTorch with Gaussian noise, got a {type(model).__name__} with "
            f"{type(likelihood).__name__}. Compare the model with outcomes that it was "
            "not told, or return a SingleTaskGP from the function `model`."
        )
    exact = cast(SingleTaskGP, model)
    refuse_inducing_points(exact)
    return exact
