"""Predictions of each outcome by a model that was fitted without its fold."""

from __future__ import annotations

import warnings
from typing import cast

import numpy as np
import torch
from botorch.exceptions.warnings import InputDataWarning
from botorch.models.model import Model
from botorch.posteriors import GPyTorchPosterior
from scipy.stats import chi2
from torch import Tensor

from botorch_drbo.posterior.gpytorch_settings import any_variance
from botorch_drbo.posterior.mixture import GaussianMixture
from botorch_drbo.surrogate.base import MANY_ROWS, ModelData, Surrogate
from botorch_drbo.surrogate.leave_one_out import HeldOut

NUM_FOLDS = 5
_SHUFFLE = 0  # the seed of the order in which sorted rows are dealt to folds
_CONFIDENCE = 0.75  # that deviations are stretched by enough


def cross_validated(surrogate: Surrogate, data: ModelData) -> HeldOut | None:
    r"""Predict each outcome by a fit to the outcomes of other folds.

    For each fold hyper-parameters are fitted anew to all other rows: those that were
    fitted to an outcome predict it too well. Models of an ensemble are mixed. In which
    fold a row is does not depend on the order of the rows: see ``folds``.

    Args:
        surrogate: How outcomes are modelled.
        data: All rows.

    Returns:
        The predictions, noise included. None if there are fewer rows than folds, if the
        surrogate is not refitted, or if there are 500 rows or more: to one of so many
        the hyper-parameters are hardly fitted, and leave-one-out predictions in closed
        form are as good.

    Example:
        >>> from botorch_drbo.surrogate import SURROGATES
        >>> Z = torch.rand(8, 2, dtype=torch.double)
        >>> unit = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
        >>> data = ModelData(Z, Z.sum(-1, keepdim=True), unit)
        >>> cross_validated(SURROGATES["matern"], data).standardised.shape
        torch.Size([8])
    """
    t = len(data.inputs)
    if not NUM_FOLDS <= t <= MANY_ROWS or not surrogate.is_refitted:
        return None
    fold, means, deviations = folds(data), [], []
    for k in range(NUM_FOLDS):
        left_out = (fold == k).to(data.inputs.device)
        with warnings.catch_warnings():
            # That outcomes are equal in some of the folds needs no warning.
            warnings.simplefilter("ignore", InputDataWarning)
            model = surrogate.fit(data.of_rows(~left_out))
        predicted = _predicted(model, data.of_rows(left_out))
        means.append(predicted.means.cpu())
        deviations.append(predicted.deviations.cpu())
    place = fold.argsort(stable=True).argsort()  # of each row, fold after fold
    predicted = GaussianMixture(
        torch.cat(means, -1)[:, place], torch.cat(deviations, -1)[:, place]
    )
    return HeldOut(data.outcomes.double().cpu().flatten(), predicted, fold)


def folds(data: ModelData) -> Tensor:
    r"""Deal rows to five folds, whatever their order.

    The rows are sorted by their inputs, and by their outcomes where these are equal.
    Then they are dealt in a shuffled order, always the same for so many rows: in the
    sorted order all rows of one level of a regular grid could be in one fold.

    Args:
        data: All rows.

    Returns:
        The number of each row's fold, ``t`` integers. The sizes of the folds differ by
        one at most.

    Example:
        >>> Z = torch.tensor([[0.1], [0.9], [0.4], [0.7], [0.2], [0.6]])
        >>> data, back = (ModelData(z, z, torch.eye(2)[:, :1]) for z in (Z, Z.flip(0)))
        >>> folds(data).tolist(), folds(back).flip(0).tolist()
        ([2, 4, 3, 1, 0, 0], [2, 4, 3, 1, 0, 0])
    """
    columns = [data.inputs, data.outcomes]
    columns += [] if data.Yvar is None else [data.Yvar]
    rows = torch.cat(columns, -1).double().cpu().numpy()
    order = np.lexsort(rows.T[::-1])  # by the first column first
    t = len(rows)
    shuffled = torch.randperm(t, generator=torch.Generator().manual_seed(_SHUFFLE))
    fold = torch.empty(t, dtype=torch.long)
    fold[torch.from_numpy(order)] = shuffled % NUM_FOLDS
    return fold


def _predicted(model: Model, data: ModelData) -> GaussianMixture:
    """Predictions of held-out outcomes, noise included."""
    with torch.no_grad(), any_variance():
        posterior = cast(
            GPyTorchPosterior,
            model.posterior(data.inputs, observation_noise=data.Yvar is None),
        )
        means = posterior.mean.reshape(-1, len(data.inputs))  # S x m
        variances = posterior.variance.reshape(-1, len(data.inputs))
        if data.Yvar is not None:
            variances = variances + data.Yvar.flatten()
    return GaussianMixture(means.double(), variances.double().sqrt())


def overconfidence(residuals: Tensor) -> float:
    r"""By what the intervals of a model have to be stretched.

    .. math:: \max\Big(1,\; \sqrt{\textstyle\sum_i z_i^2 \,/\, q_t} \Big)

    with ``z`` the residuals and :math:`q_t` the 25% quantile of :math:`\chi^2` with
    ``t`` degrees of freedom. If the model's deviations are too small by one factor,
    this is at least that factor with a probability of 75%: the root mean square
    residual, and on top of it 19% of 12 residuals, 12% of 25, 5% of 100.

    Args:
        residuals: Of outcomes left out, in predicted deviations, ``t``.

    Returns:
        The factor, at least one.

    Example:
        >>> overconfidence(torch.tensor([0.3, -0.7, 0.8, -0.1, 0.4]))
        1.0
        >>> round(overconfidence(torch.tensor([0.3, -4.0, 0.8, -0.1, 6.0])), 2)
        4.44
    """
    smallest = float(chi2.ppf(1.0 - _CONFIDENCE, len(residuals)))
    return max(1.0, (residuals.square().sum().item() / smallest) ** 0.5)
