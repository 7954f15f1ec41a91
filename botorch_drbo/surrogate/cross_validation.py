"""Predictions of outcomes by models that have not seen them; noise by near rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import cast, final

import torch
from botorch.cross_validation import loo_cv
from botorch.exceptions.errors import UnsupportedError
from botorch.exceptions.warnings import InputDataWarning
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.models.transforms.outcome import OutcomeTransform, Standardize
from botorch.posteriors import GPyTorchPosterior
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from gpytorch.models import ExactGP
from scipy.stats import chi2
from torch import Tensor

from botorch_drbo.posterior.ensemble import members_of
from botorch_drbo.posterior.mixture import GaussianMixture
from botorch_drbo.posterior.models import only_model
from botorch_drbo.posterior.training import refuse_inducing_points, training_system
from botorch_drbo.surrogate.base import MANY_ROWS, ModelData, Surrogate


@final
@dataclass(frozen=True, eq=False)
class HeldOut:
    """What a model says of outcomes that it was not told."""

    # As the model sees them, ``t``: in the user's units, unless an outcome transform is
    # not affine.
    outcomes: Tensor
    # The mixture for each outcome, noise included, in the same units.
    predicted: GaussianMixture
    # Rows of one number were left out together, ``t`` integers.
    fold: Tensor
    # From these units to the user's, element by element.
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
    """The exact Gaussian process that a model is, or the ensemble of those."""
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


NUM_FOLDS = 5
_SHUFFLE = 0  # the seed of the order in which sorted rows are dealt to folds
_CONFIDENCE = 0.75  # that deviations are stretched by enough


def cross_validated(
    surrogate: Surrogate, data: ModelData, fold: Tensor | None = None
) -> HeldOut | None:
    """Predict each outcome by a fit to the outcomes of other folds.

    The folds are given, ``t`` integers from zero on, or else five. For each
    hyper-parameters are fitted anew to all other rows: those that were fitted to an
    outcome predict it too well. Models of an ensemble are mixed. In which of five folds
    a row is does not depend on the order of the rows: see ``folds``.
    """
    t = len(data.inputs)
    if not NUM_FOLDS <= t <= MANY_ROWS or not surrogate.is_refitted:
        return None
    fold, means, deviations = folds(data) if fold is None else fold, [], []
    for k in range(int(fold.max()) + 1):
        order = (fold == k).byte().argsort(stable=True).to(data.inputs.device)
        told = data.of_rows(order[: int((fold != k).sum())])
        with warnings.catch_warnings():
            # That outcomes are equal in some of the folds needs no warning.
            warnings.simplefilter("ignore", InputDataWarning)
            every = replace(data.of_rows(order), given_units=told.units)
            predicted = surrogate.predict_others(told, every)
        means.append(predicted.means)
        deviations.append(predicted.deviations)
    place = fold.argsort(stable=True).argsort()  # of each row, fold after fold
    predicted = GaussianMixture(
        torch.cat(means, -1)[:, place], torch.cat(deviations, -1)[:, place]
    )
    return HeldOut(data.outcomes.double().cpu().flatten(), predicted, fold)


_MOST_LEFT_OUT = 10  # folds of levels


def folds_of_levels(data: ModelData, column: int) -> Tensor | None:
    """All rows of a level in one fold; None of two levels, or of very many rows.

    Each level alone, or of more than ten some together.
    """
    levels, rank = data.inputs[:, column].cpu().unique(return_inverse=True)
    if len(levels) <= 2 or len(rank) > MANY_ROWS:
        return None
    places = data.places
    first = torch.stack([places[rank == k].amin() for k in range(len(levels))])
    return first.argsort().argsort()[rank] % min(len(levels), _MOST_LEFT_OUT)


def folds(data: ModelData) -> Tensor:
    """Deal rows to five folds, whatever their order and that of a category's levels.

    The rows are sorted, and dealt in a shuffled order, always the same for so many
    rows: in the sorted order all rows of one level of a regular grid could be in one
    fold.
    """
    t = len(data.inputs)
    shuffled = torch.randperm(t, generator=torch.Generator().manual_seed(_SHUFFLE))
    return (shuffled % NUM_FOLDS)[data.places]


def overconfidence(residuals: Tensor) -> float:
    r"""By what the intervals of a model have to be stretched.

    .. math:: \max\Big(1,\; \sqrt{\textstyle\sum_i z_i^2 \,/\, q_t} \Big)

    with ``z`` the residuals and :math:`q_t` the 25% quantile of :math:`\chi^2` with
    ``t`` degrees of freedom. If the model's deviations are too small by one factor,
    this is at least that factor with a probability of 75%: the root mean square
    residual, and on top of it 19% of 12 residuals, 12% of 25, 5% of 100.
    """
    smallest = float(chi2.ppf(1.0 - _CONFIDENCE, len(residuals)))
    return max(1.0, (residuals.square().sum().item() / smallest) ** 0.5)


_SIGNIFICANCE = 0.05


@final
@dataclass(frozen=True)
class NearRows:
    """How far outcomes of near rows differ, against what the model expects."""

    # How many pairs were compared.
    num_pairs: int
    # The root mean square of their differences, in modelled deviations.
    ratio: float
    # That of differences so large, if the model is right.
    probability: float

    @property
    def noisier(self) -> bool:
        """Whether the outcomes are noisier than modelled, beyond luck."""
        return self.probability < _SIGNIFICANCE


def near_rows(model: Model) -> NearRows | None:
    r"""Compare outcomes whose difference is, by the model, mostly noise.

    .. math:: \sum_{(i, j)} \frac{(r_i - r_j)^2}
        {k_{ii} + k_{jj} - 2 k_{ij} + \sigma_i^2 + \sigma_j^2} \sim \chi^2_m

    over ``m`` pairs of rows, each row in one pair at most, nearest pairs first, where
    the noise :math:`\sigma_i^2 + \sigma_j^2` is at least half of the denominator:
    repeated trials, above all. For an ensemble the covariances are averaged.
    """
    kernels, noises, residuals = [], [], []
    for member in members_of(only_model(model)):
        exact = closed_form(member)
        system, unit = training_system(exact), unit_of(exact)
        kernel = system.covariance - torch.diag_embed(system.noise)
        kernels.append(unit.square().unsqueeze(-1) * kernel)
        noises.append(unit.square() * system.noise)
        residuals.append(unit * system.residual.squeeze(-1))
    kernel, noise, residual = (
        torch.cat(parts).mean(0) for parts in (kernels, noises, residuals)
    )
    prior = kernel.diagonal()
    modelled = (prior.unsqueeze(-1) + prior - 2.0 * kernel).clamp_min(0.0)
    noisy = noise.unsqueeze(-1) + noise
    t = len(noise)
    twice = torch.ones_like(noisy, dtype=torch.bool).tril()
    shares = (modelled / noisy).masked_fill(twice, torch.inf)
    rows, columns = (shares <= 1.0).nonzero(as_tuple=True)
    order = shares[rows, columns].argsort(stable=True)
    free, pairs = set(range(t)), []
    for i, j in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        if i in free and j in free:
            free -= {i, j}
            pairs.append((i, j))
    if not pairs:
        return None
    first, second = torch.tensor(pairs).T
    gaps = (residual[first] - residual[second]).square()
    total = (gaps / (modelled + noisy)[first, second]).sum().item()
    num = len(pairs)
    return NearRows(num, (total / num) ** 0.5, float(chi2.sf(total, num)))
